"""Read numbers from table properties, and refuse properties that must not be set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError, shown
from rowlake.secrets import is_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_FORMAT = "write.format.default"
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
        given = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise InvalidStatementError(
            f"Cannot use table property {name}={given}: expected a whole number {limits}. "
            f"Change it with set_properties or ALTER TABLE … SET TBLPROPERTIES."
        )
    return value


def validate_no_secrets(properties: Mapping[str, str], *, of: str = "table property") -> None:
    """Refuse properties that hold a secret: every reader of the table's metadata would see it."""
    found = sorted(key for key in map(str, properties) if is_secret(key))
    if found:
        raise InvalidStatementError(
            f"Cannot set {of} {shown(found)}: its value would stand in plain text in the metadata "
            "files, which every reader of the table sees. Put secrets into the configuration of "
            "the catalog instead (connect(catalog={…}), or its configuration file)."
        )
