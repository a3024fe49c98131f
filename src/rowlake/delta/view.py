"""A Delta table at one version."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.delta.actions import Actions
from rowlake.delta.capabilities import capabilities_of
from rowlake.delta.clustering import clustered_ids
from rowlake.delta.features import rules_of
from rowlake.delta.layout import layout_of
from rowlake.delta.state import LogState, PendingState, state_of
from rowlake.model.partition import SortOrder
from rowlake.model.view import TableView
from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.log_files import LogFiles, Segment
    from rowlake.delta.schema import TableColumns
    from rowlake.model.view import SnapshotInfo


@dataclass(frozen=True, kw_only=True)
class DeltaView(TableView):
    """A view that knows the files of its log; small, so that it can travel to other processes."""

    log: LogFiles = field(repr=False)
    segment: Segment = field(repr=False)
    columns: TableColumns = field(repr=False)
    pending: PendingState | None = field(default=None, repr=False)

    __repr__ = redacted_repr

    def at(self, snapshot: SnapshotInfo | None) -> DeltaView:
        """Return the files of another version under the schema of this view."""
        if snapshot is None:
            pending = PendingState(
                self.location, self.segment, Storage(self.io_properties), Actions(), False
            )
            return replace(self, snapshot=None, pending=pending)
        segment = self.log.segment(snapshot.snapshot_id)
        return replace(self, snapshot=snapshot, segment=segment, pending=None)

    @property
    def state(self) -> LogState:
        """The state of the version, read at its first use in a process."""
        return self.pending or state_of(self.location, self.segment, Storage(self.io_properties))


def view_of(handle: DeltaHandle, state: LogState, snapshot: SnapshotInfo | None) -> DeltaView:
    """Return the table at the version of a state; no snapshot of one that is to be created."""
    metadata, columns = state.metadata, handle.columns_of(state)
    return DeltaView(
        name=handle.name,
        uuid=metadata.table_id,
        location=handle.location,
        format_version=state.protocol.reader_version,
        schema=columns.schema,
        schemas={columns.schema.schema_id: columns.schema},
        specs={columns.spec.spec_id: columns.spec},
        default_spec_id=columns.spec.spec_id,
        sort_orders={0: SortOrder(0)},
        default_sort_order_id=0,
        properties=dict(metadata.configuration),
        snapshot=snapshot,
        format=handle.format,
        can=capabilities_of(metadata),
        io_properties=dict(handle.io_properties),
        name_mapping=columns.name_mapping,
        layout=layout_of(handle.location, metadata, columns),
        rules=rules_of(metadata),
        cluster_by=clustered_ids(state.actions.domains, columns),
        log=handle.log,
        segment=state.segment,
        columns=columns,
        pending=state if isinstance(state, PendingState) else None,
    )
