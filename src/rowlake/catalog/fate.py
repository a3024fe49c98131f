"""How an error leaves a commit: not landed, or nobody knows."""

from __future__ import annotations

import enum

from pyiceberg import exceptions as theirs

from rowlake.catalog.failures import is_of_database, is_of_network
from rowlake.errors import RowlakeError


class Fate(enum.Enum):
    """How an error leaves a commit."""

    CONFLICT = "it did not land and may be tried again"
    UNKNOWN = "it may have landed"
    FAILED = "it did not land, and trying again does not help"


_CONFLICTS = (
    theirs.CommitFailedException,
    theirs.TableAlreadyExistsError,
    theirs.WaitingForLockException,
    theirs.TooManyRequestsError,
    theirs.BadRequestError,
)
_OF_THE_CALL = (
    RowlakeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    NotImplementedError,
)
_FAILURES = (
    theirs.ValidationError,
    theirs.NoSuchTableError,
    theirs.NoSuchNamespaceError,
    theirs.ForbiddenError,
    theirs.UnauthorizedError,
    theirs.AuthorizationExpiredError,
)


def fate_of(error: Exception) -> Fate:
    """Return how an error of `Backend.commit` leaves the commit.

    A status below 500 says that the server refused; any other answer, and none, leaves it open
    (PyIceberg names only some of them). A connection that was never made carried nothing.
    """
    if isinstance(error, theirs.CommitStateUnknownException):
        return Fate.UNKNOWN
    if isinstance(error, _CONFLICTS):
        return Fate.CONFLICT
    if isinstance(error, _FAILURES):
        return Fate.FAILED
    status = status_of(error)
    if status is not None:
        return Fate.CONFLICT if 400 <= status < 500 else Fate.UNKNOWN
    if is_of_network(error):
        return Fate.FAILED if _was_never_sent(error) else Fate.UNKNOWN
    # An answer that cannot be read is a ValidationError too, but came after the commit.
    of_the_call = isinstance(error, _OF_THE_CALL) or is_of_database(error)
    return Fate.FAILED if of_the_call and not _is_of_an_answer(error) else Fate.UNKNOWN


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error came from, None where there was no answer."""
    response = getattr(error, "response", None)
    if response is None:
        response = getattr(error.__cause__, "response", None)
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _is_of_an_answer(error: Exception) -> bool:
    return type(error).__module__.startswith("pydantic")


def _was_never_sent(error: BaseException) -> bool:
    kinds = {type(part).__name__ for part in _chain(error)}
    return bool(kinds & {"NewConnectionError", "NameResolutionError", "ConnectTimeoutError"})


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error with all that it carries: arguments, reasons, causes."""
    found: list[BaseException] = []
    pending: list[object] = [error]
    while pending:
        part = pending.pop()
        if isinstance(part, BaseException) and part not in found:
            found.append(part)
            pending += [*part.args, getattr(part, "reason", None), part.__cause__, part.__context__]
    return found
