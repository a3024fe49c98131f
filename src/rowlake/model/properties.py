"""Table properties that steer commits, and those that must not be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError, shown
from rowlake.secrets import is_secret

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


def validate_no_secrets(properties: Mapping[str, str], *, of: str = "table property") -> None:
    """Refuse properties that hold a secret: whoever reads the table's metadata reads them."""
    found = sorted(key for key in map(str, properties) if is_secret(key))
    if found:
        raise InvalidStatementError(
            f"Cannot set {of} {shown(found)}: its value would stand in plain text in the metadata "
            "files, which every reader of the table sees. Put secrets into the configuration of "
            "the catalog instead (connect(catalog={…}) or .pyiceberg.yaml)."
        )
