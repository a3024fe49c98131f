"""The metadata file of a table, changed in place: what a hostile writer could store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def metadata_path(table) -> Path:
    return Path(str(table.handle.metadata_location))


def edit_metadata(table, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change the JSON of a table's newest metadata; return where it is."""
    path = metadata_path(table)
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    return path
