"""CALL rewrite_manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.sql.procedure import Procedure, procedure, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.lake import Lake


def _rewrite_manifests(
    lake: Lake,
    table: str,
    use_caching: bool | None,
    spec_id: int | None,
    sort_by: Sequence[str] | None,
) -> pa.Table:
    report = table_of(lake, table).rewrite_manifests(
        use_caching=use_caching, spec_id=spec_id, sort_by=sort_by
    )
    return pa.table(
        {
            "rewritten_manifests_count": pa.array([report.rewritten_manifests_count], pa.int32()),
            "added_manifests_count": pa.array([report.added_manifests_count], pa.int32()),
        }
    )


PROCEDURES: dict[str, Procedure] = {
    "rewrite_manifests": procedure(
        _rewrite_manifests, "table", use_caching=None, spec_id=None, sort_by=None
    ),
}
