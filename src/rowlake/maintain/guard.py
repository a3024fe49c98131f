"""What every maintenance verb checks first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.transaction import holding
from rowlake.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle


def check_outside_transaction(handle: TableHandle, verb: str) -> None:
    """Maintenance commits step by step and removes files, which a transaction cannot take back."""
    if holding(handle) is not None:
        raise UnsupportedFeatureError(
            f"Cannot run {verb} on {handle.name} inside a transaction: run it on its own."
        )
