"""Parse sizes, ages and settings given to options."""

from __future__ import annotations

import re
import time

import typer

from rowlake.errors import InvalidStatementError
from rowlake.times import to_ms

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.IGNORECASE)
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def size_in_bytes(option: str, text: str) -> int:
    """Return a size in bytes: `500000`, `10MB` (powers of 1000), `10MiB` (powers of 1024)."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"{option} takes a size, such as 500000 or 10GB, not {text!r}")
    unit = found[2].lower()
    base = 1024 if "i" in unit else 1000
    return int(float(found[1]) * base ** _POWERS[unit.rstrip("b").rstrip("i")])


def moment(text: str) -> int:
    """Return ms since 1970 of a time, or of an age: `7d`, `36h`."""
    found = _AGE.fullmatch(text.strip())
    if found:
        return int((time.time() - float(found[1]) * _SECONDS[found[2].lower()]) * 1000)
    try:
        return to_ms(text)
    except InvalidStatementError as error:
        raise typer.BadParameter(f"{error} An age is written as 7d or 36h.") from error


def pair(option: str, text: str) -> tuple[str, str]:
    """Return the two sides of `KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not key.strip() or not equals:
        raise typer.BadParameter(f"{option} takes KEY=VALUE, not {text!r}")
    return key.strip(), value.strip()
