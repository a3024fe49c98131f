"""A table in memory as the rooms hold it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rowlake.model.handle import MAIN, TableHandle
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.model.format import Capabilities, Format
    from rowlake.model.handle import Ref
    from rowlake.model.names import Identifier
    from rowlake.model.view import SnapshotInfo
    from tests.memory_format.state import MemoryStore, MemoryTable


@dataclass(frozen=True)
class MemoryHandle(TableHandle):
    """A version of a table; `catalog` is the store that may have a newer one."""

    identifier: Identifier
    catalog: MemoryStore = field(repr=False)
    table: MemoryTable
    io_properties: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def storage(self) -> Storage:
        return Storage(self.io_properties)

    @property
    def format(self) -> Format:
        from tests.memory_format.format import MemoryFormat

        return MemoryFormat(self.catalog)

    @property
    def uuid(self) -> str:
        return self.table.uuid

    @property
    def location(self) -> str:
        return self.table.location

    @property
    def version(self) -> str | None:
        return None if self.table.version is None else str(self.table.version)

    @property
    def format_version(self) -> int:
        return self.table.flavour

    @property
    def can(self) -> Capabilities:
        return self.table.can

    @property
    def last_updated_ms(self) -> int:
        return self.table.last_updated_ms

    @property
    def schema_id(self) -> int:
        return self.table.schema_id

    @property
    def properties(self) -> Mapping[str, str]:
        return self.table.properties

    @property
    def refs(self) -> Mapping[str, Ref]:
        return self.table.refs

    @property
    def snapshots(self) -> Sequence[SnapshotInfo]:
        return self.table.snapshots

    @property
    def current_snapshot_id(self) -> int | None:
        return self.head_of(MAIN)
