"""Times as users write them -> milliseconds since 1970; the machine's time zone."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from rowlake.errors import InvalidStatementError


def to_ms(value: Any) -> int:
    """Return ms since 1970 of a datetime, a date, ISO text, or a number of ms.

    What has no time zone is in the machine's own zone, as Python's naive datetimes are.
    """
    if isinstance(value, bool):
        raise InvalidStatementError(f"{value!r} is not a time.")
    if isinstance(value, (int, float)):
        return int(value)
    if isinstance(value, str):
        value = _parsed(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime.datetime):
        raise InvalidStatementError(f"{value!r} is not a time: give a datetime or ISO text.")
    return int(value.timestamp() * 1000)


def _parsed(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise InvalidStatementError(
            f"{text!r} is not a time: write it as 2024-05-01 or 2024-05-01T12:30:00+00:00."
        ) from error


def machine_zone() -> str:
    """Return the name of the machine's time zone, as a new Spark session has it."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named:
        return named
    place = str(Path("/etc/localtime").resolve())
    _, found, name = place.partition("zoneinfo/")
    return name if found else "UTC"
