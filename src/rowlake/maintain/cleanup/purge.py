"""A table dropped with its bytes.

Comes in: the name of a table. Goes out: nothing; the table is out of the catalog, and every file
that its metadata names is deleted, files that a snapshot marks as deleted too, as Iceberg's Java
library does: the snapshot that had them may have expired without them. Invariant: the metadata are
read whole before the table is dropped, so where they cannot be read all stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.catalog.tables import load_table, purge_table
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.metadata import view_of
from rowlake.maintain.cleanup.reachable import manifests_of, metadata_files, some_at_a_time

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import TableHandle
    from rowlake.catalog.names import Name


def drop_with_files(catalog: Catalog, name: Name) -> None:
    """Drop a table and delete its files; a file that cannot be deleted is left behind."""
    purge_table(load_table(catalog, name), locations_of)


def locations_of(handle: TableHandle) -> list[str]:
    """Return every file of every snapshot, with manifests, statistics and metadata files."""
    manifests, view = manifests_of(handle), view_of(handle)
    found = [metadata_files(handle)["location"], manifests["location"].cast(pa.large_string())]
    for part in some_at_a_time(manifests):
        by_spec = read_manifests(part, view, handle.storage, columns=("location",), live_only=False)
        found += [
            pa.chunked_array([pc.unique(files["location"])]).cast(pa.large_string())
            for files in by_spec.values()
        ]
    chunks = [chunk for column in found for chunk in column.chunks]
    locations: list[str] = pc.unique(pa.chunked_array(chunks, pa.large_string())).to_pylist()
    return locations
