"""What belongs to a table: the folders below which its files may be deleted.

A format says which these are (`Format.ownership`; for Iceberg `rowlake.catalog.ownership`), never
by what the table's own metadata claims: that is written by others, and may name the files of
anybody. A file counts by where it really is: what is reached through a symbolic link is not below
the folder that has the link.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rowlake.errors import InvalidStatementError, shown
from rowlake.storage.locations import folder_location
from rowlake.storage.places import are_below, is_below, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import numpy.typing as npt
    import pyarrow as pa

ALLOWED_LOCATIONS = "rowlake.allowed-locations"
# How many foreign files a report names.
NAMED = 20

logger = logging.getLogger("rowlake")


@dataclass(frozen=True)
class Neighbours:
    """What else is kept where the table is: other tables' folders by name, files of the catalog."""

    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    catalog_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ownership:
    """The folders below which a table's files may be deleted.

    `folders` are for data and delete files, `metadata_folders` for all files of the metadata.
    `claimed` are the folders that the metadata says the table's files are in, its location first,
    as it spells them: they may be anybody's. `neighbours` looks for what else is kept there.
    """

    folders: tuple[str, ...]
    metadata_folders: tuple[str, ...]
    claimed: tuple[str, ...] = ()
    neighbours: Callable[[], Neighbours] = field(default=Neighbours, repr=False, compare=False)

    def of_data(self, locations: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return which data and delete files are the table's."""
        return are_below(locations, self.folders)

    def of_metadata(self, locations: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return which files of the table's metadata are its own."""
        return are_below(locations, self.metadata_folders)

    def of_files(
        self, locations: pa.ChunkedArray, is_data: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return which files of both kinds are the table's."""
        return np.where(is_data, self.of_data(locations), self.of_metadata(locations))

    def has_folder(self, folder: str) -> bool:
        """Return whether all below a folder is the table's."""
        own = (*self.folders, *self.metadata_folders)
        return is_below(place_of(folder), [place_of(one) for one in own])


def given_folders(given: Sequence[str] | str | None, name: str = "also_below") -> list[str]:
    """Return folders that a caller names, as a list or as text with commas."""
    some = given.split(",") if isinstance(given, str) else list(given or ())
    if not all(isinstance(one, str) for one in some):
        raise InvalidStatementError(f"{name} takes folders, as a list or with commas: {given!r}.")
    return [folder_location(one.strip()) for one in some if one.strip()]


def warn_of_foreign(table: str, foreign: Collection[str], count: int) -> None:
    """Say in the log that files were left alone."""
    if count:
        logger.warning(
            "%s: %d files were left alone, since they are outside of the table's own folders: %s. "
            "Allow their folders by also_below or by the catalog's property %s.",
            table,
            count,
            shown(list(foreign)),
            ALLOWED_LOCATIONS,
        )
