"""Row tracking: the ids of rows and the mark below which they are taken (PROTOCOL.md).

Files get consecutive ids from the mark on; the mark is the domain `delta.rowTracking`. Where the
property `delta.enableRowTracking` is true, rows that are written again keep their ids and the
versions of their last change: files hold them in two columns, which no schema names.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from rowlake.delta.actions import domain_action
from rowlake.delta.commit_file import json_text
from rowlake.model.task import LAST_UPDATED_COLUMN_ID, ROW_ID_COLUMN_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.metadata import Metadata
    from rowlake.delta.protocol import Protocol

DOMAIN = "delta.rowTracking"
FEATURE = "rowTracking"
ENABLE = "delta.enableRowTracking"
SUSPENDED = "delta.rowTrackingSuspended"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
NO_MARK = -1


def is_tracked(protocol: Protocol, metadata: Metadata) -> bool:
    """Return whether every add needs row ids: where the feature is listed, enabled or not."""
    return FEATURE in protocol.writer_features and not metadata.is_set(SUSPENDED)


def with_row_tracking(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return properties with names of the columns that hold row ids, where a table tracks rows."""
    found = dict(configuration)
    if str(found.get(ENABLE, "false")).lower() == "true":
        found.setdefault(ROW_ID_COLUMN, f"_row-id-col-{uuid.uuid4()}")
        found.setdefault(ROW_VERSION_COLUMN, f"_row-commit-version-col-{uuid.uuid4()}")
    return found


def row_id_columns(metadata: Metadata) -> dict[int, str]:
    """Return the columns of files that hold row ids and versions, by the ids that scans know.

    None where row tracking is off: then what files hold in them is out of date.
    """
    known = metadata.configuration
    if not metadata.is_set(ENABLE) or not {ROW_ID_COLUMN, ROW_VERSION_COLUMN} <= known.keys():
        return {}
    return {
        ROW_ID_COLUMN_ID: known[ROW_ID_COLUMN],
        LAST_UPDATED_COLUMN_ID: known[ROW_VERSION_COLUMN],
    }


def high_water_mark(domains: Mapping[str, str]) -> int:
    """Return the highest row id that is taken; -1 where none is."""
    try:
        return int(json.loads(domains.get(DOMAIN, "{}")).get("rowIdHighWaterMark", NO_MARK))
    except (ValueError, TypeError, AttributeError):
        return NO_MARK


def mark_action(mark: int) -> dict[str, Any]:
    """Return the domainMetadata action of a mark."""
    text = json_text({"rowIdHighWaterMark": mark, "domainName": DOMAIN})
    return domain_action(DOMAIN, text)
