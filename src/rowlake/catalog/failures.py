"""What catalogs say when they fail, in rowlake's words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyiceberg import exceptions as theirs

from rowlake.errors import (
    InvalidStatementError,
    RowlakeError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.model.names import quoted
from rowlake.secrets import cause_without_secrets, without_passwords, without_secrets
from rowlake.storage.failures import storage_failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog

    from rowlake.model.names import Identifier

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


@contextmanager
def failing(catalog: Catalog, what: str, name: Identifier = ()) -> Iterator[None]:
    """Turn an error of a catalog into rowlake's; `what` completes "Cannot …"."""
    try:
        yield
    except RowlakeError as error:
        cause = error.__cause__
        if cause is None or cause_without_secrets(cause, catalog.properties):
            raise
        raise error from None
    except Exception as error:
        meant = meaning(catalog, what, name, error)
        if meant is None:
            raise
        raise meant from cause_without_secrets(error, catalog.properties)


def meaning(catalog: Catalog, what: str, name: Identifier, error: Exception) -> RowlakeError | None:
    """Return what an error means for the user, None where it is no catalog's."""
    text = " ".join(without_secrets(str(error), catalog.properties).split())
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
            place,
            first_line(error, catalog.properties),
            advice="Check that the catalog runs and its address.",
        )
    if isinstance(error, OSError):
        return storage_failure(str(error.filename or place), error, catalog.properties)
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
    return without_passwords(uri)


def is_of_database(error: BaseException) -> bool:
    """Return whether an error is SQLAlchemy's or SQLite's, without importing them."""
    return any(kind.__module__ in _DATABASES for kind in type(error).__mro__)


def is_of_network(error: BaseException) -> bool:
    """Return whether an error is the HTTP client's, without importing it."""
    return any(kind.__module__ == "requests.exceptions" for kind in type(error).__mro__)


def first_line(error: Exception, properties: Mapping[str, Any]) -> str:
    """Return the first line of what a database or a client said, without secrets."""
    text = without_secrets(str(getattr(error, "orig", None) or error), properties)
    lines = text.strip().splitlines()
    return lines[0] if lines else type(error).__name__
