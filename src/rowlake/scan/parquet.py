"""Read Parquet data files.

Units are row groups. One row group is asked for at a time, so that no more than its chunks are
in memory; reading happens on the caller's thread, since tasks already fill the cores.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from rowlake.model.task import BATCH_ROWS
from rowlake.scan.failures import guarded, reading
from rowlake.scan.footers import counted, shared_footer
from rowlake.scan.ids import with_ids
from rowlake.scan.parquet_pages import PageReader
from rowlake.scan.prune import may_match
from rowlake.scan.shape import without_views
from rowlake.scan.source import Unit
from rowlake.scan.statistics import RowGroupStatistics
from rowlake.storage.locations import split
from rowlake.storage.tally import count_read, is_counting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping
    from rowlake.scan.project import Columns
    from rowlake.storage.files import Storage

_OPTIONS: dict[str, Any] = {"coerce_int96_timestamp_unit": "us", "arrow_extensions_enabled": False}
# Scans that ask for large batches get them as long as a batch takes about this much memory.
_BATCH_BYTES = 32 * 1024 * 1024
# Decimals are the widest values that come from fixed physical types.
_WIDTHS = {"BOOLEAN": 1, "INT32": 16, "INT64": 16, "INT96": 16, "FLOAT": 4, "DOUBLE": 8}
# A page takes at least this many bytes, and counts its values in 31 bits.
_LEAST_PAGE, _MOST_PAGE_ROWS = 8, 1 << 31


class ParquetSource:
    """One open Parquet file."""

    def __init__(
        self,
        location: str,
        storage: Storage,
        table: Schema,
        name_mapping: NameMapping | None,
        *,
        dictionaries: Sequence[str] = (),
        shares_footer: bool = False,
    ) -> None:
        self.location = location
        self._dictionaries, self._storage = bool(dictionaries), storage
        with reading(location):
            self._stream = storage.open_input(location)
            self.metadata = self._footer(storage, shared=shares_footer)
            self._file = _parquet_file(self._stream, dictionaries, self.metadata)
            found = pa.schema([without_views(field) for field in self._file.schema_arrow])
            self._has_views = not found.equals(self._file.schema_arrow)
            self.units = self._row_groups()
            self.schema = with_ids(found, table, name_mapping, by_position=True)
        columns = self.metadata.schema
        self._paths = [columns.column(leaf).path for leaf in range(self.metadata.num_columns)]

    def _footer(self, storage: Storage, *, shared: bool) -> pq.FileMetaData:
        def parse() -> pq.FileMetaData:
            return pq.ParquetFile(self._stream, **_OPTIONS).metadata

        if shared:
            return shared_footer(self.location, storage, self._stream, parse)
        return counted(parse())

    def kept(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return the leaves that come when these are asked for.

        They are asked for by name, and a dot in a name may make it mean other leaves too.
        """
        names = {self._paths[leaf] for leaf in leaves}
        return frozenset(
            leaf for leaf, path in enumerate(self._paths) if not names.isdisjoint(_prefixes(path))
        )

    def read(self, unit: Unit, kept: frozenset[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield a row group's rows in order."""
        names = [self._paths[leaf] for leaf in sorted(kept)]
        group = self.metadata.row_group(unit.index)
        if is_counting():
            count_read(sum(group.column(leaf).total_compressed_size for leaf in kept))
        if batch_rows > BATCH_ROWS:
            most = _BATCH_BYTES * unit.num_rows // max(1, _size_in_memory(group, kept))
            batch_rows = max(BATCH_ROWS, min(batch_rows, most))
        batches = self._file.iter_batches(
            batch_size=batch_rows, row_groups=[unit.index], columns=names, use_threads=False
        )
        if self._has_views:
            batches = (_without_views(batch) for batch in batches)
        return guarded(self.location, batches)

    def rows_at(
        self, units: list[Unit], kept: frozenset[int], positions: NDArray[np.int64]
    ) -> pa.RecordBatch | None:
        """Return the rows at sorted positions, all in these row groups: only their pages are read.

        None where whole row groups must be read instead.
        """
        if self._has_views or self._dictionaries:
            return None
        columns, fields = [], []
        try:
            for leaf in sorted(kept):
                found = self._pages.column(leaf, units, positions, _OPTIONS)
                field = (
                    self._file.schema_arrow.field(self._paths[leaf]) if found is not None else None
                )
                if found is None or field is None or not found.type.equals(field.type):
                    return None
                columns.append(found)
                fields.append(field)
        except (ValueError, KeyError, OSError, pa.ArrowException):
            return None
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    @cached_property
    def _pages(self) -> PageReader:
        key = (self.location, self._stream.size(), self._storage.identity(self.location))
        is_local = split(self.location).is_local
        return PageReader(self._stream, self.metadata, key, is_local=is_local)

    def may_match(
        self, units: list[Unit], predicate: Predicate, columns: Columns
    ) -> NDArray[np.bool_]:
        """Return which row groups may match, by their statistics, then by Bloom filters."""
        with reading(self.location):
            statistics = RowGroupStatistics(self.metadata, self._stream, units, columns)
            return may_match(statistics, predicate)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._stream.close()

    def _row_groups(self) -> list[Unit]:
        units, first_row = [], 0
        for index in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(index)
            units.append(Unit(index, _offset(group), first_row, group.num_rows))
            first_row += group.num_rows
        if first_row != self.metadata.num_rows or any(unit.num_rows < 0 for unit in units):
            raise ValueError(f"its footer says {self.metadata.num_rows} and {first_row} rows")
        most = (self._stream.size() // _LEAST_PAGE + 1) * _MOST_PAGE_ROWS
        if first_row > most:
            raise ValueError(f"its footer says {first_row} rows, more than its bytes can hold")
        return units


def _parquet_file(
    stream: pa.NativeFile, dictionaries: Sequence[str], footer: pq.FileMetaData
) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            stream, metadata=footer, read_dictionary=list(dictionaries), **_OPTIONS
        )
    except KeyError:  # no such columns, or not by these names
        return pq.ParquetFile(stream, metadata=footer, **_OPTIONS)


def _size_in_memory(group: pq.RowGroupMetaData, leaves: frozenset[int]) -> int:
    """Return about how many bytes some columns of a row group take once they are decoded."""
    return sum(_decoded_size(group.column(leaf)) for leaf in leaves)


def _decoded_size(column: pq.ColumnChunkMetaData) -> int:
    width = _WIDTHS.get(column.physical_type)
    if width is not None:
        return width * int(column.num_values)
    size = int(column.total_uncompressed_size)
    # Texts that a dictionary holds once may come out many times.
    return _BATCH_BYTES + size if column.has_dictionary_page else size


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.cast(pa.schema([without_views(field) for field in batch.schema]))


def _prefixes(path: str) -> list[str]:
    names = path.split(".")
    return [".".join(names[:count]) for count in range(1, len(names) + 1)]


def _offset(group: pq.RowGroupMetaData) -> int:
    """Return where a row group starts: its first column's dictionary, else its data."""
    if not group.num_columns:
        return 4
    column = group.column(0)
    dictionary = column.dictionary_page_offset
    data: int = column.data_page_offset
    # Some writers set the dictionary's offset to 0 where there is none.
    return min(dictionary, data) if dictionary else data
