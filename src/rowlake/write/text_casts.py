"""Texts as values: what CSV and JSON files hold, and what users hand in as strings.

A text is read as SQL literals are written (`12.30`, `true`, `2026-01-31`, `2026-01-31 10:00:00`,
with `+02:00` or `Z` where it is an instant); spaces around it do not matter. What does not read as
the type raises `ArrowInvalid`, and so does a number with more digits than the type keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.write.zones import in_zone

if TYPE_CHECKING:
    from collections.abc import Callable

_WHOLE = pa.decimal128(38, 10)
# An offset follows a time of day, so the dash of a date is none.
_OFFSET = r"[0-9](Z|z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_HAS_TIME = r"[ Tt][0-9]{2}:"


def cast_text(texts: pa.Array, to: pa.DataType, zone: str | None) -> pa.Array:
    """Return texts as values of another type."""
    types = pa.types
    trimmed = pc.utf8_trim_whitespace(texts.cast(pa.string()))
    if types.is_integer(to):
        return _first_that_reads(
            trimmed, lambda found: found.cast(to), lambda found: found.cast(_WHOLE).cast(to)
        )
    if types.is_date(to):
        return _first_that_reads(trimmed, lambda found: found.cast(to), _date_of_midnight)
    if types.is_timestamp(to):
        return _timestamps(trimmed, to, zone)
    return trimmed.cast(to)


def _first_that_reads(
    texts: pa.Array, first: Callable[[pa.Array], pa.Array], second: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    try:
        return first(texts)
    except pa.ArrowInvalid:
        return second(texts)


def _date_of_midnight(texts: pa.Array) -> pa.Array:
    times = texts.cast(pa.timestamp("us"))
    dates = times.cast(pa.date32())
    if pc.all(pc.equal(dates.cast(pa.timestamp("us")), times), min_count=0).as_py() is False:
        raise pa.ArrowInvalid("a date would lose its time")
    return dates


def _timestamps(texts: pa.Array, to: pa.DataType, zone: str | None) -> pa.Array:
    """Return times; where some have an offset and some none, each is read as it is written."""
    has_offset = pc.and_(
        pc.match_substring_regex(texts, _OFFSET), pc.match_substring_regex(texts, _HAS_TIME)
    )
    local = pc.if_else(has_offset, None, texts).cast(pa.timestamp(to.unit))
    instants = pc.if_else(has_offset, texts, None).cast(pa.timestamp(to.unit, "UTC"))
    if to.tz is None:
        instants = _across(instants, zone)
    else:
        local = _across(local, zone)
    return pc.coalesce(local.cast(to), instants.cast(to))


def _across(times: pa.Array, zone: str | None) -> pa.Array:
    if times.null_count == len(times):
        return pa.nulls(len(times), pa.timestamp(times.type.unit, None if times.type.tz else "UTC"))
    if zone is None:
        raise pa.ArrowInvalid("the session's time zone is not known here")
    return in_zone(times, zone)
