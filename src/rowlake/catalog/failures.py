"""What catalogs say when they fail, in rowlake's words."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyiceberg import exceptions as theirs

from rowlake.catalog.names import quoted
from rowlake.errors import (
    InvalidStatementError,
    RowlakeError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.storage.failures import storage_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog

    from rowlake.catalog.names import Identifier

_REFUSED = (theirs.ForbiddenError, theirs.UnauthorizedError, theirs.AuthorizationExpiredError)
_TAKEN = (
    theirs.TableAlreadyExistsError,
    theirs.ViewAlreadyExistsError,
    theirs.NamespaceAlreadyExistsError,
)
_ABSENT = (theirs.NoSuchTableError, theirs.NoSuchIdentifierError, theirs.NoSuchViewError)
_OF_THE_CALL = (
    theirs.NoSuchPropertyException,
    theirs.ValidationError,
    theirs.BadRequestError,
    theirs.ResolveError,
    ValueError,
)
_DATABASES = {"sqlalchemy.exc", "sqlite3"}
_SECRET = re.compile(r"(://[^:/@]+:)[^@/]*@")


@contextmanager
def failing(catalog: Catalog, what: str, name: Identifier = ()) -> Iterator[None]:
    """Turn an error of a catalog into rowlake's; `what` completes "Cannot …"."""
    try:
        yield
    except RowlakeError:
        raise
    except Exception as error:
        meant = meaning(catalog, what, name, error)
        if meant is None:
            raise
        raise meant from error


def meaning(catalog: Catalog, what: str, name: Identifier, error: Exception) -> RowlakeError | None:
    """Return what an error means for the user, None where it is no catalog's."""
    text = " ".join(str(error).split())
    if isinstance(error, theirs.NoSuchNamespaceError):
        return TableNotFoundError(quoted(name[:-1] or name), kind="namespace")
    if isinstance(error, _ABSENT):
        return TableNotFoundError(quoted(name))
    if isinstance(error, _TAKEN):
        return InvalidStatementError(f"Cannot {what}: {quoted(name)} exists already.")
    if isinstance(error, theirs.NamespaceNotEmptyError):
        return InvalidStatementError(f"Cannot {what}: {quoted(name)} is not empty.")
    if isinstance(error, (NotImplementedError, theirs.NotInstalledError)):
        return UnsupportedFeatureError(f"Cannot {what}: {text or 'the catalog does not do that'}.")
    return _of_connection(catalog, error, text) or _of_call(what, error, text)


def _of_connection(catalog: Catalog, error: Exception, text: str) -> RowlakeError | None:
    place = place_of(catalog)
    if isinstance(error, _REFUSED):
        return StorageError(place, f"the catalog refused ({text})", advice="Check the credentials.")
    if is_of_database(error) or is_of_network(error):
        return StorageError(
            place, _first_line(error), advice="Check that the catalog runs and its address."
        )
    if isinstance(error, OSError):
        return storage_failure(str(error.filename or place), error)
    if isinstance(error, theirs.RESTError) and not isinstance(error, theirs.BadRequestError):
        return StorageError(place, f"the catalog failed ({text})", advice="Try it again later.")
    return None


def _of_call(what: str, error: Exception, text: str) -> RowlakeError | None:
    if isinstance(error, _OF_THE_CALL):
        return InvalidStatementError(f"Cannot {what}: {text}")
    return None


def place_of(catalog: Catalog) -> str:
    """Return where a catalog is, without any password."""
    uri = str(catalog.properties.get("uri") or catalog.properties.get("warehouse") or catalog.name)
    return without_password(uri)


def without_password(uri: str) -> str:
    """Return a URI with its password hidden."""
    return _SECRET.sub(r"\1…@", uri)


def is_of_database(error: BaseException) -> bool:
    """Return whether an error is SQLAlchemy's or SQLite's, without importing them."""
    return any(kind.__module__ in _DATABASES for kind in type(error).__mro__)


def is_of_network(error: BaseException) -> bool:
    """Return whether an error is the HTTP client's, without importing it."""
    return any(kind.__module__ == "requests.exceptions" for kind in type(error).__mro__)


def _first_line(error: Exception) -> str:
    lines = without_password(str(getattr(error, "orig", None) or error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
