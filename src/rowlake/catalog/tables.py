"""Tables and namespaces of a catalog, by name, with rowlake's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg import exceptions as theirs

from rowlake.catalog import foreign_names
from rowlake.catalog.backend import backend_of
from rowlake.catalog.failures import failing, is_of_database
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.catalog.purge import gc_allowed
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.iceberg.metadata_checks import validate_nesting
from rowlake.iceberg.metadata_files import read_metadata
from rowlake.model.names import (
    DEFAULT_NAMESPACE,
    folder_name,
    levels_of,
    near,
    quoted,
    table_levels,
)
from rowlake.model.properties import validate_no_secrets
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier, Name


def load_table(catalog: Catalog, name: Name) -> IcebergHandle:
    """Return a table as it is now."""
    identifier = table_levels(name)
    with failing(catalog, f"load {quoted(identifier)}", identifier):
        try:
            return backend_of(catalog).load(identifier, None)
        except (theirs.NoSuchTableError, theirs.NoSuchNamespaceError) as error:
            raise _not_found(catalog, identifier) from error


def refresh(handle: IcebergHandle) -> IcebergHandle:
    """Return the table as it is now; the same handle where nothing changed."""
    with failing(handle.catalog, f"load {handle.name}", handle.identifier):
        return backend_of(handle.catalog).load(handle.identifier, handle)


def table_exists(catalog: Catalog, name: Name) -> bool:
    """Return whether there is such a table."""
    identifier = table_levels(name)
    with failing(catalog, f"look for {quoted(identifier)}", identifier):
        try:
            return backend_of(catalog).exists(identifier)
        except theirs.NoSuchNamespaceError:
            return False


def stage_table(catalog: Catalog, name: Name, definition: Definition) -> IcebergHandle:
    """Return a table that the first commit to it creates, with all that this commit adds."""
    validate_no_secrets(definition.properties)
    identifier = table_levels(name)
    validate_nesting(definition.schema)
    with failing(catalog, f"create {quoted(identifier)}", identifier):
        ensure_default(catalog, identifier[:-1])
        try:
            return backend_of(catalog).stage(identifier, definition)
        except theirs.NoSuchNamespaceError as error:
            raise _no_namespace(catalog, identifier[:-1]) from error


def create_table(catalog: Catalog, name: Name, definition: Definition) -> IcebergHandle:
    """Create an empty table."""
    staged = stage_table(catalog, name, definition)
    with failing(catalog, f"create {staged.name}", staged.identifier):
        return backend_of(catalog).commit(staged, (), ())


def register_table(catalog: Catalog, name: Name, metadata_location: str) -> IcebergHandle:
    """Add a table whose metadata file is there already."""
    identifier = table_levels(name)
    with failing(catalog, f"register {quoted(identifier)}", identifier):
        read_metadata(metadata_location, Storage(catalog.properties))
        if backend_of(catalog).exists(identifier):
            raise theirs.TableAlreadyExistsError
        ensure_default(catalog, identifier[:-1])
        backend_of(catalog).register(identifier, metadata_location)
    return load_table(catalog, identifier)


def drop_table(catalog: Catalog, name: Name) -> None:
    """Take a table out of the catalog.

    The file-system catalog has no table without its folder, so there the folder goes too.
    """
    identifier = table_levels(name)
    with failing(catalog, f"drop {quoted(identifier)}", identifier):
        try:
            catalog.drop_table(identifier)
        except (theirs.NoSuchTableError, theirs.NoSuchNamespaceError) as error:
            raise _not_found(catalog, identifier) from error


def purge_table(
    handle: IcebergHandle,
    files_of: Callable[[IcebergHandle], Collection[str]],
    is_own: Callable[[str], bool],
) -> None:
    """Drop a table, then delete its files (`files_of`); REST catalogs do that by themselves.

    Of the table's location only empty folders go, where `is_own` says that it is the table's.
    """
    gc_allowed(handle)
    with failing(handle.catalog, f"drop {handle.name}", handle.identifier):
        if purges_itself(handle.catalog):
            handle.catalog.purge_table(handle.identifier)
            return
        files = files_of(handle)
        handle.catalog.drop_table(handle.identifier)
        handle.storage.delete(files)
        if is_own(handle.metadata.location):
            handle.storage.delete_empty_folders(handle.metadata.location)


def purges_itself(catalog: Catalog) -> bool:
    """Return whether the catalog's server deletes the files of a table, by its own rules."""
    return any(kind.__name__ == "RestCatalog" for kind in type(catalog).__mro__)


def rename_table(catalog: Catalog, name: Name, new_name: Name) -> IcebergHandle:
    """Rename a table."""
    identifier, to = table_levels(name), table_levels(new_name)
    backend = backend_of(catalog)
    with failing(catalog, f"rename {quoted(identifier)} to {quoted(to)}", to):
        if not backend.exists(identifier):
            raise _not_found(catalog, identifier)
        if table_exists(catalog, to):
            raise theirs.TableAlreadyExistsError
        ensure_default(catalog, to[:-1])
        try:
            backend.rename(identifier, to)
        except theirs.NoSuchNamespaceError as error:
            raise _no_namespace(catalog, to[:-1]) from error
    return load_table(catalog, to)


def list_tables(catalog: Catalog, namespace: Name) -> list[Identifier]:
    """Return the tables of a namespace, sorted."""
    levels = levels_of(namespace)
    with failing(catalog, f"list {quoted(levels)}", levels):
        try:
            own = [tuple(found) for found in catalog.list_tables(levels)]
            return sorted({*own, *foreign_names.names_in(catalog, levels)})
        except theirs.NoSuchNamespaceError as error:
            if levels == DEFAULT_NAMESPACE:
                return []
            raise _no_namespace(catalog, levels) from error


def list_namespaces(catalog: Catalog, below: Name = ()) -> list[Identifier]:
    """Return the namespaces right below one (of the top without it), sorted."""
    levels = levels_of(below) if below else ()
    always = set() if levels else {DEFAULT_NAMESPACE}
    with failing(catalog, f"list the namespaces of {quoted(levels)}", levels):
        try:
            # The folder of a table of another format is no namespace.
            tables = set(foreign_names.names_in(catalog, levels))
            found = {tuple(one) for one in catalog.list_namespaces(levels)}
            return sorted(always | (found - tables))
        except theirs.NoSuchNamespaceError as error:
            if levels == DEFAULT_NAMESPACE:
                return []
            raise _no_namespace(catalog, levels) from error


def all_namespaces(catalog: Catalog) -> list[Identifier]:
    """Return every namespace of every level, parents before children."""
    found: list[Identifier] = []
    pending = list_namespaces(catalog)
    while pending:
        current = pending.pop(0)
        found.append(current)
        pending = [*list_namespaces(catalog, current), *pending]
    return found


def namespace_exists(catalog: Catalog, namespace: Name) -> bool:
    """Return whether there is such a namespace."""
    levels = levels_of(namespace)
    if levels == DEFAULT_NAMESPACE:
        return True
    with failing(catalog, f"look for {quoted(levels)}", levels):
        return bool(catalog.namespace_exists(levels))


def ensure_default(catalog: Catalog, levels: Identifier) -> None:
    """Create the default namespace where a table is to go there and the catalog has none."""
    if levels == DEFAULT_NAMESPACE and not catalog.namespace_exists(levels):
        create_namespace(catalog, levels, exist_ok=True)


def create_namespace(
    catalog: Catalog,
    namespace: Name,
    properties: Mapping[str, str] | None = None,
    *,
    exist_ok: bool = False,
) -> None:
    """Create a namespace; those above it need not be there."""
    levels = levels_of(namespace)
    _check_levels(catalog, levels)
    with failing(catalog, f"create {quoted(levels)}", levels):
        try:
            catalog.create_namespace(levels, dict(properties or {}))
        except Exception as error:
            if not _is_there_already(catalog, levels, error):
                raise
            if not exist_ok:
                raise theirs.NamespaceAlreadyExistsError(quoted(levels)) from error


def _is_there_already(catalog: Catalog, levels: Identifier, error: Exception) -> bool:
    # PyIceberg looks for the namespace and then inserts its row, so that of two who create it at
    # once the loser gets the database's own error.
    return isinstance(error, theirs.NamespaceAlreadyExistsError) or (
        is_of_database(error) and bool(catalog.namespace_exists(levels))
    )


def drop_namespace(catalog: Catalog, namespace: Name) -> None:
    """Drop a namespace that has no tables and no namespaces."""
    levels = levels_of(namespace)
    with failing(catalog, f"drop {quoted(levels)}", levels):
        if not catalog.namespace_exists(levels):
            raise _no_namespace(catalog, levels)
        if catalog.list_namespaces(levels) or foreign_names.names_in(catalog, levels):
            raise theirs.NamespaceNotEmptyError
        catalog.drop_namespace(levels)


def namespace_properties(catalog: Catalog, namespace: Name) -> dict[str, str]:
    """Return the properties of a namespace."""
    levels = levels_of(namespace)
    with failing(catalog, f"describe {quoted(levels)}", levels):
        try:
            found = catalog.load_namespace_properties(levels)
        except theirs.NoSuchNamespaceError:
            if levels != DEFAULT_NAMESPACE:
                raise
            found = {}
    return {str(key): str(value) for key, value in found.items()}


def _check_levels(catalog: Catalog, levels: Identifier) -> None:
    # In a database a namespace is its levels with dots between them.
    if hasattr(catalog, "engine") and any("." in level for level in levels):
        raise InvalidStatementError(
            f"Cannot create {quoted(levels)}: this catalog cannot keep a dot inside a namespace."
        )
    # PyIceberg strips levels where it drops or renames a table.
    if hasattr(catalog, "engine") and any(level != level.strip() for level in levels):
        raise InvalidStatementError(
            f"Cannot create {quoted(levels)}: a namespace cannot begin or end with white space."
        )
    if hasattr(catalog, "engine") or isinstance(catalog, FileSystemCatalog):
        for level in levels:
            folder_name(level)


def _not_found(catalog: Catalog, identifier: Identifier) -> TableNotFoundError:
    try:
        known = catalog.list_tables(identifier[:-1])
    except theirs.NoSuchNamespaceError:
        if identifier[:-1] != DEFAULT_NAMESPACE:
            return _no_namespace(catalog, identifier[:-1])
        known = []
    except Exception:  # noqa: BLE001  (near names are a courtesy)
        known = []
    if not known and not namespace_exists(catalog, identifier[:-1]):
        return _no_namespace(catalog, identifier[:-1])
    names = {found[-1]: quoted(found) for found in known}
    similar = [names[match] for match in near(identifier[-1], names)]
    return TableNotFoundError(quoted(identifier), similar=similar)


def _no_namespace(catalog: Catalog, levels: Identifier) -> TableNotFoundError:
    try:
        known = [quoted(found) for found in catalog.list_namespaces(levels[:-1])]
    except Exception:  # noqa: BLE001  (near names are a courtesy)
        known = []
    name = quoted(levels)
    return TableNotFoundError(name, kind="namespace", similar=near(name, known))
