"""What a partition value says of the source column: the span of values that lead to it.

Comes in: partition values and their transform. Goes out: the smallest and the largest source
value, inclusive, that the transform may have turned into them; null where nothing is known.
Comparing a predicate with spans gives both projections of the spec (Scan Planning): inclusive
("some value of the span matches") and strict ("all of them do").
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.transform import DATE_TRANSFORMS, Transform

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

# Above every UTF-8 text that starts with what comes before it: no text has this byte.
ABOVE_TEXT = b"\xff"
_DIGITS = Context(prec=80)
_DATE_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}


def source_span(
    transform: Transform, least: pa.Array, greatest: pa.Array, source: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """Return the least and the greatest source value behind partition values between two.

    The greatest may be something above all of them; that of text and bytes comes as binary.
    """
    if transform.name in DATE_TRANSFORMS:
        lower = _date_edge(transform.name, least, source, end=False)
        return lower, _date_edge(transform.name, greatest, source, end=True)
    lower, upper = least.cast(source), greatest.cast(source)
    if transform.name == "identity":
        return lower, upper
    if pa.types.is_signed_integer(source):
        return _integer_span(lower, upper, transform.width)
    if pa.types.is_decimal(source):
        return lower, _decimal_ends(upper, transform.width, source)
    return lower, _text_ends(upper, transform.width)


def _integer_span(lower: pa.Array, upper: pa.Array, width: int) -> tuple[pa.Array, pa.Array]:
    """Add the width; a value so high that the lowest integers wrap around to it is not known."""
    kind = upper.type
    highest = pa.scalar(np.iinfo(kind.to_pandas_dtype()).max - width, kind)
    wrapped = pc.greater(upper, highest).fill_null(False)
    nothing = pa.scalar(None, kind)
    ends = pc.add(pc.if_else(wrapped, nothing, upper), pa.scalar(width - 1, kind))
    return pc.if_else(wrapped, nothing, lower), ends


def _decimal_ends(values: pa.Array, width: int, source: pa.DataType) -> pa.Array:
    """Add the width less one unit; no value has more digits than the type."""
    wide = pa.decimal256(min(source.precision + 12, 76), source.scale)
    step, most = (
        Decimal(unscaled).scaleb(-source.scale, _DIGITS)
        for unscaled in (width - 1, 10**source.precision - 1)
    )
    ends = pc.add(values.cast(wide), pa.scalar(step, wide))
    highest = pa.scalar(most, ends.type)
    return pc.min_element_wise(ends, highest, skip_nulls=False).cast(source)


def _text_ends(values: pa.Array, width: int) -> pa.Array:
    """Text shorter than the width is whole; longer text goes on below `ABOVE_TEXT`."""
    if not pa.types.is_string(values.type) and not pa.types.is_large_string(values.type):
        return _bytes_ends(values.cast(pa.binary()), width)
    plain = values.cast(pa.binary())
    longer = pc.binary_join_element_wise(plain, pa.scalar(ABOVE_TEXT), pa.scalar(b""))
    return pc.if_else(pc.less(pc.utf8_length(values), width), plain, longer)


def _bytes_ends(values: pa.Array, width: int) -> pa.Array:
    """Bytes cut at the width end below the next number of that width; none follows all ones."""
    cut = pc.greater_equal(pc.binary_length(values), width).fill_null(False)
    rows = np.frombuffer(b"".join(values.filter(cut).to_pylist()), dtype=np.uint8)
    rows = rows.reshape(-1, width)
    carry = np.cumprod(rows[:, ::-1] == 0xFF, axis=1)[:, ::-1].astype(np.uint8)
    added = np.concatenate([carry[:, 1:], np.ones((len(rows), 1), np.uint8)], axis=1)
    following = [bytes(row) for row in rows + added]
    known = ~carry[:, 0].astype(bool) if width else np.zeros(len(rows), dtype=bool)
    ends = pa.array(following, pa.binary(), mask=~known)
    return pc.replace_with_mask(values, cut, ends)


def _date_edge(name: str, values: pa.Array, source: pa.DataType, *, end: bool) -> pa.Array:
    """Return the first or the last instant of each year, month, day or hour.

    Old writers rounded times before 1970 towards zero, so a period that is not after it may also
    hold what belongs to the period before; only `day` of a date never could go wrong.
    """
    of_date = pa.types.is_date32(source)
    periods = np.asarray(values.cast(pa.int32()).fill_null(0)).astype(np.int64)
    if end:
        periods = periods + 1
    elif not (of_date and name == "day"):
        periods = np.where(periods <= 0, periods - 1, periods)
    unit = "D" if of_date else source.unit
    edges, unknown = _converted(periods, _DATE_UNITS[name], unit)
    edges = edges - 1 if end else edges
    mask = np.asarray(values.is_null()) | unknown
    whole = pa.array(edges, pa.int64(), mask=mask)
    return whole.cast(pa.int32()).cast(source) if of_date else whole.cast(source)


def _converted(periods: Numbers, coarse: str, fine: str) -> tuple[Numbers, Numbers]:
    """Return instants in the fine unit, and where they do not fit in it."""
    limit = {"D": 2**31 - 400, "s": 2**62, "ms": 2**62, "us": 2**62, "ns": 2**63 - 10**14}[fine]
    hours = periods.view(f"datetime64[{coarse}]").astype("datetime64[h]").view(np.int64)
    per_hour = {"D": 1 / 24, "s": 3600, "ms": 3.6e6, "us": 3.6e9, "ns": 3.6e12}[fine]
    unknown = np.abs(hours * per_hour) > limit
    safe = np.where(unknown, 0, periods)
    return safe.view(f"datetime64[{coarse}]").astype(f"datetime64[{fine}]").view(np.int64), unknown
