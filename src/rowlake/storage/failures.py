"""Translate failures of file systems and object stores to rowlake's errors."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

from rowlake.errors import MissingFileError, StorageError
from rowlake.secrets import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

DENIED = "permission denied"
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|bucket does not exist", re.IGNORECASE)
_MISSING = re.compile(
    r"NoSuchKey|NO_SUCH_KEY|Path does not exist|No such file|RESOURCE_NOT_FOUND|HTTP status 404"
)
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|Access Denied|Permission denied|HTTP status 403|Forbidden|"
    r"INVALID_ACCESS_KEY_ID|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch|"
    r"Unauthorized|EXPIRED_TOKEN|ExpiredToken"
)
_BROKEN = re.compile(
    r"NETWORK_CONNECTION|Couldn't connect|Connection refused|connect error|timed out|timeout|"
    r"Could not resolve host|dns error|error sending request",
    re.IGNORECASE,
)


def is_denied(error: StorageError) -> bool:
    """Return whether storage answered that we may not: nothing was read or written then."""
    return error.cause == DENIED


def storage_failure(
    location: str, error: Exception, properties: Mapping[str, str] | None = None
) -> StorageError:
    """Return rowlake's error for a failure of a file system or an object store.

    `properties` opened the storage; none of their secrets appears in the text.
    """
    text = without_secrets(" ".join(str(error).split()), properties)
    if _NO_BUCKET.search(text):
        return StorageError(
            location, "there is no such bucket", advice="Check the name and the endpoint."
        )
    if isinstance(error, FileNotFoundError) or _MISSING.search(text):
        return MissingFileError(location, "there is no such file")
    if isinstance(error, PermissionError) or _DENIED.search(text):
        return StorageError(location, DENIED, advice="Check the credentials and the permissions.")
    if isinstance(error, (ConnectionError, TimeoutError)) or _BROKEN.search(text):
        return StorageError(
            location,
            f"no connection to the storage ({_short(text)})",
            advice="Check the endpoint and the network.",
        )
    return _other_failure(location, error, text)


def _other_failure(location: str, error: Exception, text: str) -> StorageError:
    number = getattr(error, "errno", None)
    if number == errno.ENOSPC:
        return StorageError(location, "no space left", advice="Free some space and run it again.")
    if isinstance(error, (IsADirectoryError, NotADirectoryError)):
        kind = "it is a folder" if isinstance(error, IsADirectoryError) else "no folder above it"
        return StorageError(location, kind, advice="Check the location.")
    return StorageError(location, _short(text) or type(error).__name__)


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else text[:limit] + "…"
