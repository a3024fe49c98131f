"""Metadata files that a commit drops from the log."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.deferred import deferred
from rowlake.iceberg.metadata_files import DELETE_AFTER_COMMIT

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

    from rowlake.catalog import ownership
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.storage.files import Storage
else:  # loaded at its first use: few tables want their old metadata files deleted
    (ownership,) = deferred("rowlake.catalog", "ownership")

_ENDINGS = (".metadata.json", ".metadata.json.gz")


def delete_outdated(
    base: IcebergHandle, metadata: TableMetadata, pointer: str | None, storage: Storage
) -> None:
    """Delete the metadata files that a commit dropped from the log, where the table wants that.

    `pointer` is the metadata file that landed. A log may name anything: only metadata files that
    are the table's own go. Best effort and silent: the commit has landed, whatever happens here.
    """
    if str(metadata.properties.get(DELETE_AFTER_COMMIT, "false")).lower() != "true":
        return
    kept = {entry.metadata_file for entry in metadata.metadata_log} | {pointer}
    with suppress(Exception):
        dropped = [
            entry.metadata_file
            for entry in base.metadata.metadata_log
            if entry.metadata_file not in kept and entry.metadata_file.endswith(_ENDINGS)
        ]
        if dropped:
            locations = pa.array(dropped, pa.large_string())
            own = pa.array(ownership.ownership_of(base).of_metadata(locations))
            storage.delete(locations.filter(own).to_pylist())
