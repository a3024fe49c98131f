"""What belongs to a table: where its files may be deleted.

The catalog decides it, never the table's metadata: `location`, properties, logs and manifests are
written by others, and may name the files of anybody. A table owns

- the folder of the metadata file that the catalog points to, for metadata;
- the folder above, where that one is called `metadata`, for all of its files;
- the folder that the catalog gives to a new table of this name, unless another table is there;
- its folder, where it is a table without a catalog's pointer (Delta's): its user named that;
- what the owner allows: the catalog's property `rowlake.allowed-locations`, and the folders that a
  caller names (`also_below`).

A file counts by where it really is: what is reached through a symbolic link is not below the
folder that has the link.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rowlake.catalog.backend import backend_of
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.catalog.neighbours import claimed_folders, neighbours_of
from rowlake.errors import UnsupportedFeatureError
from rowlake.iceberg.metadata_files import METADATA_PATH
from rowlake.storage.locations import join
from rowlake.storage.ownership import ALLOWED_LOCATIONS, Ownership, given_folders
from rowlake.storage.places import is_below, parent, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table.metadata import TableMetadata

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.handle import TableHandle

METADATA = "metadata"


def ownership_of(handle: IcebergHandle, also_below: Sequence[str] | str | None = ()) -> Ownership:
    """Return what belongs to a table.

    Raises UnsupportedFeatureError for a table of the file-system catalog that says that it is
    elsewhere.
    """
    check_place(handle.catalog, handle.identifier, handle.metadata)
    allowed = [*allowed_locations(handle.catalog), *given_folders(also_below)]
    default = backend_of(handle.catalog).default_location(handle.identifier)
    own = [*_above_pointer(handle, default), *_default_folder(handle, default), *allowed]
    pointed = [] if handle.is_staged else [parent(str(handle.metadata_location))]
    metadata = [*pointed, *(join(folder, METADATA) for folder in own), *allowed]
    return Ownership(
        tuple(dict.fromkeys(own)),
        tuple(dict.fromkeys(metadata)),
        claimed_folders(handle),
        partial(neighbours_of, handle),
    )


def folder_ownership(handle: TableHandle) -> Ownership:
    """Return what belongs to a table that is one folder, which its user named: all below it.

    Raises UnsupportedFeatureError for a folder that a lake's tables are kept in.
    """
    warehouse = str(handle.catalog.properties.get("warehouse") or "")
    place = place_of(handle.location)
    if place is None or place == "/" or _is_at_or_above(place, warehouse):
        raise UnsupportedFeatureError(
            f"Cannot delete files of {handle.name}: its folder {handle.location} holds the "
            "warehouse of this lake, so what is there may belong to other tables."
        )
    folders = (handle.location,)
    return Ownership(folders, folders, folders)


def allowed_locations(catalog: Catalog) -> list[str]:
    """Return the folders that the catalog's configuration allows."""
    return given_folders(str(catalog.properties.get(ALLOWED_LOCATIONS, "")), ALLOWED_LOCATIONS)


def _above_pointer(handle: IcebergHandle, default: str | None) -> list[str]:
    """Return the table's folder, where it follows from that of its metadata file."""
    folder, _, name = parent(handle.metadata_location or "/").rstrip("/").rpartition("/")
    is_one = name == METADATA and not _has_other_tables(handle, folder, default)
    return [folder] if is_one else []


def _has_other_tables(handle: IcebergHandle, folder: str, default: str | None) -> bool:
    """Return whether a folder is one that the catalog puts tables into, or above such a one."""
    place = place_of(folder)
    warehouse = str(handle.catalog.properties.get("warehouse") or "")
    if place is None or place == "/" or _is_at_or_above(place, warehouse):
        return True
    return default is not None and place != place_of(default) and _is_at_or_above(place, default)


def _is_at_or_above(place: str, folder: str) -> bool:
    # The warehouse of a REST catalog may be a mere name.
    return "/" in folder and is_below(place_of(folder), [place])


def _default_folder(handle: IcebergHandle, default: str | None) -> list[str]:
    """Return the folder that the catalog has for the table's name, unless another table is there.

    One is where a table was renamed, and this one got its old name.
    """
    if default is None:
        return []
    place, pointer = place_of(default), handle.metadata_location
    if pointer is not None and not is_below(place_of(parent(pointer)), [place]):
        others = backend_of(handle.catalog).pointers()
        if any(is_below(place_of(parent(one)), [place]) for one in others):
            return []
    return [default]


def check_place(catalog: Catalog, identifier: Sequence[str], metadata: TableMetadata) -> None:
    """Check that a table of the file-system catalog is where it says it is."""
    under = getattr(catalog, "under", catalog)
    if isinstance(under, FileSystemCatalog):
        under.check_place(tuple(identifier), metadata)


def next_metadata_folder(base: IcebergHandle, metadata: TableMetadata) -> str:
    """Return the folder of the metadata file that a commit writes.

    It is that of the current one, unless this very commit gives the table another location or
    another `write.metadata.path`: what the metadata said before proves nothing.
    """
    current = parent(str(base.metadata_location))
    before, after = (one.properties.get(METADATA_PATH) for one in (base.metadata, metadata))
    if after:
        return current if after == before else str(after)
    below_location = join(metadata.location, METADATA)
    if metadata.location.rstrip("/") != base.metadata.location.rstrip("/"):
        return below_location
    if before and ownership_of(base).has_folder(below_location):
        return below_location
    return current
