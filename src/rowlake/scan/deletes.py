"""Deletes of one data file, parsed: positions, and keys of equality deletes.

Comes in: the delete files that planning found for a data file. Goes out: one sorted array of
deleted positions (position delete files and deletion vectors together), and one matcher per set
of equality columns. Parsed files are kept per process (`rowlake.scan.cache`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowlake.codecs import deletion_vector, position_delete
from rowlake.codecs.position_delete import FILE_PATH_ID, POSITION_DELETES
from rowlake.codecs.stored_vectors import read_vector
from rowlake.errors import CorruptTableError
from rowlake.model.files import Content
from rowlake.model.predicate import Leaf, Op
from rowlake.model.schema import Schema
from rowlake.scan.cache import LIMIT_IN_BYTES, ByteLimitedCache
from rowlake.scan.equality import EqualityMatcher, equality_fields
from rowlake.scan.failures import reading
from rowlake.scan.open import opened
from rowlake.scan.project import Columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from rowlake.model.files import DeleteFile
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.scan.source import DataFileSource
    from rowlake.storage.files import Storage

    Positions = dict[str, NDArray[np.int64]]

# A position delete file larger than this is read for one data file at a time.
WHOLE_FILE_LIMIT_IN_BYTES = 64 * 1024 * 1024
_BATCH_ROWS = 1 << 20
_POSITIONS_TABLE = Schema(POSITION_DELETES)
_NONE = np.empty(0, np.int64)
_NAMED_PATHS = pa.dictionary(pa.int32(), pa.string())

_positions: ByteLimitedCache[Positions] = ByteLimitedCache(
    LIMIT_IN_BYTES, lambda held: sum(len(path) + found.nbytes for path, found in held.items())
)
_matchers: ByteLimitedCache[EqualityMatcher] = ByteLimitedCache(
    LIMIT_IN_BYTES, lambda held: held.size_in_bytes
)
# Each data file of a table may have another set of equality deletes, of the same delete files.
_keys: ByteLimitedCache[pa.Table] = ByteLimitedCache(LIMIT_IN_BYTES // 4, lambda held: held.nbytes)


@dataclass(frozen=True)
class Deletes:
    """What is deleted of one data file."""

    positions: NDArray[np.int64]
    matchers: tuple[EqualityMatcher, ...]

    def in_range(self, first_row: int, num_rows: int) -> NDArray[np.int64]:
        """Return the deleted positions of some rows, counted from the first of them."""
        low, high = np.searchsorted(self.positions, (first_row, first_row + num_rows))
        return self.positions[low:high] - first_row


def load_deletes(context: ScanContext, task: FileTask, storage: Storage) -> Deletes:
    """Return the deletes of a data file, read or taken from the cache."""
    groups: dict[tuple[int, ...], list[DeleteFile]] = defaultdict(list)
    for delete in task.deletes:
        if delete.content is Content.EQUALITY_DELETES:
            groups[tuple(sorted(delete.equality_ids))].append(delete)
    matchers = tuple(_matcher(ids, files, context, storage) for ids, files in groups.items())
    return Deletes(positions_in(task.deletes, task.location, storage), matchers)


def positions_in(
    deletes: Iterable[DeleteFile], data_file: str, storage: Storage
) -> NDArray[np.int64]:
    """Return the positions of one data file that position deletes and vectors delete, sorted."""
    positions = [
        _positions_of(delete, data_file, storage)
        for delete in deletes
        if delete.content is not Content.EQUALITY_DELETES
    ]
    return position_delete.merged(positions) if positions else _NONE


def all_positions(delete: DeleteFile, storage: Storage) -> Positions:
    """Return every position that a position delete file or vector deletes, by data file."""
    if delete.is_vector:
        if delete.referenced_data_file is None:
            raise CorruptTableError(delete.location, "its deletion vector names no data file")
        return _vector(delete, delete.referenced_data_file, storage)
    return _position_file(delete, None, storage)


def positions_for(delete: DeleteFile, wanted: Collection[str], storage: Storage) -> Positions:
    """Return what a position delete file deletes of some data files.

    The file is read batch by batch, so positions of other data files take no memory.
    """
    parts: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    with reading(delete.location), _opened_positions(delete, storage) as source:
        for pair in _pairs(source, None):
            for path, found in position_delete.positions_by_file([pair]).items():
                if path in wanted:
                    parts[path].append(found.copy())
    return {path: position_delete.merged(found) for path, found in parts.items()}


def deleted_keys(
    context: ScanContext, deletes: Iterable[DeleteFile], storage: Storage
) -> Iterator[pa.Table]:
    """Yield the keys of equality delete files: the columns they compare, nested ones as structs."""
    for delete in deletes:
        yield _keys_of(tuple(sorted(delete.equality_ids)), delete, context, storage)


def clear_caches() -> None:
    """Forget all parsed deletes."""
    _positions.clear()
    _matchers.clear()
    _keys.clear()


def _positions_of(delete: DeleteFile, data_file: str, storage: Storage) -> NDArray[np.int64]:
    if delete.is_vector:
        key: tuple[object, ...] = (*delete.key, data_file)
        found = _positions.get_or_make(key, lambda: _vector(delete, data_file, storage))
        return found[data_file]
    single = delete.file_size_in_bytes > WHOLE_FILE_LIMIT_IN_BYTES
    only = data_file if single else None
    key = (*delete.key, only)
    by_file = _positions.get_or_make(key, lambda: _position_file(delete, only, storage))
    return by_file.get(data_file, _NONE)


def _vector(delete: DeleteFile, data_file: str, storage: Storage) -> Positions:
    with reading(delete.location):
        bitmap = read_vector(delete, storage)
    return {data_file: deletion_vector.positions_of(bitmap)}


def _position_file(delete: DeleteFile, only: str | None, storage: Storage) -> Positions:
    with reading(delete.location), _opened_positions(delete, storage) as source:
        found = position_delete.positions_by_file(_pairs(source, only))
    return found if only is None else {only: found.get(only, _NONE)}


def _opened_positions(
    delete: DeleteFile, storage: Storage
) -> AbstractContextManager[DataFileSource]:
    return opened(
        delete.location, delete.file_format, storage, _POSITIONS_TABLE, dictionaries=["file_path"]
    )


def _pairs(source: DataFileSource, only: str | None) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield file paths and positions; units without the requested data file are skipped."""
    columns = Columns(source.location, source.schema, _targets(source), {})
    kept = source.kept(columns.leaves)
    bound = columns.bind(kept)
    units = source.units
    if only is not None:
        wanted = Leaf(("file_path",), Op.EQ, (only,), FILE_PATH_ID)
        matching = source.may_match(units, wanted, columns)
        units = [unit for unit, may in zip(units, matching, strict=True) if may]
    for unit in units:
        for batch in source.read(unit, kept, _BATCH_ROWS):
            paths, positions = bound.arrays(batch, batch.num_rows)
            if paths.null_count or positions.null_count:
                raise ValueError("a file path or a position is null")
            yield paths, positions


def _targets(source: DataFileSource) -> tuple[pa.Field, ...]:
    """Return the two columns; paths stay dictionaries of text where the file has them so."""
    path, position = POSITION_DELETES
    for field in source.schema.arrow:
        if field.name == path.name and field.type.equals(_NAMED_PATHS):
            path = path.with_type(field.type)
    return path, position


def _matcher(
    ids: tuple[int, ...], files: list[DeleteFile], context: ScanContext, storage: Storage
) -> EqualityMatcher:
    key = (frozenset(delete.key for delete in files), ids, _types(ids, context))

    def make() -> EqualityMatcher:
        tables = [_keys_of(ids, delete, context, storage) for delete in files]
        return EqualityMatcher(ids, pa.concat_tables(_unified(tables)))

    return _matchers.get_or_make(key, make)


def _keys_of(
    ids: tuple[int, ...], delete: DeleteFile, context: ScanContext, storage: Storage
) -> pa.Table:
    key = (delete.key, ids, _types(ids, context))
    return _keys.get_or_make(key, partial(_read_keys, ids, delete, context, storage))


def _types(ids: tuple[int, ...], context: ScanContext) -> tuple[str, ...]:
    return tuple(str(context.table_schema.by_id.get(key)) for key in ids)


def _unified(tables: list[pa.Table]) -> list[pa.Table]:
    """Return the tables with one schema: columns dropped from the table may differ in type."""
    schema = pa.unify_schemas([table.schema for table in tables], promote_options="permissive")
    return [table.cast(schema) for table in tables]


def _read_keys(
    ids: tuple[int, ...], delete: DeleteFile, context: ScanContext, storage: Storage
) -> pa.Table:
    table = context.table_schema
    with (
        reading(delete.location),
        opened(delete.location, delete.file_format, storage, table, context.name_mapping) as source,
    ):
        targets = equality_fields(ids, table, source.schema.arrow, delete.location)
        columns = Columns(delete.location, source.schema, targets, {})
        kept = source.kept(columns.leaves)
        bound = columns.bind(kept)
        schema = pa.schema(list(targets))
        batches = [
            pa.RecordBatch.from_arrays(bound.arrays(batch, batch.num_rows), schema=schema)
            for unit in source.units
            for batch in source.read(unit, kept, _BATCH_ROWS)
        ]
    keys = pa.Table.from_batches(batches, schema=schema)
    if keys.num_rows < delete.record_count:  # rows would come back
        cause = f"it has {keys.num_rows} keys, its manifest says {delete.record_count}"
        raise CorruptTableError(delete.location, cause)
    return keys
