"""Which properties open the files of a table: the catalog's, never the table's own.

Anyone who can write a table writes its metadata. If metadata could name an endpoint, a proxy or a
host, it would decide who receives the catalog's credentials and the rows that are written.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rowlake.storage.filesystems import io_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("rowlake")


def table_io_properties(
    catalog: Mapping[str, Any], table: Mapping[str, Any], *, name: str
) -> dict[str, str]:
    """Return the properties that open a table's files; `table` are those of its metadata.

    Logs once for each ignored property of the table.
    """
    found = io_properties(catalog)
    for key, value in io_properties(table).items():
        if found.get(key) != value:
            _warn(name, key)
    return found


@lru_cache(maxsize=256)
def _warn(name: str, key: str) -> None:
    logger.warning(
        "The property %s of table %s is ignored: metadata must not say how files are opened. Set "
        "it in the configuration of the catalog.",
        key,
        name,
    )
