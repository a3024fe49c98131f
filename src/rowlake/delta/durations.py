"""Durations of table properties: `interval 1 week`, `interval 30 days 12 hours`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MS = {
    "week": 7 * 86_400_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}
_PART = re.compile(r"(-?\d+)\s+(week|day|hour|minute|second|millisecond)s?", re.IGNORECASE)
DAY_MS = _MS["day"]


def duration_ms(properties: Mapping[str, str], name: str, default: str) -> int:
    """Return a property that is a duration, in milliseconds.

    Raises InvalidStatementError for anything else; months and years have no fixed length.
    """
    text = properties.get(name, default)
    plain = re.sub(r"(?i)^\s*interval\s+", "", text)
    parts = _PART.findall(plain)
    if not parts or _PART.sub("", plain).strip():
        raise InvalidStatementError(
            f"{name} must be a duration such as '{default}', not {text!r} "
            f"(units: {', '.join(_MS)})."
        )
    found = sum(int(count) * _MS[unit.lower()] for count, unit in parts)
    if found < 0:
        raise InvalidStatementError(f"{name} must not be negative, as {text!r} is.")
    return found
