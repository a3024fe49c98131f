"""The folders of a catalog's tables, and the catalog's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.tables import all_namespaces, list_tables, load_table
from rowlake.storage.ownership import Neighbours

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle

_SQLITE = "sqlite:///"
# The last two are the older names that Iceberg still reads.
PATH_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)


def claimed_folders(handle: IcebergHandle) -> tuple[str, ...]:
    """Return the table's location and the folders that its properties name, as they are written."""
    properties = handle.properties
    named = [properties[key] for key in PATH_PROPERTIES if properties.get(key)]
    return (handle.location, *named)


def neighbours_of(handle: IcebergHandle) -> Neighbours:
    """Return the folders of the catalog's other tables, and the files of its database."""
    found = []
    for namespace in all_namespaces(handle.catalog):
        for identifier in list_tables(handle.catalog, namespace):
            if identifier != handle.identifier:
                other = load_table(handle.catalog, identifier)
                found.append((other.name, claimed_folders(other)))
    return Neighbours(tuple(found), _catalog_files(handle))


def _catalog_files(handle: IcebergHandle) -> tuple[str, ...]:
    """Return the files of the catalog's own database, where it is one of SQLite."""
    uri = str(handle.catalog.properties.get("uri", ""))
    if not uri.startswith(_SQLITE):
        return ()
    path = uri.removeprefix(_SQLITE).partition("?")[0]
    return tuple(path + ending for ending in ("", "-journal", "-wal", "-shm"))
