"""Statistics files of snapshots: what is written, and the catalog updates that register them.

Table statistics are Puffin files (spec, Table Statistics), partition statistics are data files
(spec, Partition Statistics); metadata names at most one of each for a snapshot.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyiceberg.table.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import (
    AssertTableUUID,
    SetPartitionStatisticsUpdate,
    SetStatisticsUpdate,
)

from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.codecs.puffin import PuffinFile
    from rowlake.iceberg.refs import Updates
    from rowlake.model.view import TableView


def statistics_location(view: TableView, name: str) -> str:
    """Return a fresh location for a statistics file; `{}` in the name becomes a unique text."""
    folder = view.properties.get("write.metadata.path") or f"{view.location}/metadata"
    return f"{folder.rstrip('/')}/{name.format(uuid.uuid4())}"


def set_statistics(
    handle: IcebergHandle, snapshot_id: int, location: str, puffin: PuffinFile
) -> Updates:
    """Register a Puffin file as the statistics of a snapshot, in place of what there was."""
    _check_snapshot(handle, snapshot_id)
    last = puffin.blobs[-1]
    found = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=location,
        file_size_in_bytes=len(puffin.data),
        file_footer_size_in_bytes=len(puffin.data) - last.offset - last.length,
        blob_metadata=[
            BlobMetadata(
                type=blob.type,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                fields=list(blob.fields),
                properties=dict(blob.properties),
            )
            for blob in puffin.blobs
        ],
    )
    return (SetStatisticsUpdate(statistics=found),), _holds(handle)


def set_partition_statistics(
    handle: IcebergHandle, snapshot_id: int, location: str, size_in_bytes: int
) -> Updates:
    """Register a file as the partition statistics of a snapshot, in place of what there was."""
    _check_snapshot(handle, snapshot_id)
    found = PartitionStatisticsFile(
        snapshot_id=snapshot_id, statistics_path=location, file_size_in_bytes=size_in_bytes
    )
    return (SetPartitionStatisticsUpdate(partition_statistics=found),), _holds(handle)


def partition_statistics_of(handle: IcebergHandle) -> dict[int, str]:
    """Return the locations of a table's partition statistics files by snapshot id."""
    return {one.snapshot_id: one.statistics_path for one in handle.metadata.partition_statistics}


def _holds(handle: IcebergHandle) -> tuple[AssertTableUUID, ...]:
    return (AssertTableUUID(uuid=handle.metadata.table_uuid),)


def _check_snapshot(handle: IcebergHandle, snapshot_id: int) -> None:
    if handle.metadata.snapshot_by_id(snapshot_id) is None:
        raise InvalidStatementError(
            f"Cannot set statistics of {handle.name}: snapshot {snapshot_id} has expired meanwhile."
        )
