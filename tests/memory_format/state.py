"""What a table in memory is: one immutable value per version, swapped in a store."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.errors import CorruptTableError, InvalidStatementError, TableNotFoundError
from rowlake.iceberg.capabilities import capabilities_of
from rowlake.model.format import Capabilities, FileAction
from rowlake.model.handle import MAIN
from rowlake.model.names import quoted
from rowlake.model.outcome import Conflict

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.model.handle import Ref
    from rowlake.model.names import Identifier
    from rowlake.model.partition import PartitionSpec, SortOrder
    from rowlake.model.schema import Schema
    from rowlake.model.view import SnapshotInfo

# Files by spec, one table of `files_schema` each.
Files = Mapping[int, "pa.Table"]

FLAVOURS = {
    1: Capabilities(
        position_deletes=False,
        equality_deletes=False,
        sequence_numbers=False,
        refusals=capabilities_of(1).refusals,
    ),
    2: Capabilities(refusals=capabilities_of(2).refusals),
    3: Capabilities(
        position_deletes=False,
        deletion_vectors=True,
        row_ids=True,
        column_defaults=True,
        refusals=capabilities_of(3).refusals,
    ),
}


@dataclass(frozen=True)
class SnapshotFiles:
    """The live files of a snapshot, and what its commit did to them."""

    data: Files
    deletes: Files
    actions: Mapping[FileAction, Files]


@dataclass(frozen=True)
class MemoryTable:
    """A table at one version; `log` is (time in ms, snapshot id) of each head of main."""

    uuid: str
    location: str
    flavour: int
    schemas: Mapping[int, Schema]
    schema_id: int
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    sort_orders: Mapping[int, SortOrder]
    default_sort_order_id: int
    properties: Mapping[str, str]
    last_column_id: int
    last_updated_ms: int
    version: int | None = None
    snapshots: tuple[SnapshotInfo, ...] = ()
    files: Mapping[int, SnapshotFiles] = field(default_factory=dict, repr=False)
    refs: Mapping[str, Ref] = field(default_factory=dict)
    log: tuple[tuple[int, int], ...] = ()
    last_sequence_number: int = 0
    next_row_id: int = 0

    @property
    def can(self) -> Capabilities:
        return FLAVOURS[self.flavour]

    @property
    def schema(self) -> Schema:
        return self.schemas[self.schema_id]

    def head_files(self, ref: str) -> SnapshotFiles:
        found = self.refs.get(ref)
        return self.files[found.snapshot_id] if found else SnapshotFiles({}, {}, {})

    def with_ref(self, name: str, ref: Ref) -> MemoryTable:
        """Return the table with a ref set; heads of main are logged."""
        log = self.log if name != MAIN else (*self.log, (self.last_updated_ms, ref.snapshot_id))
        return replace(self, refs={**self.refs, name: ref}, log=log)

    def touched(self) -> MemoryTable:
        """Return the table as changed now; time never goes back."""
        return replace(self, last_updated_ms=max(int(time.time() * 1000), self.last_updated_ms))


class MemoryStore:
    """Tables by name. A swap is compare-and-set on the version, so races are lost for real."""

    def __init__(self, folder: str) -> None:
        self.folder = folder.rstrip("/")
        self.name = "memory"
        self.properties: dict[str, str] = {"warehouse": self.folder}
        self.namespaces: set[Identifier] = set()
        self.tables: dict[Identifier, MemoryTable] = {}
        # Also of tables that were dropped since: their files are there as long as nobody purges.
        self.by_uuid: dict[str, MemoryTable] = {}
        self.lock = threading.Lock()
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Keep all: another lake of the same folder has the same tables."""

    def next_number(self) -> int:
        """Return a number that nobody had before, for versions and snapshots."""
        return next(self._numbers)

    def load(self, identifier: Identifier) -> MemoryTable:
        found = self.tables.get(identifier)
        if found is None:
            raise TableNotFoundError(quoted(identifier))
        return found

    def files_of(self, uuid: str, location: str, snapshot_id: int) -> SnapshotFiles:
        """Return the files of a snapshot."""
        table = self.by_uuid.get(uuid)
        if table is None or snapshot_id not in table.files:
            raise CorruptTableError(location, f"snapshot {snapshot_id} is gone")
        return table.files[snapshot_id]

    def swap(
        self, identifier: Identifier, expected: int | None, table: MemoryTable
    ) -> MemoryTable | Conflict:
        """Put a table in place of version `expected` (None: of no table)."""
        with self.lock:
            current = self.tables.get(identifier)
            if (current.version if current else None) != expected:
                return Conflict(f"the table is at version {current.version if current else None}")
            landed = replace(table, version=self.next_number())
            self.tables[identifier] = self.by_uuid[landed.uuid] = landed
            return landed

    def drop(self, identifier: Identifier) -> None:
        with self.lock:
            if self.tables.pop(identifier, None) is None:
                raise TableNotFoundError(quoted(identifier))

    def require_namespace(self, levels: Identifier) -> None:
        if levels not in self.namespaces:
            raise TableNotFoundError(quoted(levels), kind="namespace")

    def create_namespace(self, levels: Identifier, *, if_not_exists: bool) -> None:
        if levels in self.namespaces and not if_not_exists:
            raise InvalidStatementError(f"There is a namespace {quoted(levels)} already.")
        self.namespaces.add(levels)
