"""Opening a catalog from what a user gave to `connect`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyiceberg.catalog import Catalog, list_catalogs, load_catalog
from pyiceberg.utils.config import Config

from rowlake.catalog.failures import first_line, is_of_database, is_of_network
from rowlake.catalog.io import IMPLEMENTATION, OURS
from rowlake.errors import InvalidStatementError, RowlakeError, StorageError
from rowlake.model.names import near
from rowlake.secrets import (
    cause_without_secrets,
    statement_without_secrets,
    without_passwords,
    without_secrets,
)
from rowlake.storage.failures import storage_failure
from rowlake.storage.locations import is_remote, split

DEFAULT_WAREHOUSE = "lakehouse"
FILE_SYSTEM = "filesystem"
NAME = "rowlake"

logger = logging.getLogger("rowlake")


def open_catalog(
    warehouse: str | Path | None = None,
    catalog: str | Mapping[str, str] | Catalog | None = None,
) -> Catalog:
    """Return a catalog.

    - None: SQLite inside the warehouse (default `./lakehouse`, made where there is none); a
      warehouse on an object store has no place for it and gets the file-system catalog;
    - `"filesystem"`: the file-system catalog;
    - another name: from PyIceberg's configuration; a mapping: PyIceberg's catalog properties;
    - a PyIceberg catalog: as it is.
    """
    if not isinstance(warehouse, (str, Path, type(None))):
        raise InvalidStatementError(f"{_shown(warehouse)} is no warehouse: give a path or a URI.")
    place = None if warehouse is None else _absolute(str(warehouse))
    if isinstance(catalog, Catalog):
        return catalog
    if catalog is None:
        return _without_server(place or _absolute(DEFAULT_WAREHOUSE))
    if catalog == FILE_SYSTEM:
        return _filesystem(place or _absolute(DEFAULT_WAREHOUSE), {})
    if isinstance(catalog, str):
        return _by_name(catalog, place)
    if not isinstance(catalog, Mapping):
        raise InvalidStatementError(
            f"{_shown(catalog)} is no catalog: give 'filesystem', a name of PyIceberg's "
            "configuration, its properties, or a PyIceberg catalog."
        )
    return _by_properties({key: str(value) for key, value in catalog.items()}, place)


def missing_lake(warehouse: str | None, catalog: Any) -> str | None:
    """Return where a lake on this machine would have to be made; None where there is one.

    Says nothing of lakes elsewhere, nor of catalogs with a server.
    """
    if catalog not in (None, FILE_SYSTEM):
        return None
    place = _absolute(str(warehouse) if warehouse is not None else DEFAULT_WAREHOUSE)
    if is_remote(place):
        return None
    from rowlake.catalog.embedded import FILE_NAME

    folder = Path(split(place).path)
    needed = folder / FILE_NAME if catalog is None else folder
    # What is there but no folder is refused with its own words when the lake is opened.
    return None if needed.exists() or folder.is_file() else str(folder)


def _shown(given: object) -> str:
    return statement_without_secrets(without_secrets(repr(given)))


def _absolute(warehouse: str) -> str:
    parts = split(warehouse)
    text = parts.path if parts.is_local and not parts.prefix else warehouse
    return text.rstrip("/") or "/"


def _without_server(warehouse: str) -> Catalog:
    if is_remote(warehouse):
        logger.warning(
            "%s cannot hold a SQLite catalog; using the file-system catalog "
            '(catalog="filesystem" says so without this warning).',
            without_passwords(warehouse),
        )
        return _filesystem(warehouse, {})
    from rowlake.catalog.embedded import FILE_NAME, EmbeddedCatalog

    folder = Path(split(warehouse).path)
    _make_folder(folder)
    try:
        return EmbeddedCatalog(
            NAME, folder / FILE_NAME, warehouse=warehouse, **{IMPLEMENTATION: OURS}
        )
    except Exception as error:
        raise _not_opened(str(folder / FILE_NAME), error, {}) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise StorageError(
            str(folder), "it is a file, not a folder", advice="Give the folder of the warehouse."
        ) from error
    except OSError as error:
        raise storage_failure(str(folder), error) from error


def _filesystem(warehouse: str, properties: Mapping[str, str]) -> Catalog:
    from rowlake.catalog.filesystem import FileSystemCatalog

    given = {IMPLEMENTATION: OURS, **properties, "warehouse": warehouse}
    opened = FileSystemCatalog(NAME, **given)
    if is_remote(warehouse):
        opened.storage.folders(warehouse)  # a bucket that is not there should be known now
    else:
        _make_folder(Path(split(warehouse).path))
    return opened


def _by_name(name: str, warehouse: str | None) -> Catalog:
    known = list_catalogs()
    if name not in known and name.lower() not in known:
        hint = f" Did you mean {', '.join(near(name, known))}?" if near(name, known) else ""
        name = without_passwords(name)
        raise InvalidStatementError(
            f"There is no catalog {name} in PyIceberg's configuration (.pyiceberg.yaml or "
            f"PYICEBERG_CATALOG__{name.upper()}__URI; known: {', '.join(known) or 'none'}).{hint}"
        )
    given = {"warehouse": warehouse} if warehouse else {}
    return _load(name, given)


def _by_properties(properties: dict[str, str], warehouse: str | None) -> Catalog:
    name = properties.pop("name", NAME)
    if warehouse:
        properties["warehouse"] = warehouse
    if properties.get("type", "").lower() in {FILE_SYSTEM, "hadoop"}:
        del properties["type"]
        place = properties.pop("warehouse", DEFAULT_WAREHOUSE)
        return _filesystem(_absolute(place), properties)
    return _load(name, properties)


def _load(name: str, properties: Mapping[str, str]) -> Catalog:
    configured = Config().get_catalog_config(name) or {}
    io = {} if IMPLEMENTATION in configured else {IMPLEMENTATION: OURS}
    try:
        opened = load_catalog(name, **{**io, **properties})
    except Exception as error:  # noqa: BLE001 - raised again, whatever it is
        known = {**configured, **properties}
        place = str(properties.get("uri", name))
        raise _not_opened(place, error, known) from cause_without_secrets(error, known)
    if "pyiceberg.catalog.sql" in sys.modules and hasattr(opened, "engine"):
        from rowlake.catalog.sqlite import make_patient

        make_patient(opened.engine)
    return opened


def _not_opened(place: str, error: Exception, properties: Mapping[str, Any]) -> RowlakeError:
    if isinstance(error, RowlakeError):
        return error
    place = without_passwords(place)
    if isinstance(error, OSError) or is_of_network(error) or is_of_database(error):
        return StorageError(
            place,
            first_line(error, properties),
            advice="Check that the catalog runs and its address.",
        )
    text = without_secrets(str(error), properties).strip()
    return InvalidStatementError(f"Cannot open the catalog {place}: {text}")


def properties_to_reopen(catalog: Catalog) -> dict[str, str]:
    """Return the properties that open a catalog like this one again, in another process."""
    given = {key: str(value) for key, value in catalog.properties.items()}
    if type(catalog).__module__ == "rowlake.catalog.filesystem":
        given["type"] = FILE_SYSTEM
    return {**given, "name": str(catalog.name)}
