"""Reading table properties that steer commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Mapping


def whole_number(properties: Mapping[str, str], name: str, default: int, *, least: int = 0) -> int:
    """Return a property that is a whole number of at least `least`."""
    text = str(properties.get(name, default)).strip()
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise InvalidStatementError(
            f"Cannot write with table property {name}={text}: expected a whole number from "
            f"{least}. Change it with set_properties or ALTER TABLE … SET TBLPROPERTIES."
        )
    return value
