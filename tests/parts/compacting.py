"""A compaction of everything, as a writer meets it: `rewrite_data_files` of all files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowlake.maintain.compact.rewrite import RewriteReport
    from rowlake.model.predicate import Predicate
    from rowlake.table import Table

ALL = {"rewrite-all": "true"}


def compact(table: Table, where: Predicate | None = None, branch: str = "main") -> RewriteReport:
    """Rewrite the data files that may hold rows of `where`, and check that this landed."""
    report = table.rewrite_data_files(where=where, options=ALL, branch=branch)
    assert report.snapshot_ids, f"the compaction of {table.name} did not land: {report}"
    assert not report.given_up_files_count, report
    return report
