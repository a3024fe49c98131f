"""Rows of a Parquet file at some positions: only the pages that hold them are read.

pyarrow reads whole column chunks. Here the pages are found by the offset index, copied one after
the other behind a footer of their own, and given to pyarrow as a small file in memory: it decodes
them as it decodes any other. Only for columns at the top level, and for files with an offset index;
for all others, and where most pages are needed, the answer is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowlake.scan.cache import ByteLimitedCache
from rowlake.scan.parquet_layout import Layout, page_locations, read_layout
from rowlake.storage.ranges import read_ranges
from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from rowlake.scan.parquet_layout import Chunk
    from rowlake.scan.source import Unit

    Numbers = NDArray[np.int64]

_MAGIC = b"PAR1"
_TAIL = 8
_ROOT = bytes([0x48, 6]) + b"schema" + bytes([0x15, 2, 0])
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
# Where more of the pages are needed than this share, whole row groups are read.
_MOST_PAGES = 0.5

_layouts: ByteLimitedCache[Layout] = ByteLimitedCache(
    32 * 1024 * 1024, lambda layout: layout.size_in_memory
)
_pages: ByteLimitedCache[Pages] = ByteLimitedCache(
    64 * 1024 * 1024, lambda pages: 3 * pages.offsets.nbytes
)


@dataclass(frozen=True)
class Pages:
    """The data pages of a column chunk: where they are, and the first row of each."""

    offsets: Numbers
    sizes: Numbers
    first_rows: Numbers


class PageReader:
    """Reads rows of one open file; `key` identifies the file in caches."""

    def __init__(
        self, stream: pa.NativeFile, metadata: pq.FileMetaData, key: Hashable, *, is_local: bool
    ) -> None:
        self._stream, self._metadata, self._key = stream, metadata, key
        self._is_local = is_local

    def column(
        self, leaf: int, units: Sequence[Unit], positions: Numbers, options: dict[str, Any]
    ) -> pa.Array | None:
        """Return the values of a leaf at sorted positions, all of them in some of the units."""
        layout = _layouts.get_or_make(self._key, self._layout)
        if leaf not in layout.columns:
            return None
        chosen = [self._chosen(layout, leaf, unit, positions) for unit in units]
        wanted = [each for each in chosen if each is not None]
        if len(wanted) < len(chosen):
            return None
        read = sum(len(each.pages) for each in wanted)
        if read > _MOST_PAGES * sum(len(each.all.offsets) for each in wanted):
            return None
        table = self._decoded(layout, leaf, wanted, options)
        places, base = [], 0
        for each in wanted:
            counts = each.counts
            starts = base + np.cumsum(counts) - counts
            page = np.searchsorted(each.pages, each.page_of_row)
            first = each.all.first_rows[each.page_of_row]
            places.append(starts[page] + each.rows - first)
            base += int(counts.sum())
        if table.num_rows != base:
            raise ValueError(f"pages have {table.num_rows} rows, the offset index says {base}")
        found: pa.Array = table.column(0).combine_chunks().take(pa.array(np.concatenate(places)))
        return found

    def _layout(self) -> Layout:
        length = self._metadata.serialized_size
        footer = self._stream.read_at(length, self._stream.size() - _TAIL - length)
        count_read(length)
        return read_layout(footer)

    def _chosen(self, layout: Layout, leaf: int, unit: Unit, positions: Numbers) -> _Chosen | None:
        chunk = layout.groups[unit.index][leaf]
        if chunk.index_at <= 0 or chunk.index_length <= 0:
            return None
        key = (self._key, unit.index, leaf)
        pages = _pages.get_or_make(key, lambda: self._pages_of(chunk, unit))
        low, high = np.searchsorted(positions, (unit.first_row, unit.first_row + unit.num_rows))
        return _Chosen(unit, chunk, pages, positions[low:high] - unit.first_row)

    def _pages_of(self, chunk: Chunk, unit: Unit) -> Pages:
        end = self._stream.size()
        if chunk.index_at + chunk.index_length > end:
            raise ValueError("an offset index is outside of the file")
        data = self._stream.read_at(chunk.index_length, chunk.index_at)
        count_read(len(data))
        offsets, sizes, first_rows = page_locations(data)
        if not len(offsets) or first_rows[0] or (np.diff(first_rows) < 0).any():
            raise ValueError("an offset index is not ascending")
        if (np.diff(offsets) < sizes[:-1]).any() or first_rows[-1] >= max(unit.num_rows, 1):
            raise ValueError("pages of an offset index overlap")
        if int(offsets[-1] + sizes[-1]) > end:
            raise ValueError("pages of an offset index are outside of the file")
        return Pages(offsets, sizes, first_rows)

    def _decoded(
        self, layout: Layout, leaf: int, wanted: list[_Chosen], options: dict[str, Any]
    ) -> pa.Table:
        ranges = [each.ranges(self._metadata, leaf) for each in wanted]
        starts = np.concatenate([one for one, _ in ranges])
        lengths = np.concatenate([one for _, one in ranges])
        body = read_ranges(self._stream, starts, lengths, is_local=self._is_local)
        groups, at = [], len(_MAGIC)
        name = self._metadata.schema.column(leaf).name.encode()
        for each, (_, sizes) in zip(wanted, ranges, strict=True):
            has_dictionary = len(sizes) > len(each.pages)
            dictionary = int(sizes[0]) if has_dictionary else 0
            groups.append(_row_group(each, name, at, dictionary, int(sizes.sum())))
            at += int(sizes.sum())
        rows = sum(int(each.counts.sum()) for each in wanted)
        footer = _footer(layout.columns[leaf], rows, groups)
        size = len(footer).to_bytes(4, "little")
        file = pa.py_buffer(b"".join([_MAGIC, body.tobytes(), footer, size, _MAGIC]))
        return pq.ParquetFile(pa.BufferReader(file), **options).read(use_threads=False)


@dataclass(frozen=True)
class _Chosen:
    """The pages of one column chunk that hold some rows, counted from the row group's first."""

    unit: Unit
    chunk: Chunk
    all: Pages
    rows: Numbers

    @property
    def page_of_row(self) -> Numbers:
        return np.searchsorted(self.all.first_rows, self.rows, side="right") - 1

    @property
    def pages(self) -> Numbers:
        return np.unique(self.page_of_row)

    @property
    def counts(self) -> Numbers:
        """The rows of each page."""
        ends = np.append(self.all.first_rows[1:], self.unit.num_rows)
        return (ends - self.all.first_rows)[self.pages]

    def ranges(self, metadata: pq.FileMetaData, leaf: int) -> tuple[Numbers, Numbers]:
        """Return where the bytes are: the dictionary, where there is one, then the pages."""
        starts, lengths = self.all.offsets[self.pages], self.all.sizes[self.pages]
        chunk = metadata.row_group(self.unit.index).column(leaf)
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        first = int(self.all.offsets[0])
        if 0 < begin < first:
            starts, lengths = np.append(begin, starts), np.append(first - begin, lengths)
        return starts.astype(np.int64), lengths.astype(np.int64)


# --- a footer, in Thrift's compact protocol


def _footer(column: bytes, rows: int, groups: list[bytes]) -> bytes:
    parts = [
        _number(1, _I32, 2),
        bytes([0x10 | _LIST, 2 << 4 | _STRUCT]),
        _ROOT,
        column,
        _number(1, _I64, rows),
        bytes([0x10 | _LIST]),
        _list_head(len(groups), _STRUCT),
        *groups,
        b"\0",
    ]
    return b"".join(parts)


def _row_group(chosen: _Chosen, name: bytes, at: int, dictionary: int, size: int) -> bytes:
    rows = int(chosen.counts.sum())
    fields = [
        _number(1, _I32, chosen.chunk.physical_type),
        bytes([0x10 | _LIST, 1 << 4 | _I32, 0]),  # encodings, which pages name themselves
        bytes([0x10 | _LIST, 1 << 4 | _BINARY]),
        _varint(len(name)),
        name,
        _number(1, _I32, chosen.chunk.codec),
        _number(1, _I64, rows),
        _number(1, _I64, size),
        _number(1, _I64, size),
        _number(2, _I64, at + dictionary),
        _number(2, _I64, at) if dictionary else b"",
        b"\0",
    ]
    chunk = b"".join([_number(2, _I64, at), bytes([0x10 | _STRUCT]), *fields, b"\0"])
    head = bytes([0x10 | _LIST]) + _list_head(1, _STRUCT)
    return b"".join([head, chunk, _number(1, _I64, size), _number(1, _I64, rows), b"\0"])


def _list_head(size: int, kind: int) -> bytes:
    return bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + _varint(size)


def _number(step: int, kind: int, value: int) -> bytes:
    return bytes([step << 4 | kind]) + _varint(value << 1)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
