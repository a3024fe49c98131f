"""The table formats by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import UnsupportedFeatureError
from rowlake.iceberg.format import ICEBERG

if TYPE_CHECKING:
    from rowlake.model.format import Format

FORMATS = {ICEBERG.name: ICEBERG}


def format_named(name: str) -> Format:
    """Return a format by the name that users know."""
    found = FORMATS.get(name.lower())
    if found is None:
        known = ", ".join(sorted(FORMATS))
        raise UnsupportedFeatureError(f"Unknown table format {name} (expected one of: {known}).")
    return found
