"""Partition specs beside the default one, as updates for the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AssertDefaultSpecId,
    AssertLastAssignedPartitionId,
    AssertTableUUID,
)

from rowlake.iceberg.refs import NOTHING

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates
    from rowlake.model.partition import PartitionSpec

__all__ = ["NOTHING", "add_unpartitioned_spec", "spec_ids"]


def spec_ids(handle: IcebergHandle) -> dict[int, bool]:
    """Return the ids of a table's specs, with whether each is unpartitioned."""
    return {spec.spec_id: spec.is_unpartitioned() for spec in handle.metadata.partition_specs}


def add_unpartitioned_spec(handle: IcebergHandle, spec: PartitionSpec) -> Updates:
    """Return the updates that add a spec without fields; the default one stays.

    Its id is part of manifests that are written already, so no other spec may come first.
    """
    metadata = handle.metadata
    requirements = (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),
        AssertLastAssignedPartitionId(last_assigned_partition_id=metadata.last_partition_id),
    )
    return (AddPartitionSpecUpdate(spec=IcebergSpec(spec_id=spec.spec_id)),), requirements
