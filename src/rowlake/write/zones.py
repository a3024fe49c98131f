"""Times with and without a zone: one becomes the other in the session's time zone."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_OFFSET = re.compile(r"^(?:UTC|GMT|UT)?([+-])(\d{1,2}):?(\d{2})?$")


def in_zone(times: pa.Array, zone: str) -> pa.Array:
    """Return instants as wall-clock times of a zone, and wall-clock times as instants (UTC).

    A time that the clock shows twice is the earlier of both; one that it skips raises
    `ArrowInvalid`.
    """
    unit, name = times.type.unit, _arrow_zone(zone)
    if times.type.tz is not None:
        return pc.local_timestamp(times.cast(pa.timestamp(unit, name)))
    return pc.assume_timezone(times, name, ambiguous="earliest").cast(pa.timestamp(unit, "UTC"))


def _arrow_zone(zone: str) -> str:
    """Return a zone of Java's as Arrow names it: offsets are `+02:00`."""
    found = _OFFSET.match(zone)
    if found is None:
        return "UTC" if zone in ("Z", "UT", "GMT", "GMT0", "Etc/UTC") else zone
    sign, hours, minutes = found[1], int(found[2]), found[3] or "00"
    return f"{sign}{hours:02d}:{minutes}"
