"""Which spec and partition the files of a directory have in a table, and which it has already.

Comes in: a table and files with their `key=value` folders. Goes out: the spec whose identity
fields are just these names, the encoded partition of each file, and a refusal of files that the
table has under any spelling of their location.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError, shown
from rowlake.ingest.folders import inferred_types
from rowlake.ingest.partition_texts import encoded_partitions
from rowlake.model.predicate import TRUE
from rowlake.storage.locations import S3, split

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.ingest.folders import SourceFile
    from rowlake.model.partition import PartitionField, PartitionSpec
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage


def compatible_spec(view: TableView, files: Sequence[SourceFile]) -> PartitionSpec:
    """Return the spec of the table whose identity fields are the folders' names."""
    found = {tuple(sorted(key.lower() for key, _ in file.folders)) for file in files}
    if len(found) > 1:
        inferred_types(files)  # says which folders disagree
    names = found.pop()
    newest_first = sorted(view.specs.values(), key=lambda spec: -spec.spec_id)
    for spec in (view.spec, *newest_first):
        is_plain = all(field.transform in ("identity", "void") for field in spec.fields)
        own = tuple(
            sorted(_name(view, field) for field in spec.fields if field.transform != "void")
        )
        if is_plain and own == names:
            return spec
    folders = shown(names) if names else "(none: the files are in no key=value folders)"
    by = shown(_text(view, field) for field in view.spec.fields) or "nothing"
    raise InvalidStatementError(
        f"Cannot add files to {view.name}: it has no partition spec of identity fields {folders}. "
        f"It is partitioned by {by}."
    )


def _name(view: TableView, field: PartitionField) -> str:
    known = view.schema.by_id.get(field.source_id)
    return str(known.name if known is not None else field.name).lower()


def _text(view: TableView, field: PartitionField) -> str:
    return (
        field.name if field.transform == "identity" else f"{field.transform}({_name(view, field)})"
    )


def partitioned(
    view: TableView,
    spec: PartitionSpec,
    files: list[SourceFile],
    partition_filter: Mapping[str, Any],
) -> tuple[list[SourceFile], list[tuple[bytes | None, ...]]]:
    """Return the files that the filter picks, with their encoded partitions."""
    names = [_name(view, field) for field in spec.fields]
    unknown = [key for key in partition_filter if key.lower() not in names]
    if unknown:
        raise InvalidStatementError(
            f"Cannot add files to {view.name} by the partition filter: {shown(unknown)} is no "
            f"partition column; there is {shown(names) or 'none'}."
        )
    if not spec.fields:
        return files, [()] * len(files)
    texts = [{key.lower(): text for key, text in file.folders} for file in files]
    columns = [[row.get(name) for row in texts] for name in names]
    partitions = encoded_partitions(view, spec, columns, [file.location for file in files])
    if not partition_filter:
        return files, partitions
    wanted = {key.lower(): None if v is None else str(v) for key, v in partition_filter.items()}
    sample = encoded_partitions(
        view, spec, [[wanted.get(name)] for name in names], ["the partition filter"], checked=False
    )[0]
    places = [place for place, name in enumerate(names) if name in wanted]
    kept = [
        index
        for index, key in enumerate(partitions)
        if all(key[place] == sample[place] for place in places)
    ]
    if not kept:
        raise InvalidStatementError(
            f"Cannot add files to {view.name}: no folder matches the partition filter "
            f"{dict(partition_filter)}."
        )
    return [files[index] for index in kept], [partitions[index] for index in kept]


def check_duplicates(view: TableView, files: Sequence[SourceFile], storage: Storage) -> int | None:
    """Refuse files that are in the table already; return the snapshot that was looked at."""
    spellings = {spelling: f.location for f in files for spelling in _spellings(f.location)}
    wanted = pa.array(list(spellings), pa.string())
    listed = view.format.list_files(view, TRUE, storage).data(["location"])
    twice: set[str] = set()
    for entries in listed.values():
        known = entries["location"].filter(pc.is_in(entries["location"], wanted))
        twice.update(spellings[location] for location in known.to_pylist())
    if twice:
        raise InvalidStatementError(
            f"Cannot add files to {view.name}: {len(twice)} are in the table already: "
            f"{shown(sorted(twice))}. With check_duplicate_files=False their rows count twice."
        )
    return view.snapshot_id


def _spellings(location: str) -> list[str]:
    """Return the ways in which writers spell one location."""
    parts = split(location)
    if parts.is_local:
        return [prefix + parts.path for prefix in ("", "file:", "file://")]
    if parts.scheme in S3:
        rest = location.partition("://")[2]
        return [f"{scheme}://{rest}" for scheme in sorted(S3)]
    return [location]
