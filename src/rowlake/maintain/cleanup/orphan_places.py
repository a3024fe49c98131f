"""The folders of a table: its location, and those outside of it that its properties name.

The metadata only says where the table's files may be: a folder is looked into where it belongs to
the table (`storage.ownership`), or the owner allowed it. Even then a folder outside of the table's
location may be shared: several tables may write to one `write.data.path`, and the names of files do
not say whose they are. Such a folder is looked into only where no other table of the catalog has
anything to do with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.maintain.cleanup.identity import identified
from rowlake.storage.locations import LOCAL, folder_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowlake.maintain.cleanup.identity import Equality
    from rowlake.model.handle import TableHandle
    from rowlake.storage.ownership import Neighbours, Ownership

NOT_OWN = (
    "outside of the table's own folders; name it in also_below or in the catalog's property "
    "rowlake.allowed-locations where its files are the table's"
)


@dataclass(frozen=True)
class Places:
    """Where to look, and what was left out with the reason.

    `protected` are paths below the places that belong to other tables. `is_elsewhere`: a place
    that is not the table's own, so that files of the table must be there to believe it.
    """

    places: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    is_elsewhere: bool = False


def own_places(handle: TableHandle, equal: Equality, owned: Ownership) -> Places:
    """Return the table's folders that are its own and that it does not share, none in another."""
    location = folder_location(handle.location)
    folders = [folder_location(one) for one in owned.claimed]
    own = _outermost([one for one in folders if owned.has_folder(one)], equal)
    skipped = [f"{one}: {NOT_OWN}" for one in dict.fromkeys(folders) if not owned.has_folder(one)]
    places = [one for one in own if one == location]
    outside = [one for one in own if one != location]
    if not outside:
        return Places(tuple(places), tuple(skipped))
    try:
        others = _folders_of_others(owned.neighbours(), equal)
    except RowlakeError as error:
        reason = f"the other tables of the catalog could not be read ({error})"
        skipped += [f"{folder}: {reason}" for folder in outside]
        return Places(tuple(places), tuple(skipped))
    for folder in outside:
        sharing = [name for name, theirs in others if _overlap(folder, theirs, equal)]
        if sharing:
            skipped.append(f"{folder}: shared with {sharing[0]}")
        else:
            places.append(folder)
    return Places(tuple(places), tuple(skipped))


def given_place(handle: TableHandle, location: str, equal: Equality, owned: Ownership) -> Places:
    """Return the place that a caller names.

    Outside of the table's own folders it may hold other tables: those of the catalog are left
    alone. Raises InvalidStatementError for a place inside another table.
    """
    if not isinstance(location, str) or not location.strip():
        raise InvalidStatementError(
            f"The location to look for orphan files in must be a folder, not {location!r}."
        )
    place = folder_location(location.strip())
    path = paths_of([place], equal)[0]
    claimed = [folder_location(one) for one in owned.claimed]
    own = [folder for folder in claimed if owned.has_folder(folder)]
    if is_inside(_keys_of([place], equal)[0], _keys_of(own, equal)):
        return Places((place,))
    neighbours = owned.neighbours()
    protected = []
    for name, folders in _folders_of_others(neighbours, equal):
        if is_inside(path, folders):
            raise InvalidStatementError(
                f"Cannot remove orphan files of {handle.name} in {place}: that is a folder of "
                f"{name}. Name a folder of {handle.name}, or run it for {name}."
            )
        protected += [(folder, name) for folder in folders if is_inside(folder, [path])]
    return Places(
        (place,),
        tuple(f"{folder}: belongs to {name}" for folder, name in protected),
        (*(folder for folder, _ in protected), *neighbours.catalog_files),
        is_elsewhere=True,
    )


def is_inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of some folders or below one; all are normal paths."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def paths_of(locations: Sequence[str], equal: Equality) -> list[str]:
    """Return the paths of locations, as they are compared."""
    found: list[str] = identified(pa.array(locations, pa.large_string()), equal).paths.to_pylist()
    return found


def _keys_of(locations: Sequence[str], equal: Equality) -> list[str]:
    """Return locations with scheme and authority, each in the one form in which they compare."""
    found = identified(pa.array(locations, pa.large_string()), equal)
    prefixes = [found.prefixes[number] for number in found.numbers.tolist()]
    return [
        f"{scheme or LOCAL}://{authority}{path}"
        for (scheme, authority), path in zip(prefixes, found.paths.to_pylist(), strict=True)
    ]


def _outermost(folders: Sequence[str], equal: Equality) -> list[str]:
    """Return folders without those that are inside an earlier one."""
    kept: list[str] = []
    for folder in folders:
        if not kept or not is_inside(_keys_of([folder], equal)[0], _keys_of(kept, equal)):
            kept.append(folder)
    return kept


def _folders_of_others(neighbours: Neighbours, equal: Equality) -> list[tuple[str, list[str]]]:
    return [
        (name, paths_of([folder_location(one) for one in folders], equal))
        for name, folders in neighbours.tables
    ]


def _overlap(folder: str, theirs: Sequence[str], equal: Equality) -> bool:
    path = paths_of([folder], equal)[0]
    return any(is_inside(path, [one]) or is_inside(one, [path]) for one in theirs)
