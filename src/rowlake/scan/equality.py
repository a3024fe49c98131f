"""Equality deletes: rows whose key is among the deleted keys.

Comes in: the keys of all delete files with one set of equality columns; then batches with those
columns. Goes out: which rows match. Null equals null and NaN equals NaN; -0.0 and 0.0 differ, as in
the key sets of Iceberg Java. No loop over rows: every column becomes a code (its place among the
distinct deleted values), codes of several columns are joined to one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from rowlake.errors import CorruptTableError
from rowlake.model.distinct import distinct
from rowlake.model.schema import field_id
from rowlake.scan.shape import path_to, restricted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rowlake.model.schema import Schema

    Codes = NDArray[np.int64]

_ABSENT = -1
_MOST_ROWS = 1 << 20


def equality_fields(
    ids: Sequence[int], table: Schema, found: pa.Schema, location: str
) -> tuple[pa.Field, ...]:
    """Return the columns that hold the equality ids, pruned to them.

    The table's types, or for columns dropped from the table those of the delete file.
    """
    if not ids:
        raise CorruptTableError(location, "its manifest names no equality columns")
    known = frozenset(ids) & table.by_id.keys()
    wanted = [restricted(field, known) for field in table.arrow]
    wanted += [restricted(field, frozenset(ids) - known) for field in found]
    fields = tuple(field for field in wanted if field is not None)
    missing = [key for key in ids if path_to(fields, key) is None]
    if missing:
        raise CorruptTableError(location, f"the delete file lacks equality columns {missing}")
    nested = [key for key in ids if pt.is_nested(_type_at(fields, key))]
    if nested:
        raise CorruptTableError(location, f"equality columns {nested} are not of simple types")
    return tuple(_optional(field) for field in fields)


def _type_at(fields: Sequence[pa.Field], key: int) -> pa.DataType:
    first, *below = _path(fields, key)
    found = fields[first].type
    for place in below:
        found = found.field(place).type
    return found


def _optional(field: pa.Field) -> pa.Field:
    """Return the field without `required`: what a file lacks is null for an equality delete."""
    if pt.is_struct(field.type):
        below = [_optional(field.type.field(at)) for at in range(field.type.num_fields)]
        field = field.with_type(pa.struct(below))
    return field.with_nullable(True)


class EqualityMatcher:
    """The deleted keys of one set of equality columns."""

    def __init__(self, ids: tuple[int, ...], keys: pa.Table) -> None:
        self.fields = tuple(keys.schema)
        self.size_in_bytes = 2 * keys.nbytes  # the sorted values, and their joins
        self._paths = [_path(self.fields, key) for key in ids]
        columns = [_leaf(keys, path) for path in self._paths]
        # Numbers first: what they rule out needs no look-up by text.
        self._order = sorted(range(len(columns)), key=lambda at: not _is_number(columns[at].type))
        self._encoders = [_encoder(columns[at]) for at in self._order]
        self._joins: list[Codes] = []
        self._build([columns[at] for at in self._order])

    @property
    def preferred_rows(self) -> int:
        """How many rows to match at once: a look-up by text first hashes all deleted values."""
        if isinstance(self._encoders[0], _NumberEncoder):
            return 0
        return min(self._encoders[0].size, _MOST_ROWS)

    def matches(self, columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
        """Return which rows are deleted; the columns are those of `fields`."""
        names = [str(at) for at in range(len(columns))]
        batch = pa.RecordBatch.from_arrays(list(columns), names=names)
        arrays = [_leaf(batch, self._paths[at]) for at in self._order]
        codes = self._encoders[0].encode(arrays[0])
        rows = np.flatnonzero(codes != _ABSENT)
        codes = codes[rows]
        for array, encoder, joined in zip(arrays[1:], self._encoders[1:], self._joins, strict=True):
            more = encoder.encode(array if len(rows) == len(array) else array.take(pa.array(rows)))
            codes = _looked_up(joined, codes * encoder.size + more, more != _ABSENT)
            rows, codes = rows[codes != _ABSENT], codes[codes != _ABSENT]
        found = np.zeros(batch.num_rows, np.bool_)
        found[rows] = True
        return found

    def _build(self, columns: Sequence[pa.Array]) -> None:
        codes = self._encoders[0].encode(columns[0])
        for array, encoder in zip(columns[1:], self._encoders[1:], strict=True):
            codes = codes * encoder.size + encoder.encode(array)
            joined = distinct(codes)
            self._joins.append(joined)
            codes = np.searchsorted(joined, codes)


class _Encoder(Protocol):
    size: int

    def encode(self, array: pa.Array) -> Codes:
        """Return each value's place among the deleted values, `_ABSENT` where it is not there."""


class _NumberEncoder:
    def __init__(self, array: pa.Array) -> None:
        numbers, valid = _numbers(array)
        self._values = distinct(numbers[valid])
        self._null = len(self._values) if not valid.all() else _ABSENT
        self.size = len(self._values) + 1

    def encode(self, array: pa.Array) -> Codes:
        numbers, valid = _numbers(array)
        codes = _looked_up(self._values, numbers, valid)
        codes[~valid] = self._null
        return codes


class _BytesEncoder:
    def __init__(self, array: pa.Array) -> None:
        self._values = pc.unique(array)
        self.size = len(self._values)

    def encode(self, array: pa.Array) -> Codes:
        codes = pc.index_in(array.cast(self._values.type), value_set=self._values)
        return np.asarray(pc.fill_null(codes, _ABSENT)).astype(np.int64)


def _encoder(array: pa.Array) -> _Encoder:
    return _NumberEncoder(array) if _is_number(array.type) else _BytesEncoder(array)


def _looked_up(values: Codes, wanted: Codes, valid: NDArray[np.bool_]) -> Codes:
    if not len(values):
        return np.full(len(wanted), _ABSENT, np.int64)
    places = np.searchsorted(values, wanted)
    places[places == len(values)] = 0
    return np.where(valid & (values[places] == wanted), places, _ABSENT)


def _is_number(arrow_type: pa.DataType) -> bool:
    tests = (pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_temporal)
    return any(test(arrow_type) for test in tests)


def _numbers(array: pa.Array) -> tuple[Codes, NDArray[np.bool_]]:
    """Return values as integers that differ where the values do, and where they are valid."""
    valid = np.asarray(pc.is_valid(array))
    arrow_type = array.type
    if pt.is_floating(arrow_type):
        return _float_bits(array), valid
    if pt.is_boolean(arrow_type):
        array = array.cast(pa.int64())
    elif pt.is_temporal(arrow_type):
        array = array.view(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    return np.asarray(pc.fill_null(array, 0)).astype(np.int64, copy=False), valid


def _float_bits(array: pa.Array) -> Codes:
    values = np.asarray(pc.fill_null(array.cast(pa.float64()), 0.0)).copy()
    values[np.isnan(values)] = np.nan
    return values.view(np.int64)


def _path(fields: Sequence[pa.Field], key: int) -> tuple[int, ...]:
    path = path_to(fields, key)
    assert path is not None, f"field {key} of {[field_id(field) for field in fields]}"
    return path


def _leaf(columns: pa.Table | pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    array = columns.column(path[0])
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array if len(path) == 1 else pc.struct_field(array, list(path[1:]))
