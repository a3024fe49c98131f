"""Mirrors that follow: after every commit to a table whose property `rowlake.mirror` asks for it.

The commit has landed, so whatever goes wrong here is logged as a warning, and the mirror stays
behind until the next commit, or `Table.mirror`, brings it forward.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rowlake.catalog.formats import format_named
from rowlake.mirror.sync import mirror
from rowlake.model.mirror import MIRROR, MIRROR_OF

if TYPE_CHECKING:
    from rowlake.model.handle import TableHandle

logger = logging.getLogger("rowlake")


def follow(handle: TableHandle) -> None:
    """Bring the mirror of a table forward, where its properties say that it has one."""
    wanted = handle.properties.get(MIRROR)
    if not wanted or MIRROR_OF in handle.properties:
        return
    try:
        mirror(handle, format_named(wanted.strip()))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the commit has landed
        logger.warning(
            "the %s mirror of %s stayed behind; the commit has landed: %s",
            wanted,
            handle.name,
            error or type(error).__name__,
        )
