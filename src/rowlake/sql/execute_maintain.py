"""VACUUM, as Delta's users type it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.sql.session import need_table

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sql.statements import Vacuum


def vacuum(lake: Lake, statement: Vacuum) -> pa.Table:
    """Expire and remove files; return the table's path, or with DRY RUN those of the files."""
    table = need_table(lake, statement.name)
    report = table.vacuum(retain_hours=statement.retain_hours, dry_run=statement.dry_run)
    paths = report.path if statement.dry_run else (table.location,)
    return pa.table({"path": pa.array(paths, pa.string())})
