"""The maintenance verbs of `Table`; each names its module of `rowlake.maintain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowlake.catalog.handle import TableHandle
    from rowlake.engine.spark import Engine


class Maintenance:
    """What `Table` inherits: every verb looks at the newest metadata and keeps what came of it."""

    _handle: TableHandle
    _engine: Engine

    @property
    def handle(self) -> TableHandle:
        """The table's newest metadata."""
        raise NotImplementedError
