"""Columns of partial aggregates: what is fed to Arrow's grouping, and what is made of it.

A measure turns a column into one or two input columns that Arrow aggregates quickly and exactly,
says how groups of rows and then groups of groups are aggregated, and turns the outcome into the
result's type. Decimals of up to 18 digits travel as 64-bit integers, which Arrow sums several
times faster than 128-bit ones; a sum of them is widened before it could overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

if TYPE_CHECKING:
    Step = tuple[str, str, str]

KEYS = "key"
_EXACT = pa.decimal128(38, 0)
_LONG = pa.int64()
_LONG_DIGITS = 18
# Sums of 2^19 values of up to this many digits fit 64 bits.
_SUM_DIGITS = 12


@dataclass(frozen=True)
class Measure:
    """A count: of rows, or of the valid values of a column."""

    column: str | None
    result: pa.DataType = _LONG
    of_nothing: int | None = 0

    def inputs(self, batch: pa.RecordBatch, prefix: str) -> dict[str, pa.Array]:
        """Return the columns to aggregate."""
        if self.column is None:
            return {}
        return {f"{prefix}in": batch.column(self.column)}

    def first_steps(self, prefix: str) -> list[Step]:
        """Return how rows are aggregated: (column, function, output name)."""
        function = "count_all" if self.column is None else "count"
        return [(f"{prefix}in", function, f"{prefix}out")]

    def merge_steps(self, prefix: str) -> list[Step]:
        """Return how groups are aggregated again."""
        return [(f"{prefix}out", "sum", f"{prefix}out")]

    def widened(self, partial: pa.Table, prefix: str) -> dict[str, pa.ChunkedArray]:
        """Return the outputs in types that can be aggregated again."""
        return {f"{prefix}out": partial[f"{prefix}out"]}

    def result_of(self, merged: pa.Table, prefix: str) -> pa.ChunkedArray:
        """Return the result column."""
        return merged[f"{prefix}out"].cast(self.result)


@dataclass(frozen=True)
class Sum(Measure):
    """A sum; integers and decimals exactly."""

    of_nothing: int | None = None
    source: pa.DataType = _LONG

    def inputs(self, batch: pa.RecordBatch, prefix: str) -> dict[str, pa.Array]:
        """Return the values, as 64-bit integers where sums of them fit."""
        array = batch.column(self.column)
        if pt.is_decimal(self.source) and self.source.precision <= _SUM_DIGITS:
            array = as_longs(array)
        elif pt.is_int64(self.source) and not _sums_fit(array):
            array = array.cast(pa.decimal128(19, 0))
        elif pt.is_int64(self.source):
            array = array.cast(pa.int64())
        return {f"{prefix}in": array}

    def first_steps(self, prefix: str) -> list[Step]:
        """Return how rows are summed."""
        return [(f"{prefix}in", "sum", f"{prefix}out")]

    def widened(self, partial: pa.Table, prefix: str) -> dict[str, pa.ChunkedArray]:
        """Return the sums as 128-bit decimals."""
        out = partial[f"{prefix}out"]
        if pt.is_int64(out.type):
            scale = self.source.scale if pt.is_decimal(self.source) else 0
            out = _rescaled(out, scale)
        return {f"{prefix}out": out}


@dataclass(frozen=True)
class Extreme(Measure):
    """A minimum or maximum."""

    of_nothing: int | None = None
    function: str = "min"

    def inputs(self, batch: pa.RecordBatch, prefix: str) -> dict[str, pa.Array]:
        """Return the values; of floats also where they are NaN, which Arrow passes over."""
        array = batch.column(self.column)
        if _is_short_decimal(self.result):
            array = as_longs(array)
        inputs = {f"{prefix}in": array}
        if pt.is_floating(self.result):
            is_nan = pc.is_nan(array)
            inputs[f"{prefix}in"] = pc.if_else(is_nan, None, array)
            inputs[f"{prefix}nan"] = is_nan
        return inputs

    def first_steps(self, prefix: str) -> list[Step]:
        """Return how rows are compared."""
        return [(f"{prefix}in", self.function, f"{prefix}out"), *self._nan_step(prefix)]

    def merge_steps(self, prefix: str) -> list[Step]:
        """Return how groups are compared."""
        return [(f"{prefix}out", self.function, f"{prefix}out"), *self._nan_step(prefix)]

    def widened(self, partial: pa.Table, prefix: str) -> dict[str, pa.ChunkedArray]:
        """Return the outputs as they are."""
        names = [name for _, _, name in self.first_steps(prefix)]
        return {name: partial[name] for name in names}

    def result_of(self, merged: pa.Table, prefix: str) -> pa.ChunkedArray:
        """Return the result; a minimum is NaN only where nothing else is there."""
        out = merged[f"{prefix}out"]
        if _is_short_decimal(self.result):
            return _rescaled(out, self.result.scale).cast(self.result)
        if pt.is_floating(self.result):
            is_nan = pc.fill_null(merged[f"{prefix}nan"], False)
            if self.function == "min":
                is_nan = pc.and_(is_nan, pc.is_null(out))
            out = pc.if_else(is_nan, pa.scalar(float("nan"), self.result), out)
        return out.cast(self.result)

    def _nan_step(self, prefix: str) -> list[Step]:
        floating = pt.is_floating(self.result)
        return [(f"{prefix}nan", "any", f"{prefix}nan")] if floating else []


def measure_of(function: str, field: pa.Field | None) -> Measure:
    """Return the measure of an aggregate."""
    if function == "count_all" or field is None:
        return Measure(None)
    if function == "count":
        return Measure(field.name)
    if function == "sum":
        return Sum(field.name, _sum_type(field.type), source=field.type)
    return Extreme(field.name, field.type, function=function)


def key_column(array: pa.Array) -> pa.Array:
    """Return a group column such that equal keys are equal to Arrow, too."""
    if pt.is_floating(array.type):
        positive = pc.add(array, pa.scalar(0.0, array.type))
        nan = pa.scalar(float("nan"), array.type)
        return pc.if_else(pc.is_nan(positive), nan, positive)
    return as_longs(array) if _is_short_decimal(array.type) else array


def restored_key(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Return a group column in its own type again."""
    if _is_short_decimal(target):
        column = _rescaled(column, target.scale)
    return column.cast(target)


def as_longs(array: pa.Array) -> pa.Array:
    """Return the unscaled values of decimals of at most 18 digits."""
    valid, data = array.buffers()
    words = np.frombuffer(data, np.int64, count=2 * (array.offset + len(array)))
    low = np.ascontiguousarray(words[::2])
    buffers = [valid, pa.py_buffer(low)]
    return pa.Array.from_buffers(pa.int64(), len(array), buffers, offset=array.offset)


def _rescaled(column: pa.ChunkedArray, scale: int) -> pa.ChunkedArray:
    """Return unscaled 64-bit values as decimals of this scale."""
    whole = column.cast(pa.decimal128(19, 0)).combine_chunks()
    valid, data = whole.buffers()
    kind = pa.decimal128(38, scale)
    scaled = pa.Array.from_buffers(kind, len(whole), [valid, data], offset=whole.offset)
    return pa.chunked_array([scaled])


def _sum_type(source: pa.DataType) -> pa.DataType:
    if pt.is_decimal(source):
        return pa.decimal128(min(38, source.precision + 10), source.scale)
    return pa.float64() if pt.is_floating(source) else _EXACT


def _sums_fit(array: pa.Array) -> bool:
    """Return whether sums of very many such values fit 64 bits."""
    limits = pc.min_max(array).as_py()
    largest = max(abs(limits["min"] or 0), abs(limits["max"] or 0))
    return bool(largest < 1 << 40)


def _is_short_decimal(kind: pa.DataType) -> bool:
    return bool(pt.is_decimal(kind) and kind.precision <= _LONG_DIGITS)
