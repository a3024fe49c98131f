"""CALL health and optimize: rowlake's own procedures, one row per finding or step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.sql.procedures.procedure import procedure, table_of

if TYPE_CHECKING:
    from rowlake.lake import Lake

FINDINGS = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("shown", pa.string()),
        pa.field("verdict", pa.string()),
        pa.field("why", pa.string()),
        pa.field("sql", pa.string()),
        pa.field("command", pa.string()),
    ]
)
STEPS = pa.schema(
    [
        pa.field("verb", pa.string()),
        pa.field("state", pa.string()),
        pa.field("why", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("sql", pa.string()),
        pa.field("command", pa.string()),
        pa.field("saves_in_bytes", pa.int64()),
        pa.field("costs_in_bytes", pa.int64()),
        pa.field("seconds", pa.float64()),
    ]
)


def health(lake: Lake, table: str, orphans: bool) -> pa.Table:
    """Return how a table is."""
    found = table_of(lake, table).health(orphans=orphans).to_dict()
    return pa.Table.from_pylist(found["findings"], FINDINGS)


def optimize(
    lake: Lake,
    table: str,
    dry_run: bool,
    max_bytes: int | None,
    max_seconds: int | None,
    where: str | None,
) -> pa.Table:
    """Run the maintenance that pays."""
    report = table_of(lake, table).optimize(dry_run, max_bytes, max_seconds, where)
    return pa.Table.from_pylist(report.to_dict()["steps"], STEPS)


PROCEDURES = {
    "health": procedure(health, "table", orphans=False),
    "optimize": procedure(
        optimize, "table", dry_run=False, max_bytes=None, max_seconds=None, where=None
    ),
}
