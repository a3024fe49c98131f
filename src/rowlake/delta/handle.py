"""A Delta table as the rooms hold it: its log as it was listed, and the newest version of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rowlake.delta.capabilities import capabilities_of
from rowlake.delta.clustering import clustering_names
from rowlake.delta.history import snapshot_of
from rowlake.delta.schema import TableColumns, columns_of
from rowlake.delta.state import LogState, PendingState, state_of
from rowlake.delta.times import CommitTimes
from rowlake.errors import InvalidStatementError
from rowlake.model.handle import MAIN, Ref, TableHandle
from rowlake.model.view import SnapshotInfo
from rowlake.secrets import without_passwords
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.delta.commits import Commit
    from rowlake.delta.log_files import LogFiles
    from rowlake.model.format import Capabilities, Format
    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class DeltaHandle(TableHandle):
    """A table at the newest version that its log had when it was listed.

    `pending` is a definition that is not in the log yet: of a table that its first commit creates,
    or of one as it will be.
    """

    identifier: Identifier
    catalog: Any = field(repr=False)
    folder: str
    log: LogFiles = field(repr=False)
    io_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    pending: PendingState | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"DeltaHandle({without_passwords(self.folder)}, {self.version})"

    @property
    def format(self) -> Format:
        """The Delta format; loaded at its first use, since a handle needs none of it."""
        from rowlake.delta.format import DELTA

        return DELTA

    @cached_property
    def storage(self) -> Storage:
        """The storage of the table's files."""
        return Storage(self.io_properties)

    @property
    def snapshot_version(self) -> int:
        """The version of the table; -1 before the commit that creates it."""
        return -1 if self.log.is_empty else self.log.newest

    @cached_property
    def state(self) -> LogState:
        """The table's state at its newest version, or as it will be."""
        return self.pending or self.state_at(self.snapshot_version)

    def state_at(self, version: int) -> LogState:
        """Return the state of a version."""
        return state_of(self.folder, self.log.segment(version), self.storage)

    @cached_property
    def _columns(self) -> dict[int, TableColumns]:
        return {}

    def columns_of(self, state: LogState) -> TableColumns:
        """Return the columns of a version; each schema is read once."""
        if state is self.pending:
            return columns_of(state.metadata, state.segment.folder)
        if state.version not in self._columns:
            self._columns[state.version] = columns_of(state.metadata, state.segment.folder)
        return self._columns[state.version]

    @cached_property
    def times(self) -> CommitTimes:
        """When versions were committed."""
        return CommitTimes(self.log, self.state.metadata, self.folder, self.storage)

    @property
    def uuid(self) -> str:
        """The table's id."""
        return self.state.metadata.table_id

    @property
    def location(self) -> str:
        """The table's folder."""
        return self.folder

    @property
    def version(self) -> str | None:
        """The newest version; None before there is one."""
        return None if self.log.is_empty else str(self.snapshot_version)

    @property
    def format_version(self) -> int:
        """The reader version of the protocol."""
        return self.state.protocol.reader_version

    @property
    def can(self) -> Capabilities:
        """What the table may hold."""
        return capabilities_of(self.state.metadata)

    @property
    def last_updated_ms(self) -> int:
        """When the newest version was committed."""
        return 0 if self.is_staged else self.times.of(self.snapshot_version)

    @property
    def schema_id(self) -> int:
        """Always 0: a log keeps no numbers of schemas."""
        return 0

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties."""
        return self.state.metadata.configuration

    @property
    def refs(self) -> Mapping[str, Ref]:
        """The one branch that a log is."""
        return {} if self.is_staged else {MAIN: Ref(self.snapshot_version, "branch")}

    @property
    def details(self) -> Mapping[str, Any]:
        """What Delta's DESCRIBE DETAIL says beyond what every table says."""
        metadata, protocol = self.state.metadata, self.state.protocol
        return {
            "description": metadata.description,
            "createdAt": metadata.created_ms,
            "clusteringColumns": clustering_names(
                self.state.actions.domains, self.columns_of(self.state)
            ),
            "minReaderVersion": protocol.reader_version,
            "minWriterVersion": protocol.writer_version,
            "tableFeatures": list(protocol.features),
        }

    @cached_property
    def snapshots(self) -> Sequence[SnapshotInfo]:
        """The versions that can be read, oldest first; every commit of the log is read."""
        return tuple(self._snapshot(version) for version in self.times.versions)

    @property
    def current_snapshot_id(self) -> int | None:
        """The newest version; None before there is one."""
        return None if self.is_staged else self.snapshot_version

    def snapshot(self, snapshot_id: int | None) -> SnapshotInfo | None:
        """Return a version, None where the log does not have it; reads one commit."""
        if snapshot_id is None or not self.times.has(snapshot_id):
            return None
        return self._snapshot(snapshot_id)

    def need_snapshot(self, version: int) -> SnapshotInfo:
        """Return a version that must be there."""
        found = self.snapshot(version)
        if found is None:
            raise InvalidStatementError(
                f"Table {self.name} has no version {version}: its log has versions "
                f"{self.log.oldest} to {self.log.newest}."
            )
        return found

    def _snapshot(self, version: int) -> SnapshotInfo:
        if version not in self._known:
            self._known[version] = self._read_snapshot(version)
        return self._known[version]

    @cached_property
    def _known(self) -> dict[int, SnapshotInfo]:
        return {}

    def _read_snapshot(self, version: int) -> SnapshotInfo:
        if version not in self.log.commits:  # only its checkpoint is left
            parent = version - 1 if version else None
            return SnapshotInfo(version, parent, version, self.times.of(version), None, "", {})
        commit = self.commit_at(version)
        return snapshot_of(commit, self.times.of_commit(commit))

    def commit_at(self, version: int) -> Commit:
        """Return the commit of a version; those of the newest state are not read again."""
        return self._commits.get(version) or self.times.read(version)

    @cached_property
    def _commits(self) -> dict[int, Commit]:
        if self.is_staged:
            return {}
        state = self.state_at(self.snapshot_version)
        pairs = zip(state.segment.commits, state.commits, strict=True)
        return {file.version: one for file, one in pairs if not file.is_compacted}
