"""Table metadata -> the view that operations work with.

Comes in: a `IcebergHandle` (PyIceberg's `TableMetadata` of one moment) and what to look at. Goes
out: a `TableView`, plain values. Never mutates what PyIceberg hands out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.sorting import NullOrder, SortDirection

from rowlake.catalog.handle import snapshot_info
from rowlake.errors import InvalidStatementError, shown
from rowlake.iceberg.name_mapping import NAME_MAPPING
from rowlake.iceberg.schema import schema_from_iceberg
from rowlake.model.partition import PartitionField, PartitionSpec, SortField, SortOrder
from rowlake.model.task import NameMapping
from rowlake.model.view import TableView

if TYPE_CHECKING:
    from pyiceberg import partitioning
    from pyiceberg.table import sorting
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from rowlake.catalog.handle import IcebergHandle

MAIN = "main"


def view_of(
    handle: IcebergHandle,
    *,
    snapshot_id: int | None = None,
    as_of_ms: int | None = None,
    ref: str | None = None,
) -> TableView:
    """Return the table at one snapshot: the head of main unless told otherwise.

    Heads of branches are read with the current schema; tags, ids and times with the schema of
    their snapshot, as Iceberg's Spark integration does.
    """
    metadata = handle.metadata
    snapshot = _chosen_snapshot(handle, snapshot_id, as_of_ms, ref)
    travels = snapshot_id is not None or as_of_ms is not None or _is_tag(metadata, ref)
    schemas = {schema.schema_id: schema_from_iceberg(schema) for schema in metadata.schemas}
    schema_id = metadata.current_schema_id
    if travels and snapshot is not None and snapshot.schema_id in schemas:
        schema_id = snapshot.schema_id
    return TableView(
        name=handle.name,
        uuid=str(metadata.table_uuid),
        location=metadata.location.rstrip("/"),
        format_version=metadata.format_version,
        schema=schemas[schema_id],
        schemas=schemas,
        specs={spec.spec_id: spec_of(spec) for spec in metadata.partition_specs},
        default_spec_id=metadata.default_spec_id,
        sort_orders={0: SortOrder(0)}
        | {order.order_id: order_of(order) for order in metadata.sort_orders},
        default_sort_order_id=metadata.default_sort_order_id,
        properties=dict(metadata.properties),
        snapshot=snapshot_info(snapshot) if snapshot else None,
        format=handle.format,
        can=handle.can,
        io_properties=dict(handle.io_properties),
        name_mapping=_name_mapping(metadata.properties.get(NAME_MAPPING)),
    )


def _name_mapping(text: str | None) -> NameMapping | None:
    return None if text is None else NameMapping(text)


def _is_tag(metadata: TableMetadata, ref: str | None) -> bool:
    found = metadata.refs.get(ref) if ref else None
    return found is not None and found.snapshot_ref_type == "tag"


def _chosen_snapshot(
    handle: IcebergHandle, snapshot_id: int | None, as_of_ms: int | None, ref: str | None
) -> Snapshot | None:
    metadata = handle.metadata
    if sum(chosen is not None for chosen in (snapshot_id, as_of_ms, ref)) > 1:
        raise InvalidStatementError("Give one of snapshot_id, as_of and ref, not several.")
    if snapshot_id is not None:
        return _snapshot_by_id(handle, snapshot_id)
    if as_of_ms is not None:
        return _snapshot_by_id(handle, _id_as_of(handle, as_of_ms))
    if ref is None or (ref == MAIN and MAIN not in metadata.refs):
        return handle.metadata.current_snapshot()
    if ref not in metadata.refs:
        raise InvalidStatementError(
            f"Table {handle.name} has no branch or tag {ref}. "
            f"It has: {shown(sorted(metadata.refs)) or 'none'}."
        )
    return _snapshot_by_id(handle, metadata.refs[ref].snapshot_id)


def _snapshot_by_id(handle: IcebergHandle, snapshot_id: int) -> Snapshot:
    found = handle.metadata.snapshot_by_id(snapshot_id)
    if found is None:
        raise InvalidStatementError(
            f"Table {handle.name} has no snapshot {snapshot_id} (it may have expired). "
            f"List them with: rowlake snapshots {handle.name}."
        )
    return found


def _id_as_of(handle: IcebergHandle, as_of_ms: int) -> int:
    """Return the snapshot that was current at a time, from the snapshot log."""
    log = [entry for entry in handle.metadata.snapshot_log if entry.timestamp_ms <= as_of_ms]
    if not log:
        raise InvalidStatementError(
            f"Table {handle.name} has no snapshot as old as {as_of_ms} ms since 1970."
        )
    return log[-1].snapshot_id


def spec_of(spec: partitioning.PartitionSpec) -> PartitionSpec:
    """Return the model's form of a partition spec."""
    return PartitionSpec(
        spec.spec_id,
        tuple(
            PartitionField(field.source_id, field.field_id, str(field.transform), field.name)
            for field in spec.fields
        ),
    )


def order_of(order: sorting.SortOrder) -> SortOrder:
    """Return the model's form of a sort order."""
    return SortOrder(
        order.order_id,
        tuple(
            SortField(
                field.source_id,
                str(field.transform),
                field.direction == SortDirection.ASC,
                field.null_order == NullOrder.NULLS_FIRST,
            )
            for field in order.fields
        ),
    )
