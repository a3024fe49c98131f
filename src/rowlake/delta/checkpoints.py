"""Checkpoints: classic, of several parts, and v2 with sidecars (PROTOCOL.md, "Checkpoints").

Comes in: a `Checkpoint`. Goes out: its live adds as a table of `FILES`, and its other actions.
Removes are tombstones of files that are gone: they say nothing about what is live, and are not
read. Statistics stay in the files until somebody asks for them (`read_stats`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.delta.actions import FILES, PARTITION_VALUES, Actions
from rowlake.delta.commits import parse_actions
from rowlake.delta.log_files import LOG_FOLDER, SIDECAR_FOLDER
from rowlake.delta.paths import are_odd, decoded, locations_of
from rowlake.errors import CorruptTableError, MissingFileError
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.delta.log_files import Checkpoint
    from rowlake.storage.files import Storage

OTHER_KINDS = ("protocol", "metaData", "txn", "domainMetadata", "sidecar")
MOST_SIDECARS = 1_000_000
TEXTS, PARSED = "stats", "stats_parsed"
STATS_ROWS = 1 << 17  # that are in memory at once
# Columns of `FILES` by their path in an `add`.
_COLUMNS = {
    "path": "location",
    "partitionValues": "partition_values",
    "size": "size",
    "dataChange": "data_change",
    "deletionVector.storageType": "storage_type",
    "deletionVector.pathOrInlineDv": "vector_path",
    "deletionVector.offset": "vector_offset",
    "deletionVector.sizeInBytes": "vector_size",
    "deletionVector.cardinality": "vector_cardinality",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "commit_version",
    "modificationTime": "modification_time",
    "tags": "tags",
    "clusteringProvider": "clustering_provider",
}


@dataclass(frozen=True)
class CheckpointState:
    """What a checkpoint holds, and the files that its adds are in (`source` counts them)."""

    files: pa.Table
    other: Actions
    sources: tuple[str, ...]


def read_other_actions(checkpoint: Checkpoint, table: str, storage: Storage) -> Actions:
    """Return the actions of a checkpoint that are not of files."""
    if checkpoint.is_json:
        location = checkpoint.files[0].location
        return parse_actions(_bytes(location, storage), location, table)[1]
    found = Actions()
    for file in checkpoint.files:
        _add_actions(found, file.location, storage)
    return found


def _add_actions(found: Actions, location: str, storage: Storage) -> None:
    kind = ""
    try:
        for kind, action in _other_actions(location, storage):
            found.add(kind, action, location)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(location, f"a {kind} action lacks {error}") from error


def _other_actions(location: str, storage: Storage) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with _opened(location, storage) as opened:
        for kind in OTHER_KINDS:
            if kind not in opened.schema_arrow.names:
                continue
            column = _read(opened, [kind], location)[kind]
            for action in column.filter(pc.is_valid(column)).to_pylist():
                yield kind, _plain(action)


def _plain(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action as JSON would have it: maps of Parquet come as lists of pairs."""
    return {
        key: dict(value) if isinstance(value, list) and _is_pairs(value) else value
        for key, value in action.items()
    }


def _is_pairs(value: list[Any]) -> bool:
    return all(isinstance(one, tuple) and len(one) == 2 for one in value)


def read_checkpoint(
    checkpoint: Checkpoint, other: Actions, table: str, storage: Storage
) -> CheckpointState:
    """Return the adds of a checkpoint of the table in the folder `table`."""
    sources = [*(file.location for file in checkpoint.files), *sidecars_of(other, table)]
    parts = [FILES.empty_table()]
    for number, location in enumerate(sources):
        if location.endswith(".json"):
            parts.append(_adds_in_json(location, table, storage))
        else:
            parts.append(_adds_in_parquet(location, number, table, storage))
    return CheckpointState(pa.concat_tables(parts), other, tuple(sources))


def sidecars_of(other: Actions, table: str) -> list[str]:
    """Return where the sidecars are that a checkpoint names."""
    folder = join(table, LOG_FOLDER, SIDECAR_FOLDER)
    names = [str(one.get("path") or "") for one in other.sidecars[: MOST_SIDECARS + 1]]
    if len(names) > MOST_SIDECARS:
        raise _damaged(folder, f"a checkpoint has more than {MOST_SIDECARS:,} sidecars")
    found = []
    for name in names:
        plain = str(decoded(pa.array([name]))[0].as_py())
        is_name = "/" not in plain and plain not in ("", ".", "..")
        # A sidecar is a file of its folder; other writers spell the whole path.
        found.append(join(folder, plain) if is_name else _whole_path(plain, table, folder))
    return found


def _whole_path(path: str, table: str, folder: str) -> str:
    location = str(locations_of(pa.array([path]), folder)[0].as_py())
    if not location.startswith(join(table, LOG_FOLDER, "")) or "/../" in location:
        raise _damaged(folder, f"a checkpoint names a sidecar outside of the log: {path}")
    return location


def _adds_in_json(location: str, table: str, storage: Storage) -> pa.Table:
    files, _ = parse_actions(_bytes(location, storage), location, table)
    return files.filter(files["is_add"])


def _adds_in_parquet(location: str, number: int, table: str, storage: Storage) -> pa.Table:
    with _opened(location, storage) as opened:
        if "add" not in opened.schema_arrow.names:
            return FILES.empty_table()
        known = _leaf_paths(opened.schema_arrow.field("add").type, location)
        wanted = [f"add.{path}" for path in _COLUMNS if path in known]
        column = _read(opened, wanted, location)["add"]
    parts, first = [FILES.empty_table()], 0
    try:
        for chunk in column.chunks:
            parts.append(_adds_of_chunk(chunk, first, number, known, table))
            first += len(chunk)
    except (pa.ArrowException, TypeError, KeyError) as error:
        raise _damaged(location, f"its adds have other types ({error})") from error
    return pa.concat_tables(parts)


def _adds_of_chunk(
    rows: pa.StructArray, first: int, number: int, known: set[str], table: str
) -> pa.Table:
    present = np.flatnonzero(np.asarray(pc.is_valid(pc.struct_field(rows, "path"))))
    adds = rows.take(pa.array(present)) if len(present) < len(rows) else rows
    columns = {name: _column(adds, path, known) for path, name in _COLUMNS.items()}
    return _as_files(columns, present + first, number, table)


def _as_files(
    columns: dict[str, pa.Array | None], rows: np.ndarray[Any, Any], number: int, table: str
) -> pa.Table:
    size = len(rows)
    found = {
        name: one.cast(FILES.field(name).type) if one is not None else None
        for name, one in columns.items()
    }
    paths = found["location"]
    found["path"] = pc.if_else(are_odd(paths), paths, None)
    found["location"] = locations_of(paths, table)
    found["is_add"] = pa.array(np.ones(size, np.bool_))
    found["source"] = pa.array(np.full(size, number, np.int32))
    found["row"] = pa.array(rows)
    return pa.Table.from_arrays(
        [
            pa.nulls(size, one.type) if found.get(one.name) is None else found[one.name]
            for one in FILES
        ],
        schema=FILES,
    )


def _leaf_paths(kind: pa.DataType, location: str) -> set[str]:
    """Return the paths of the fields of an `add` that may be read."""
    found = set()
    for field in _fields_of(kind, "files", location):
        found.add(field.name)
        if field.name == "deletionVector":
            below = _fields_of(field.type, "deletion vectors", location)
            found |= {f"{field.name}.{one.name}" for one in below}
    return found


def _fields_of(kind: pa.DataType, what: str, location: str) -> list[pa.Field]:
    if pa.types.is_null(kind):  # no row has any
        return []
    if not pa.types.is_struct(kind):
        raise _damaged(location, f"its {what} are of type {kind}")
    return list(kind)


def _column(adds: pa.StructArray, path: str, known: set[str]) -> pa.Array | None:
    if path not in known:
        return None
    found = pc.struct_field(adds, path.split("."))
    if path not in ("partitionValues", "tags"):
        return found
    return found if found.type == PARTITION_VALUES else found.cast(PARTITION_VALUES)


def stats_columns(location: str, storage: Storage) -> frozenset[str]:
    """Return how a checkpoint file has statistics: `stats` are texts, `stats_parsed` columns."""
    with _opened(location, storage) as opened:
        kind = opened.schema_arrow.field("add").type
    _fields_of(kind, "files", location)
    known = {field.name: field.type for field in kind}
    texts, parsed = known.get(TEXTS), known.get(PARSED)
    found = set()
    if texts is not None and (pa.types.is_string(texts) or pa.types.is_large_string(texts)):
        found.add(TEXTS)
    if parsed is not None and pa.types.is_struct(parsed):
        found.add(PARSED)
    return frozenset(found)


def read_stats(
    location: str, storage: Storage, name: str, paths: Sequence[str] = ()
) -> Iterator[pa.Array | None]:
    """Yield a column of statistics batch by batch, all rows of the file in their order.

    `paths` are the fields of it that are read; None is yielded where the file has none of them.
    """
    columns = [f"add.{name}.{path}" for path in paths] or [f"add.{name}"]
    with _opened(location, storage) as opened:
        try:
            for batch in opened.iter_batches(STATS_ROWS, columns=columns):
                yield _below(batch, name)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(location, str(error)) from error


def read_all_stats(
    location: str, storage: Storage
) -> Iterator[tuple[pa.Array | None, pa.StructArray | None]]:
    """Yield texts and columns of statistics batch by batch, None for the form that is not there."""
    names = sorted(stats_columns(location, storage))
    with _opened(location, storage) as opened:
        columns = [f"add.{name}" for name in names] or ["add.size"]
        try:
            for batch in opened.iter_batches(STATS_ROWS, columns=columns):
                yield _below(batch, TEXTS), _below(batch, PARSED)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(location, str(error)) from error


def read_removes(checkpoint: Checkpoint, other: Actions, table: str, storage: Storage) -> pa.Table:
    """Return the removes that a checkpoint still has, as `FILES`."""
    sources = [*(file.location for file in checkpoint.files), *sidecars_of(other, table)]
    parts = [FILES.empty_table()]
    for location in sources:
        if location.endswith(".json"):
            files, _ = parse_actions(_bytes(location, storage), location, table)
            parts.append(files.filter(pc.invert(files["is_add"])))
        else:
            parts.append(_removes_in_parquet(location, table, storage))
    return pa.concat_tables(parts)


def _removes_in_parquet(location: str, table: str, storage: Storage) -> pa.Table:
    with _opened(location, storage) as opened:
        if "remove" not in opened.schema_arrow.names:
            return FILES.empty_table()
        known = _leaf_paths(opened.schema_arrow.field("remove").type, location)
        columns = {**_COLUMNS, "deletionTimestamp": "deletion_time"}
        wanted = [f"remove.{path}" for path in columns if path in known]
        column = _read(opened, wanted, location)["remove"].combine_chunks()
    rows = column.filter(pc.is_valid(pc.struct_field(column, "path")))
    try:
        found = {name: _column(rows, path, known) for path, name in columns.items()}
        files = _as_files(found, np.arange(len(rows)), 0, table)
    except (pa.ArrowException, TypeError, KeyError) as error:
        raise _damaged(location, f"its removes have other types ({error})") from error
    index = FILES.get_field_index("is_add")
    return files.set_column(index, FILES.field(index), pa.array(np.zeros(len(rows), np.bool_)))


def _below(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    if "add" not in batch.schema.names:
        return None
    kind = batch.schema.field("add").type
    return pc.struct_field(batch["add"], name) if kind.get_field_index(name) >= 0 else None


def _bytes(location: str, storage: Storage) -> bytes:
    try:
        return storage.read(location)
    except MissingFileError as error:
        raise _missing(location) from error


def _opened(location: str, storage: Storage) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(storage.open_input(location))
    except MissingFileError as error:
        raise _missing(location) from error
    except (pa.ArrowException, OSError) as error:
        raise _damaged(location, f"it is no Parquet file ({error})") from error


def _read(opened: pq.ParquetFile, columns: list[str], location: str) -> pa.Table:
    try:
        return opened.read(columns)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(location, str(error)) from error


def _missing(location: str) -> CorruptTableError:
    return _damaged(location, "the file is missing")


def _damaged(location: str, cause: str) -> CorruptTableError:
    return CorruptTableError(
        location,
        f"the checkpoint is damaged: {cause}",
        advice="Restore the file from a backup, or read a version that does not need it.",
    )
