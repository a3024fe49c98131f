"""The clustering columns of a table (PROTOCOL.md, "Clustered Table"; domain `delta.clustering`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN = "delta.clustering"


def clustering_columns(domains: Mapping[str, str]) -> list[str]:
    """Return the columns by their physical names, dotted; none where a table has none."""
    try:
        found = json.loads(domains.get(DOMAIN, "{}")).get("clusteringColumns") or []
        return [one if isinstance(one, str) else ".".join(map(str, one)) for one in found]
    except (ValueError, TypeError, AttributeError):
        return []
