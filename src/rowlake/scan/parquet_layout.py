"""What pyarrow does not say of a Parquet file: its schema as bytes, and where its pages are.

The footer is read as Thrift's compact protocol (Parquet format, `FileMetaData`, `OffsetIndex`).
Anything unexpected raises ValueError: the caller reads whole row groups instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_LONG_SIZE = 15
_DEEPEST = 32
# Tokens of a page's location: three fields of one number each, then the end of the struct.
_TOKENS = (0x16, None, 0x15, None, 0x16, None, 0x00)


class Chunk(NamedTuple):
    """A column chunk: its numbers for type and codec, and where its offset index is."""

    physical_type: int
    codec: int
    index_at: int
    index_length: int


@dataclass(frozen=True)
class Layout:
    """A file's flat columns, by leaf: the bytes of their schema; chunks by row group and leaf."""

    columns: dict[int, bytes]
    groups: list[list[Chunk]]

    @property
    def size_in_memory(self) -> int:
        """How many bytes it takes, about."""
        return 200 * (1 + len(self.columns) + sum(map(len, self.groups)))


def read_layout(footer: bytes) -> Layout:
    """Return the layout that a footer describes."""
    reader = _Reader(footer)
    columns: dict[int, bytes] = {}
    groups: list[list[Chunk]] = []
    try:
        for number, kind in reader.fields():
            if number == 2 and kind == _LIST:
                columns = _flat_columns(reader)
            elif number == 4 and kind == _LIST:
                groups = [_row_group(reader) for _ in range(reader.size_of_list(_STRUCT))]
            else:
                reader.skip(kind)
    except IndexError as error:
        raise ValueError("the footer ends early") from error
    return Layout(columns, groups)


def page_locations(index: bytes) -> tuple[Numbers, Numbers, Numbers]:
    """Return offsets, sizes and first rows of the pages that an offset index lists."""
    reader = _Reader(index)
    try:
        if next(reader.fields(), None) != (1, _LIST):
            raise ValueError("an offset index lists no pages")
        count = reader.size_of_list(_STRUCT)
    except IndexError as error:
        raise ValueError("an offset index ends early") from error
    data = np.frombuffer(index, np.uint8)[reader.at :]
    # Every byte below 0x80 ends a token: a header, a number or the end of a struct.
    ends = np.flatnonzero(data < 0x80)[: len(_TOKENS) * count].reshape(count, len(_TOKENS))
    for place, expected in enumerate(_TOKENS):
        if expected is not None and not (data[ends[:, place]] == expected).all():
            raise ValueError("an offset index is unusual")
    values = [_numbers(data, ends[:, place - 1] + 1, ends[:, place]) for place in (1, 3, 5)]
    return values[0], values[1], values[2]


def _numbers(data: NDArray[np.uint8], first: Numbers, last: Numbers) -> Numbers:
    """Return the zigzag numbers between places of the data."""
    values = np.zeros(len(first), np.uint64)
    longest = int((last - first).max(initial=-1)) + 1
    if longest > 9:
        raise ValueError("a number is too long")
    for place in range(longest):
        at = first + place
        part = np.where(at <= last, data[np.minimum(at, len(data) - 1)] & 0x7F, 0)
        values |= part.astype(np.uint64) << np.uint64(7 * place)
    numbers: Numbers = (values >> np.uint64(1)).astype(np.int64)
    if (values & np.uint64(1)).any():
        raise ValueError("a number is negative")
    return numbers


def _flat_columns(reader: _Reader) -> dict[int, bytes]:
    """Return the schema elements of columns right below the root, by leaf number."""
    count = reader.size_of_list(_STRUCT)
    columns: dict[int, bytes] = {}
    leaf, open_children = -1, list[int]()
    for place in range(count):
        start = reader.at
        children = 0
        for number, kind in reader.fields():
            if number == 5 and kind == _I32:
                children = reader.number()
            else:
                reader.skip(kind)
        while open_children and not open_children[-1]:
            open_children.pop()
        depth = len(open_children)
        if open_children:
            open_children[-1] -= 1
        if place and not children:
            leaf += 1
            if depth == 1:
                columns[leaf] = reader.data[start : reader.at]
        if children:
            open_children.append(children)
    return columns


def _row_group(reader: _Reader) -> list[Chunk]:
    chunks: list[Chunk] = []
    for number, kind in reader.fields():
        if number == 1 and kind == _LIST:
            chunks = [_chunk(reader) for _ in range(reader.size_of_list(_STRUCT))]
        else:
            reader.skip(kind)
    return chunks


def _chunk(reader: _Reader) -> Chunk:
    found = {"type": -1, "codec": -1, "at": 0, "length": 0}
    for number, kind in reader.fields():
        if number == 3 and kind == _STRUCT:
            for inner, inner_kind in reader.fields():
                if inner in (1, 4) and inner_kind == _I32:
                    found["type" if inner == 1 else "codec"] = reader.number()
                else:
                    reader.skip(inner_kind)
        elif number in (4, 5) and kind in (_I32, _I64):
            found["at" if number == 4 else "length"] = reader.number()
        else:
            reader.skip(kind)
    return Chunk(found["type"], found["codec"], found["at"], found["length"])


class _Reader:
    """Reads Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the fields of a struct: number and type; each must be read or skipped."""
        number = 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if not head:
                return
            step = head >> 4
            number = number + step if step else self.number()
            yield number, head & 0x0F

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def number(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def size_of_list(self, kind: int) -> int:
        """Return how many values a list has, all of one type."""
        size, found = self._list()
        if found != kind and size:
            raise ValueError("a list is of an unexpected type")
        if size > len(self.data) - self.at:
            raise ValueError("a list is too long")
        return size

    def _list(self) -> tuple[int, int]:
        head = self.data[self.at]
        self.at += 1
        size = head >> 4
        return (self.varint() if size == _LONG_SIZE else size), head & 0x0F

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value."""
        if depth > _DEEPEST:
            raise ValueError("the footer is nested too deep")
        if kind in (_TRUE, _FALSE):
            return
        if kind in (_I16, _I32, _I64):
            while self.data[self.at] >= 0x80:
                self.at += 1
            self.at += 1
        elif kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind in (_LIST, _SET):
            self._skip_list(depth)
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        else:
            raise ValueError(f"the footer has a value of type {kind}")

    def _skip_list(self, depth: int) -> None:
        size, kind = self._list()
        if size > len(self.data) - self.at:
            raise ValueError("a list is too long")
        for _ in range(size):
            # In a list a boolean takes a byte.
            self.skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth + 1)
