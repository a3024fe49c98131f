"""Where a catalog in a database puts a new table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchNamespaceError

from rowlake.errors import InvalidStatementError
from rowlake.model.names import folder_name
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from rowlake.model.names import Identifier


def default_location(catalog: Catalog, identifier: Identifier) -> str | None:
    """Return where a new table of this name goes; None for a catalog without a warehouse.

    Raises NoSuchNamespaceError, and InvalidStatementError for a name that is no folder's.
    """
    namespace = identifier[:-1]
    if not catalog.namespace_exists(namespace):
        raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
    below = catalog.load_namespace_properties(namespace).get("location")
    warehouse = catalog.properties.get("warehouse")
    if below:
        return join(str(below), folder_name(identifier[-1]))
    if not warehouse:
        return None
    return join(warehouse, folder_name(".".join(namespace)), folder_name(identifier[-1]))


def known_default(catalog: Catalog, identifier: Identifier) -> str | None:
    """Return where a new table of this name would go, None where it could not be made."""
    try:
        return default_location(catalog, identifier)
    except (NoSuchNamespaceError, InvalidStatementError):
        return None
