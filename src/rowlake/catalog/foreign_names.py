"""Names of tables that are of another format than the catalog's: where each one is.

A catalog of Iceberg tables has no place for others, so a lake keeps their names beside it, as small
files in the warehouse: `_foreign_tables/<namespace>/<name>.json` with the format and the folder.
Embedded lakes and the file-system catalog have such names; catalogs that others share have none,
since their other users would not see them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.catalog.backend import kinds_of
from rowlake.errors import (
    CorruptTableError,
    InvalidStatementError,
    MissingFileError,
    UnsupportedFeatureError,
)
from rowlake.model.names import folder_name, quoted
from rowlake.storage.files import Storage
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from rowlake.model.names import Identifier

FOLDER = "_foreign_tables"
_KINDS = {"EmbeddedCatalog", "FileSystemCatalog"}
_ENDING = ".json"


@dataclass(frozen=True)
class ForeignTable:
    """A table by its name; `location` is its folder."""

    identifier: Identifier
    format: str
    location: str


def can_hold(catalog: Any) -> bool:
    """Return whether a catalog keeps names of other formats."""
    return bool(kinds_of(catalog) & _KINDS)


def find(catalog: Any, identifier: Identifier) -> ForeignTable | None:
    """Return the table of a name, None where there is none."""
    if len(identifier) < 2 or not can_hold(catalog):
        return None
    location = _file(catalog, identifier)
    try:
        held = json.loads(_storage(catalog).read(location))
        return ForeignTable(identifier, str(held["format"]), str(held["location"]))
    except MissingFileError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        cause = f"it does not say which table {quoted(identifier)} is"
        raise CorruptTableError(location, cause) from error


def add(catalog: Any, table: ForeignTable) -> None:
    """Add a name; raises InvalidStatementError where it is taken."""
    validate_can_hold(catalog, table.identifier)
    held = json.dumps({"format": table.format, "location": table.location})
    if not _storage(catalog).create(_file(catalog, table.identifier), held.encode()):
        raise InvalidStatementError(f"There is a table {quoted(table.identifier)} already.")


def validate_can_hold(catalog: Any, identifier: Identifier) -> None:
    """Refuse a catalog that keeps no names of other formats, or a namespace that is not there."""
    if not can_hold(catalog):
        raise UnsupportedFeatureError(
            f"Cannot add {quoted(identifier)}: only embedded lakes and the file-system catalog "
            "keep names of Delta tables. Use the table by its path: delta.`/path`."
        )
    if not catalog.namespace_exists(identifier[:-1]):
        raise InvalidStatementError(f"There is no namespace {quoted(identifier[:-1])}.")


def remove(catalog: Any, identifier: Identifier) -> None:
    """Forget a name; the table stays where it is."""
    _storage(catalog).delete([_file(catalog, identifier)])


def names_in(catalog: Any, namespace: Identifier) -> list[Identifier]:
    """Return the names of a namespace, sorted."""
    if not namespace or not can_hold(catalog):
        return []
    folder = join(_root(catalog), *map(folder_name, namespace))
    files = [one.location.rsplit("/", 1)[-1] for one in _storage(catalog).children(folder)]
    held = sorted(one.removesuffix(_ENDING) for one in files if one.endswith(_ENDING))
    return [(*namespace, name) for name in held]


def _file(catalog: Any, identifier: Identifier) -> str:
    *above, name = map(folder_name, identifier)
    return join(_root(catalog), *above, f"{name}{_ENDING}")


def _root(catalog: Any) -> str:
    return join(str(catalog.properties["warehouse"]), FOLDER)


def _storage(catalog: Any) -> Storage:
    return Storage(catalog.properties)
