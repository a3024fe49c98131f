"""What opens the files of a table: the catalog's properties, and few of the table's own.

Metadata is written by whoever can write the table. If it could say where requests go, it would
say who receives the catalog's credentials (a bearer token, a SAS token, a session token). So a
table may name an endpoint, a proxy or a host only together with whole credentials of its own; then
none of the catalog's are used for that kind of storage.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rowlake.secrets import is_secret
from rowlake.storage.filesystems import io_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("rowlake")

# Prefixes of one kind of storage, and the names that are whole credentials together: whoever has
# them needs nothing of the environment's.
_FAMILIES: tuple[tuple[tuple[str, ...], tuple[frozenset[str], ...]], ...] = (
    (("s3.", "client."), (frozenset({"access-key-id", "secret-access-key"}),)),
    (("gcs.",), (frozenset({"oauth2.token"}),)),
    (
        ("adls.",),
        (
            frozenset({"account-key"}),
            frozenset({"sas-token"}),
            frozenset({"client-id", "client-secret", "tenant-id"}),
        ),
    ),
    (("hdfs.",), ()),
)
# Never a table's choice: a role is taken on with the credentials of the environment.
_ROLES = frozenset({"role-arn", "role-session-name"})
# What a table may say without credentials of its own. Its region becomes part of a host's name.
_HARMLESS = frozenset(
    {
        "anonymous",
        "connect-timeout",
        "default-bucket-location",
        "force-virtual-addressing",
        "region",
        "request-timeout",
    }
)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9._\-]{1,64}")


def table_io_properties(
    catalog: Mapping[str, Any], table: Mapping[str, Any], *, name: str = ""
) -> dict[str, str]:
    """Return what opens a table's files; `table` are the properties of its metadata."""
    found, own = io_properties(catalog), io_properties(table)
    for prefixes, credentials in _FAMILIES:
        given = {key: value for key, value in own.items() if key.startswith(prefixes)}
        named = {_rest(key) for key, value in given.items() if value}
        if any(whole <= named for whole in credentials):
            found = {k: v for k, v in found.items() if not _is_identity(k, prefixes)}
            found |= {key: value for key, value in given.items() if _rest(key) not in _ROLES}
        else:
            found |= _harmless(given, found, name)
    return found


def _is_identity(key: str, prefixes: tuple[str, ...]) -> bool:
    return key.startswith(prefixes) and (is_secret(key) or _rest(key) in _ROLES)


def _harmless(given: Mapping[str, str], known: Mapping[str, str], name: str) -> dict[str, str]:
    kept = {}
    for key, value in given.items():
        if _rest(key) in _HARMLESS and _PLAIN_VALUE.fullmatch(value):
            kept[key] = value
        elif known.get(key) != value:
            _warn(name, key)
    return kept


def _rest(key: str) -> str:
    return key.partition(".")[2]


@lru_cache(maxsize=256)
def _warn(name: str, key: str) -> None:
    logger.warning(
        "The property %s of table %s is ignored: metadata must not say where the catalog's "
        "credentials go. Set it in the configuration of the catalog.",
        key,
        name,
    )
