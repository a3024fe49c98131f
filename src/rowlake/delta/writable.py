"""Whether a table can be written: asked before any file is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.delta import features
from rowlake.delta.commit_file import validate_storage
from rowlake.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle


def validate_writable(handle: DeltaHandle) -> None:
    """Refuse storage without put-if-absent, features that are not known, and transactions."""
    validate_place(handle)
    features.validate_writable(handle.state.protocol, handle.state.metadata, handle.name)


def validate_place(handle: DeltaHandle) -> None:
    """Refuse storage that cannot hold commits, and transactions."""
    if getattr(handle.catalog, "holds_commits", False):
        raise UnsupportedFeatureError(
            f"Cannot write to {handle.name} in a transaction: a commit to a Delta table cannot "
            "wait for those of other tables. Nothing was written."
        )
    validate_storage(handle.folder, handle.storage)
