"""ORC data files.

Units are stripes, each read whole. pyarrow gives the ids (type attributes `iceberg.id`) but not
where stripes start: that is in the file's tail, a Protobuf message (ORC specification, "File
Tail"). It gives no statistics by stripe either, so nothing is pruned. It reads timestamps as
nanoseconds: years before 1678 or after 2261 are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc

from rowlake.errors import UnsupportedFeatureError
from rowlake.scan.failures import reading
from rowlake.scan.ids import from_orc, with_ids
from rowlake.scan.shape import leaf_ranges
from rowlake.scan.source import Unit
from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping
    from rowlake.scan.project import Columns
    from rowlake.storage.files import Storage

# Field numbers of the messages FileTail, Footer and StripeInformation.
_FOOTER, _STRIPES, _OFFSET, _ROWS = 2, 3, 1, 5
_LENGTHS = (2, 3, 4)  # of a stripe's index, data and footer


class OrcSource:
    """One open ORC file."""

    def __init__(
        self, location: str, storage: Storage, table: Schema, name_mapping: NameMapping | None
    ) -> None:
        self.location = location
        with reading(location):
            self._stream = storage.open_input(location)
            self._file = orc.ORCFile(self._stream)
            self._schema = self._file.schema
            tail = self._file.reader.serialized_file_tail()
            self.units, self._sizes = _stripes(tail)
            count_read(len(tail))
            _check_rows(self.units, self._file.nrows)
            known = from_orc(self._schema)
            self.schema = with_ids(known, table, name_mapping, by_position=False)

    def kept(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return the leaves that come when these are asked for: whole columns."""
        ranges = [numbers for _, numbers in leaf_ranges(self.schema.arrow)]
        wanted = [numbers for numbers in ranges if leaves.intersection(numbers)]
        return frozenset(leaf for numbers in wanted for leaf in numbers)

    def read(self, unit: Unit, kept: frozenset[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield a stripe's rows in order."""
        ranges = enumerate(numbers for _, numbers in leaf_ranges(self.schema.arrow))
        indices = [index for index, numbers in ranges if kept.intersection(numbers)]
        with reading(self.location):
            stripe = self._stripe(unit, indices)
        # Where columns lie in a stripe is not known, so it counts as a whole.
        count_read(self._sizes[unit.index])
        for start in range(0, stripe.num_rows, batch_rows):
            yield stripe.slice(start, batch_rows)

    def may_match(
        self,
        units: list[Unit],
        predicate: Predicate,  # noqa: ARG002
        columns: Columns,  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """Return True for every stripe: nothing is known of them."""
        return np.ones(len(units), np.bool_)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _stripe(self, unit: Unit, indices: list[int]) -> pa.RecordBatch:
        try:
            return self._file.read_stripe(unit.index, columns=indices)
        except pa.ArrowInvalid as error:
            if "nanosecond resolution" not in str(error):
                raise
            raise UnsupportedFeatureError(
                f"Cannot read {self.location}: it has timestamps outside of 1678 to 2261, "
                "which cannot be read from ORC files. Rewrite the file as Parquet."
            ) from error


def _check_rows(units: list[Unit], rows: int) -> None:
    found = sum(unit.num_rows for unit in units)
    if found != rows:
        raise ValueError(f"its stripes say {found} rows, its footer {rows}")


def _stripes(tail: bytes) -> tuple[list[Unit], list[int]]:
    """Return the stripes of a file, and their sizes in bytes; ValueError where they are damaged."""
    try:
        return _stripes_of(tail)
    except (LookupError, AssertionError) as error:
        raise ValueError(f"its tail is damaged ({error!r})") from error


def _stripes_of(tail: bytes) -> tuple[list[Unit], list[int]]:
    (footer,) = (value for number, value in _fields(tail) if number == _FOOTER)
    assert isinstance(footer, bytes)
    units, sizes, first_row = [], [], 0
    messages = (value for number, value in _fields(footer) if number == _STRIPES)
    for index, message in enumerate(messages):
        assert isinstance(message, bytes)
        facts = dict(_fields(message))
        numbers = {number: value for number, value in facts.items() if isinstance(value, int)}
        rows = numbers.get(_ROWS, 0)
        units.append(Unit(index, numbers.get(_OFFSET, 0), first_row, rows))
        sizes.append(sum(numbers.get(number, 0) for number in _LENGTHS))
        first_row += rows
    return units, sizes


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number, value) of a Protobuf message: varints as int, the rest as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}[kind]
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
