"""All files that a table's metadata reaches, for dropping a table with its bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.io import StorageFileIO
from rowlake.errors import InvalidStatementError

if TYPE_CHECKING:
    from rowlake.catalog.handle import TableHandle

GC_ENABLED = "gc.enabled"


def gc_allowed(handle: TableHandle) -> None:
    """Check that the table's files may be deleted: they may belong to another table too."""
    if str(handle.metadata.properties.get(GC_ENABLED, "true")).lower() == "false":
        raise InvalidStatementError(
            f"Cannot purge {handle.name}: its property {GC_ENABLED} is false, since its files may "
            f"belong to other tables. Drop it without purging, or set the property first."
        )


def files_of(handle: TableHandle) -> set[str]:
    """Return every file of every snapshot, with manifests, statistics and metadata files."""
    metadata = handle.metadata
    found = {entry.metadata_file for entry in metadata.metadata_log}
    found |= {one.statistics_path for one in metadata.statistics}
    found |= {one.statistics_path for one in metadata.partition_statistics}
    found.add(handle.metadata_location or "")
    return (found | _files_of_snapshots(handle)) - {""}


def _files_of_snapshots(handle: TableHandle) -> set[str]:
    snapshots = handle.metadata.snapshots
    if not snapshots:
        return set()
    io = StorageFileIO(dict(handle.io_properties))
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in snapshots
        for manifest in snapshot.manifests(io)
    }
    files = {
        entry.data_file.file_path
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=False)
    }
    return files | set(manifests) | {snapshot.manifest_list for snapshot in snapshots}
