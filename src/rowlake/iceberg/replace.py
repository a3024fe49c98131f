"""REPLACE TABLE: new schema, spec, order and properties on a table that keeps its history.

Columns of the same path keep their ids, so that old snapshots read the same; others get fresh ones
above the last id ever given. The branch main is empty afterwards; all snapshots stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table.metadata import TableMetadata

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates

LAST_ADDED = -1


def replace_updates(
    handle: IcebergHandle,
    schema: IcebergSchema,
    spec: PartitionSpec,
    order: SortOrder,
    properties: Mapping[str, str],
) -> Updates:
    """Return the updates that make a table look new; ids in the schema are final already."""
    metadata = handle.metadata
    wanted = dict(properties)
    version = wanted.pop("format-version", None)
    updates: list[TableUpdate] = []
    if version is not None and int(version) > metadata.format_version:
        updates.append(UpgradeFormatVersionUpdate(format_version=int(version)))
    updates += _schema_updates(metadata, schema)
    updates += _spec_updates(metadata, spec)
    updates += _order_updates(metadata, order)
    if "main" in metadata.refs:
        updates.append(RemoveSnapshotRefUpdate(ref_name="main"))
    if wanted:
        updates.append(SetPropertiesUpdate(updates=wanted))
    return tuple(updates), _ids_still_free(metadata)


def _ids_still_free(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """Require that the ids of new columns and partition fields are still unused."""
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertLastAssignedFieldId(last_assigned_field_id=metadata.last_column_id),
        AssertLastAssignedPartitionId(last_assigned_partition_id=metadata.last_partition_id),
    )


def _schema_updates(metadata: TableMetadata, schema: IcebergSchema) -> list[TableUpdate]:
    for known in metadata.schemas:
        if known.fields == schema.fields:
            return [SetCurrentSchemaUpdate(schema_id=known.schema_id)]
    new_id = max(known.schema_id for known in metadata.schemas) + 1
    added = schema.model_copy(update={"schema_id": new_id})
    return [AddSchemaUpdate(schema_=added), SetCurrentSchemaUpdate(schema_id=LAST_ADDED)]


def _spec_updates(metadata: TableMetadata, spec: PartitionSpec) -> list[TableUpdate]:
    """Reuse the ids of partition fields that mean the same; take fresh ones above the last."""
    known = {
        (field.source_id, str(field.transform)): field.field_id
        for old in metadata.partition_specs
        for field in old.fields
    }
    last_id = max([*known.values(), metadata.last_partition_id or 999])
    fields = []
    for field in spec.fields:
        identity = known.get((field.source_id, str(field.transform)))
        if identity is None:
            last_id += 1
            identity = last_id
        fields.append(
            PartitionField(
                source_id=field.source_id,
                field_id=identity,
                transform=field.transform,
                name=field.name,
            )
        )
    for old in metadata.partition_specs:
        if list(old.fields) == fields:
            return [SetDefaultSpecUpdate(spec_id=old.spec_id)]
    new_id = max(old.spec_id for old in metadata.partition_specs) + 1
    added = PartitionSpec(*fields, spec_id=new_id)
    return [AddPartitionSpecUpdate(spec=added), SetDefaultSpecUpdate(spec_id=LAST_ADDED)]


def _order_updates(metadata: TableMetadata, order: SortOrder) -> list[TableUpdate]:
    for known in metadata.sort_orders:
        if known.fields == order.fields:
            return [SetDefaultSortOrderUpdate(sort_order_id=known.order_id)]
    new_id = max([known.order_id for known in metadata.sort_orders], default=0) + 1
    added = SortOrder(*order.fields, order_id=new_id)
    return [
        AddSortOrderUpdate(sort_order=added),
        SetDefaultSortOrderUpdate(sort_order_id=LAST_ADDED),
    ]
