"""The table formats by name, and tables by name or by path.

A path is written behind the name of its format: ``delta.`/data/orders` ``. Every other name is the
catalog's, or one that the lake keeps beside it (`catalog.foreign_names`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.catalog import foreign_names
from rowlake.catalog import tables as catalog_tables
from rowlake.catalog.backend import backend_of, kinds_of
from rowlake.deferred import deferred
from rowlake.delta.format import DELTA
from rowlake.errors import InvalidStatementError, TableNotFoundError, UnsupportedFeatureError
from rowlake.iceberg.format import ICEBERG
from rowlake.model.mirror import MIRROR_OF
from rowlake.model.names import levels_of, quoted, table_levels

if TYPE_CHECKING:
    from rowlake.model.format import Format
    from rowlake.model.handle import TableHandle
    from rowlake.model.metadata_change import TableDefinition
    from rowlake.model.names import Identifier, Name
    from rowlake.storage import places
else:  # loaded at its first use: loading a table compares no places
    (places,) = deferred("rowlake.storage", "places")

FORMATS = {ICEBERG.name: ICEBERG, DELTA.name: DELTA}


def format_named(name: str) -> Format:
    """Return a format by the name that users know."""
    found = FORMATS.get(name.lower())
    if found is None:
        known = ", ".join(sorted(FORMATS))
        raise UnsupportedFeatureError(f"Unknown table format {name} (expected one of: {known}).")
    return found


def load_table(catalog: Any, name: Name) -> TableHandle:
    """Return a table as it is now, by its name in the catalog or by its path."""
    levels = levels_of(name)
    path = path_in(levels)
    if path is not None:
        return format_named(levels[0]).load_path(catalog, levels, path)
    try:
        own = catalog_tables.load_table(catalog, name)
    except TableNotFoundError:
        found = foreign_names.find(catalog, levels)
        if found is None:
            raise
    else:
        # The mirror of a table in its folder has the table's name in a catalog of folders.
        found = foreign_names.find(catalog, levels) if MIRROR_OF in own.properties else None
        if found is None:
            return own
    return format_named(found.format).load_path(catalog, levels, found.location)


def table_exists(catalog: Any, name: Name) -> bool:
    """Return whether there is such a table."""
    levels = levels_of(name)
    if path_in(levels) is None:
        is_named = catalog_tables.table_exists(catalog, name)
        return is_named or foreign_names.find(catalog, levels) is not None
    try:
        load_table(catalog, name)
    except TableNotFoundError:
        return False
    return True


def create_table(
    catalog: Any, identifier: Identifier, definition: TableDefinition, *, staged: bool = False
) -> TableHandle:
    """Create an empty table by its path or its name; `staged` leaves that to the first commit."""
    path = path_in(identifier)
    wanted = definition.format or (ICEBERG.name if path is None else identifier[0])
    found = format_named(wanted)
    if path is not None:
        _validate_path(identifier, definition, found)
        located = replace(definition, location=path)
        return found.create(catalog, identifier, located, staged=staged)
    if found is ICEBERG:
        return found.create(catalog, identifier, definition, staged=staged)
    foreign_names.validate_can_hold(catalog, identifier)
    location = definition.location or backend_of(catalog).default_location(identifier)
    handle = found.create(
        catalog, identifier, replace(definition, location=location), staged=staged
    )
    if not staged:
        add_name(handle)
    return handle


def _validate_path(identifier: Identifier, definition: TableDefinition, found: Format) -> None:
    if found.name != identifier[0].lower():
        raise InvalidStatementError(f"{quoted(identifier)} is a path of another format.")
    if definition.location not in (None, identifier[1]):
        raise InvalidStatementError(
            f"LOCATION {definition.location} contradicts the path of {quoted(identifier)}."
        )


def add_name(handle: TableHandle) -> None:
    """Keep the name of a new table, where its catalog does not by itself."""
    if handle.format is not ICEBERG and path_in(handle.identifier) is None:
        foreign_names.add(handle.catalog, _foreign(handle))


def _foreign(handle: TableHandle) -> foreign_names.ForeignTable:
    return foreign_names.ForeignTable(handle.identifier, handle.format.name, handle.location)


def register_table(catalog: Any, name: Name, location: str) -> TableHandle:
    """Add a table that exists: Iceberg's by its metadata file, Delta's by its folder."""
    if location.endswith(".json"):
        return catalog_tables.register_table(catalog, name, location)
    identifier = table_levels(name)
    foreign_names.validate_can_hold(catalog, identifier)
    if table_exists(catalog, identifier):
        raise InvalidStatementError(f"There is a table {quoted(identifier)} already.")
    handle = DELTA.load_path(catalog, identifier, location)
    foreign_names.add(catalog, _foreign(handle))
    return handle


def drop_name(catalog: Any, name: Name, *, purge: bool = False) -> bool:
    """Forget the name of a table of another format; False where the catalog has it itself.

    The table stays where it is, and can be registered again.
    """
    identifier = table_levels(name)
    found = foreign_names.find(catalog, identifier)
    if found is None:
        return False
    if purge:
        raise UnsupportedFeatureError(
            f"Cannot delete the files of {quoted(identifier)}: rowlake does not purge Delta "
            f"tables. Drop its name alone; the table stays at {found.location}."
        )
    foreign_names.remove(catalog, identifier)
    return True


def rename_table(catalog: Any, name: Name, to: Name) -> TableHandle:
    """Give a table another name."""
    found = foreign_names.find(catalog, table_levels(name))
    if found is None:
        return catalog_tables.rename_table(catalog, name, to)
    if table_exists(catalog, to):
        raise InvalidStatementError(f"There is a table {quoted(table_levels(to))} already.")
    foreign_names.add(catalog, replace(found, identifier=table_levels(to)))
    foreign_names.remove(catalog, found.identifier)
    return load_table(catalog, to)


def validate_renaming(catalog: Any, handle: TableHandle, to: Format) -> None:
    """Refuse to let a name mean a table of another format where the catalog cannot."""
    foreign_names.validate_can_hold(catalog, handle.identifier)
    if to is ICEBERG and _is_of_folders(catalog):
        place = backend_of(catalog).default_location(handle.identifier) or ""
        if places.place_of(place) != places.place_of(handle.location):
            raise UnsupportedFeatureError(
                f"Cannot convert {handle.name}: it is at {handle.location}, and the file-system "
                f"catalog has the Iceberg table of that name at {place}. Nothing was changed."
            )


def give_name(catalog: Any, old: TableHandle, new: TableHandle) -> TableHandle:
    """Let the name of a table mean another one in its folder; may be done again."""
    levels = old.identifier
    known = foreign_names.find(catalog, levels)
    if new.format is not ICEBERG:
        if known is None:
            foreign_names.add(catalog, _foreign(new))
        if not _is_of_folders(catalog) and catalog_tables.table_exists(catalog, levels):
            catalog_tables.drop_table(catalog, levels)
        return load_table(catalog, levels)
    if not catalog_tables.table_exists(catalog, levels):
        catalog_tables.register_table(catalog, levels, str(new.version))
    if known is not None:
        foreign_names.remove(catalog, levels)
    return load_table(catalog, levels)


def _is_of_folders(catalog: Any) -> bool:
    """Return whether a table is in the catalog because its folder is there."""
    return "FileSystemCatalog" in kinds_of(catalog)


def validate_in_catalog(name: Name, act: str) -> None:
    """Refuse to drop or rename what is only a path."""
    path = path_in(levels_of(name))
    if path is not None:
        raise UnsupportedFeatureError(
            f"Cannot {act} {path}: it is a table by its path, which no catalog names."
        )


def path_in(levels: Identifier) -> str | None:
    """Return the path that a name is, None where it is a name of the catalog."""
    is_path = len(levels) == 2 and levels[0].lower() in FORMATS and "/" in levels[1]
    return levels[1] if is_path else None
