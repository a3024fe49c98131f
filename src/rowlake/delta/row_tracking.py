"""Row tracking: the ids of rows and the mark below which they are taken (PROTOCOL.md).

Files get consecutive ids from the mark on; the mark is the domain `delta.rowTracking`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rowlake.delta.commit_file import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.protocol import Protocol

DOMAIN = "delta.rowTracking"
FEATURE = "rowTracking"
NO_MARK = -1


def is_tracked(protocol: Protocol) -> bool:
    """Return whether every add needs row ids: where the feature is listed, enabled or not."""
    return FEATURE in protocol.writer_features


def high_water_mark(domains: Mapping[str, str]) -> int:
    """Return the highest row id that is taken; -1 where none is."""
    try:
        return int(json.loads(domains.get(DOMAIN, "{}")).get("rowIdHighWaterMark", NO_MARK))
    except (ValueError, TypeError, AttributeError):
        return NO_MARK


def mark_action(mark: int) -> dict[str, Any]:
    """Return the domainMetadata action of a mark."""
    text = json_text({"rowIdHighWaterMark": mark, "domainName": DOMAIN})
    return {"domainMetadata": {"domain": DOMAIN, "configuration": text, "removed": False}}
