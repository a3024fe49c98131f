"""A table dropped with its bytes.

Comes in: the name of a table. Goes out: the table is out of the catalog, and every file that its
metadata names and that is its own (`catalog.ownership`) is deleted, files that a snapshot lists as
deleted too, as Iceberg's Java library does: the snapshot that had them may have expired without
them. Files of others are left and told. Invariant: the metadata are read whole before the table is
dropped, so where they cannot be read all stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.catalog.ownership import ownership_of
from rowlake.catalog.tables import load_table, purge_table, purges_itself
from rowlake.iceberg.manifest_reader import read_manifests
from rowlake.iceberg.reachable import manifests_of, metadata_files, some_at_a_time
from rowlake.maintain.cleanup.owned import split_owned
from rowlake.model.key_index import has_index
from rowlake.model.reachable import Kind, of_kind, with_key_indexes
from rowlake.storage.ownership import warn_of_foreign

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.names import Name


def drop_with_files(
    catalog: Any, name: Name, *, also_below: Sequence[str] | str | None = ()
) -> None:
    """Drop a table and delete its files; a file that cannot be deleted is left behind.

    Files outside of the table's own folders are left and logged, but for those below `also_below`.
    """
    handle = load_table(catalog, name)
    if purges_itself(catalog):
        purge_table(handle, locations_of, lambda _: False)
        return
    owned = ownership_of(handle, also_below)

    def own_files(found: IcebergHandle) -> Collection[str]:
        split = split_owned(files_of(found), owned)
        warn_of_foreign(found.name, split.named, split.foreign_count)
        own = with_key_indexes(split.own) if has_index(found.properties) else split.own
        locations: list[str] = pc.unique(own["location"]).to_pylist()
        return locations

    purge_table(handle, own_files, owned.has_folder)


def locations_of(handle: IcebergHandle) -> list[str]:
    """Return every file of every snapshot, with manifests, statistics and metadata files."""
    locations: list[str] = pc.unique(files_of(handle)["location"]).to_pylist()
    return locations


def files_of(handle: IcebergHandle) -> pa.Table:
    """Return the same as a table of `REACHABLE`; all that manifests name counts as data."""
    manifests, view = manifests_of(handle), handle.view()
    found = [metadata_files(handle), of_kind(manifests["location"], Kind.MANIFEST)]
    for part in some_at_a_time(manifests):
        by_spec = read_manifests(part, view, handle.storage, columns=("location",), live_only=False)
        found += [
            of_kind(pa.chunked_array([pc.unique(files["location"])]), Kind.DATA)
            for files in by_spec.values()
        ]
    return pa.concat_tables(found)
