"""Commit files (`N.json`, `N.M.compacted.json`): one JSON action a line.

Comes in: a file of the log. Goes out: its file actions as a table of `FILES`, in the order of the
file, and its other actions. Actions and fields that are not known are ignored, as the protocol
says; anything that is no JSON object is a damaged file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.actions import FILES, Actions
from rowlake.delta.many_files import ENOUGH_BYTES, parse_many
from rowlake.delta.paths import are_odd, locations_of
from rowlake.errors import CorruptTableError, MissingFileError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rowlake.delta.log_files import CommitFile
    from rowlake.storage.files import Storage

MOST_COMMIT_BYTES = 4 * 1024 * 1024 * 1024
_SHOWN = 60


@dataclass(frozen=True)
class Commit:
    """The actions of one file."""

    version: int
    other: Actions
    make_files: Callable[[], pa.Table] = field(repr=False)

    @cached_property
    def files(self) -> pa.Table:
        """Adds and removes (`FILES`) in their order; made at first use, which history has not."""
        return self.make_files()


def read_commit(commit: CommitFile, table: str, storage: Storage) -> Commit:
    """Return the actions of a commit file of the table in the folder `table`."""
    version = None if commit.is_compacted else commit.version
    content, location = _content(commit, storage), commit.file.location
    if len(content) >= ENOUGH_BYTES:
        files, other = parse_actions(content, location, table, version)
        return Commit(commit.version, other, lambda: files)
    rows, other = _parse_lines(content, location, version)
    return Commit(commit.version, other, lambda: rows.table(table, location))


def parse_actions(
    content: bytes, location: str, table: str, version: int | None = None
) -> tuple[pa.Table, Actions]:
    """Return the file actions (`FILES`) and the other actions of lines of JSON."""
    many = parse_many(content, version)
    if many is not None:
        files, other = parse_actions(many[1], location, table, version)
        return pa.concat_tables([files, _located(many[0], table)]), other
    rows, other = _parse_lines(content, location, version)
    return rows.table(table, location), other


def change_files(commit: Commit, table: str, location: str) -> pa.Table:
    """Return the change data files of a commit as a table of `FILES`."""
    files = _Files(commit.version)
    try:
        for action in commit.other.change_files:
            files.add(dict(action), is_add=True)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(location, f"a cdc action lacks {error}") from error
    return files.table(table, location)


def _located(files: pa.Table, table: str) -> pa.Table:
    """Return file actions with locations in place of paths; odd paths are kept beside them."""
    paths = _one(files["location"])
    index = FILES.get_field_index("path")
    odd = pc.if_else(are_odd(paths), paths, None)
    return files.set_column(0, FILES.field(0), locations_of(paths, table)).set_column(
        index, FILES.field(index), odd
    )


def _parse_lines(content: bytes, location: str, version: int | None) -> tuple[_Files, Actions]:
    files, other = _Files(version), Actions()
    kind = ""
    try:
        for kind, action in _actions_in(content, location):
            if kind in ("add", "remove"):
                files.add(action, is_add=kind == "add")
            elif isinstance(action, dict):
                other.add(kind, action, location)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(location, f"a {kind} action lacks {error}") from error
    return files, other


def _content(commit: CommitFile, storage: Storage) -> bytes:
    location = commit.file.location
    if commit.file.size_in_bytes > MOST_COMMIT_BYTES:
        raise UnsupportedFeatureError(
            f"Cannot read {location}: it has {commit.file.size_in_bytes:,} bytes; rowlake reads "
            f"commits of up to {MOST_COMMIT_BYTES:,}."
        )
    try:
        return storage.read(location)
    except MissingFileError as error:
        raise CorruptTableError(location, "the commit is missing") from error


def _actions_in(content: bytes, location: str) -> Iterator[tuple[str, Any]]:
    """Yield (kind, action) of each line of a commit or of a JSON checkpoint."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError) as error:
            start = line[:_SHOWN].decode(errors="replace")
            cause = f"line {number} is no JSON ({type(error).__name__}): {start}"
            raise _damaged(location, cause) from error
        if not isinstance(parsed, dict):
            raise _damaged(location, f"line {number} is no action")
        yield from ((kind, action) for kind, action in parsed.items() if action is not None)


def _damaged(location: str, cause: str) -> CorruptTableError:
    return CorruptTableError(
        location,
        f"the log is damaged: {cause}",
        advice="Restore the file from a backup, or read an earlier version.",
    )


class _Files:
    """File actions as columns in the making; each value is checked when columns are built."""

    def __init__(self, version: int | None) -> None:
        self._version = version
        self._rows: list[tuple[Any, ...]] = []

    def add(self, action: dict[str, Any], *, is_add: bool) -> None:
        vector = _vector(action)
        version = action.get("defaultRowCommitVersion")
        self._rows.append(
            (
                action["path"],
                is_add,
                _pairs(action.get("partitionValues") or {}),
                action.get("size"),
                action.get("dataChange", True),
                action.get("stats"),
                *vector,
                action.get("baseRowId"),
                self._version if version is None else version,
                None,
                action.get("modificationTime"),
                action.get("deletionTimestamp"),
                _pairs(action["tags"]) if action.get("tags") else None,
                action.get("clusteringProvider"),
                None,
                None,
            )
        )

    def table(self, folder: str, location: str) -> pa.Table:
        columns: Iterable[Any] = zip(*self._rows, strict=True) if self._rows else [()] * len(FILES)
        try:
            arrays = [
                pa.array(column, one.type) for column, one in zip(columns, FILES, strict=True)
            ]
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _damaged(location, f"a file action has a value of a wrong type ({error})") from (
                error
            )
        if arrays[0].null_count:
            raise _damaged(location, "a file action has no path")
        return _located(pa.Table.from_arrays(arrays, schema=FILES), folder)


def _vector(action: dict[str, Any]) -> tuple[Any, ...]:
    """Return what the log says about the deletion vector of a file, nulls where it has none."""
    found = action.get("deletionVector")
    if found is None:
        return (None,) * 5
    kind, path = found["storageType"], found["pathOrInlineDv"]
    size, cardinality = found["sizeInBytes"], found["cardinality"]
    if not isinstance(kind, str) or not isinstance(path, str) or None in (size, cardinality):
        raise TypeError("a part of its deletion vector")
    return kind, path, found.get("offset"), size, cardinality


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _pairs(values: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(str(name), None if one is None else str(one)) for name, one in values.items()]
