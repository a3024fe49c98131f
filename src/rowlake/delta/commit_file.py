"""Commit files: written by put-if-absent, found again by the token of their commit.

Comes in: the actions of a version, as Delta's JSON has them (`{"add": {…}}`). Goes out: whether
`N.json` is theirs. Invariant: a version has one writer; a file that exists is never replaced, so
that history has no holes and no forks (PROTOCOL.md, "Delta Log Entries").
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rowlake.delta.log_files import LOG_FOLDER, list_log
from rowlake.errors import MissingFileError, StorageError
from rowlake.storage.failures import is_denied
from rowlake.storage.locations import is_remote, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowlake.storage.files import Storage

FIRST_KIND = "commitInfo"
TOKEN = "txnId"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class UncertainCommitError(StorageError):
    """Nobody can tell whether a commit file was written; the commit's outcome is unknown."""


def commit_location(folder: str, version: int) -> str:
    """Return where the commit of a version of the table in `folder` is."""
    return join(folder, LOG_FOLDER, f"{version:020d}.json")


def validate_storage(folder: str, storage: Storage) -> None:
    """Refuse storage that cannot hold commits, before any file of one is written."""
    storage.validate_create(commit_location(folder, 0))


def write_commit(
    folder: str, version: int, actions: Sequence[Mapping[str, Any]], storage: Storage
) -> bool:
    """Write the commit of a version unless there is one; return whether this one is there.

    Raises StorageError where it was not written, UncertainCommitError where nobody can tell: look
    for the token with `find_commit`. Raises UnsupportedFeatureError for storage without
    put-if-absent.
    """
    location, data = commit_location(folder, version), serialized(actions)
    try:
        return storage.create(location, data)
    except StorageError as error:
        try:  # the request may have been served, and only its answer lost
            return storage.read(location) == data
        except MissingFileError:
            if is_remote(location) and not is_denied(error):
                # A request to an object store that got no answer may still arrive.
                raise UncertainCommitError(location, error.cause) from error
            raise error from None
        except StorageError:
            raise UncertainCommitError(location, error.cause) from error


def serialized(actions: Iterable[Mapping[str, Any]]) -> bytes:
    """Return actions as Delta writes them: one a line, commitInfo first, no null fields."""
    ordered = sorted(actions, key=lambda one: FIRST_KIND not in one)
    return "".join(f"{_line(one)}\n" for one in ordered).encode()


def _line(action: Mapping[str, Any]) -> str:
    """Return an action as JSON; nulls of its own fields are left out, those of its maps are not."""
    ((kind, body),) = action.items()
    return json_text({kind: {name: one for name, one in body.items() if one is not None}})


def json_text(value: Any) -> str:
    """Return a value as compact JSON."""
    return _ENCODER.encode(value)


def find_commit(folder: str, token: str, since: int, storage: Storage) -> int | None:
    """Return the version whose commitInfo has a token, of those after `since`; None if none has.

    The answer is final only where no request for the commit is still under way.
    """
    commits = list_log(folder, storage).commits
    for version in sorted(one for one in commits if one > since):
        if token_of(storage.read(commits[version].location)) == token:
            return version
    return None


def token_of(content: bytes) -> str | None:
    """Return the token in the commitInfo of a commit; other writers may not put it first."""
    for line in content.split(b"\n"):
        if b'"commitInfo"' not in line:
            continue
        try:
            info = json.loads(line).get(FIRST_KIND)
        except (ValueError, AttributeError, RecursionError):
            continue
        if isinstance(info, dict):
            found = info.get(TOKEN)
            return found if isinstance(found, str) else None
    return None
