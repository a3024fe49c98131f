"""Properties as another tool may have set them, without the checks of rowlake's own verbs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.commit.metadata import commit_metadata
from rowlake.model.metadata_change import SetProperties

if TYPE_CHECKING:
    from rowlake.table import Table


def set_unchecked(table: Table, properties: dict[str, str]) -> None:
    """Set properties whatever their values."""
    commit_metadata(table.handle, "set properties", SetProperties(properties))
