"""MERGE: rows of a source update, delete and add rows of a table, in one commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.dml.merge_by_join import by_join
from rowlake.dml.merge_by_key import by_key
from rowlake.dml.merge_clauses import prepared
from rowlake.dml.merge_schema import evolved, may_evolve
from rowlake.dml.merge_scopes import validate_scopes
from rowlake.dml.merge_source import FrameSource, merge_source
from rowlake.dml.target import row_target
from rowlake.dml.values import is_sparks
from rowlake.errors import SchemaMismatchError
from rowlake.rowlevel.staging import staging

if TYPE_CHECKING:
    from rowlake.dml.merge_by_key import PreparedMerge
    from rowlake.dml.merge_clauses import Merging
    from rowlake.dml.operations import Merge
    from rowlake.query.lookup import TableLookup
    from rowlake.rowlevel.runner import Run, T


def merge_rows(
    lookup: TableLookup, statement: Merge, arguments: Any, options: dict[str, Any], run: Run[T]
) -> T:
    """Run a MERGE into a table of the lake or a branch of one; `run` commits or explains it."""
    target = row_target(lookup, statement, "merge into", options)
    source = merge_source(target, statement, arguments)
    if statement.schema_evolution and not may_evolve(target):
        statement = replace(statement, schema_evolution=False)
    if statement.schema_evolution:
        target = evolved(target, statement, source)
    merging = prepared(target, statement, source, arguments)
    validate_scopes(merging)
    planned = by_key(merging)
    if planned is not None:
        try:
            return _run(merging, planned, run)
        except Exception as error:
            if not _may_be_unneeded(error):
                raise
    if isinstance(source, FrameSource):
        # A source that is random gives the same rows in every run of the statement.
        lookup.closing.enter_context(lookup.engine.repeatable(source.frame))
    return _run(merging, by_join(merging), run)


def _may_be_unneeded(error: Exception) -> bool:
    """Return whether an error may come from a value that no row needs.

    By key, values are evaluated for every source row, also for those that no clause uses; the
    join evaluates them only where they are used, and raises where the error is real.
    """
    return is_sparks(error) or isinstance(error, SchemaMismatchError)


def _run(merging: Merging, planned: PreparedMerge, run: Run[T]) -> T:
    target, reads = merging.target, merging.reads_target
    with staging(target.engine, target.view) as place:
        staged = place.stage(planned.rows, planned.shape, progress=target.options.progress)
        change = replace(planned.change, staged=staged, reads_target=reads, reads_everywhere=reads)
        return run(target.handle, target.engine, change, target.options)
