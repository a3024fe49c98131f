"""Reading table properties that are numbers; anybody may have written them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from collections.abc import Mapping


_SHOWN = 80
MOST = 2**63 - 1  # a long of Iceberg's; larger numbers fit neither Arrow nor a float


def whole_number(
    properties: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int = MOST
) -> int:
    """Return a property that is a whole number between `least` and `most`."""
    text = str(properties.get(name, default)).strip()
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        limits = f"from {least}" if most == MOST and value <= most else f"from {least} to {most}"
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise InvalidStatementError(
            f"Cannot use table property {name}={shown}: expected a whole number {limits}. "
            f"Change it with set_properties or ALTER TABLE … SET TBLPROPERTIES."
        )
    return value
