"""MERGE: rows of a source update, delete and add rows of a table, in one commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.dml.merge_by_join import by_join
from rowlake.dml.merge_by_key import by_key
from rowlake.dml.merge_clauses import prepared
from rowlake.dml.merge_schema import evolved
from rowlake.dml.merge_source import merge_source
from rowlake.dml.target import row_target
from rowlake.dml.values import is_sparks
from rowlake.errors import SchemaMismatchError
from rowlake.maintain.autopilot.auto import tidied
from rowlake.rowlevel.change import change_rows, find_again
from rowlake.rowlevel.explain import explain_change
from rowlake.rowlevel.staging import staging

if TYPE_CHECKING:
    from rowlake.dml.merge_by_key import PreparedMerge
    from rowlake.dml.merge_clauses import Merging
    from rowlake.dml.operations import Merge
    from rowlake.model.handle import TableHandle
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.query.lookup import TableLookup
    from rowlake.rowlevel.runner import Run, T


def merge_rows(
    lookup: TableLookup, statement: Merge, arguments: Any, **options: Any
) -> tuple[TableHandle, Result]:
    """Run a MERGE into a table of the lake or a branch of one."""
    landed, result = _merged(lookup, statement, arguments, options, change_rows)
    return tidied(landed, lookup.engine, result), result


def explain_merge(lookup: TableLookup, statement: Merge, arguments: Any, **options: Any) -> Plan:
    """Return what a MERGE would do; columns that it adds to the table are committed before."""
    return _merged(lookup, statement, arguments, options, explain_change)


def _merged(
    lookup: TableLookup, statement: Merge, arguments: Any, options: dict[str, Any], run: Run[T]
) -> T:
    target = row_target(lookup, statement, "merge into", options)
    source = merge_source(target, statement, arguments)
    if statement.schema_evolution:
        target = evolved(target, statement, source)
    merging = prepared(target, statement, source, arguments)
    planned = by_key(merging)
    if planned is not None:
        try:
            return _run(merging, planned, run)
        except Exception as error:
            if not _may_be_unneeded(error):
                raise
    return _joined(merging, run)


def _joined(merging: Merging, run: Run[T]) -> T:
    """Do a MERGE by a join of Spark, run again where a compaction moved the rows that it found."""
    target, source = merging.target, merging.source

    def find(handle: TableHandle) -> T:
        found = merging.at(handle)
        return _run(found, by_join(found), run)

    with target.engine.repeatable(None if source.is_repeatable else source.frame):
        return find_again(target.handle, find, target.options, reads_target=merging.reads_target)


def _may_be_unneeded(error: Exception) -> bool:
    """Return whether an error may come from a value that no row needs.

    By key, values are evaluated for every source row, also for those that no clause uses; the
    join evaluates them only where they are used, and raises where the error is real.
    """
    return is_sparks(error) or isinstance(error, SchemaMismatchError)


def _run(merging: Merging, planned: PreparedMerge, run: Run[T]) -> T:
    target = merging.target
    with staging(target.engine, target.view) as place:
        staged = place.stage(planned.rows, planned.shape, progress=target.options.progress)
        change = replace(planned.change, staged=staged, reads_target=merging.reads_target)
        return run(target.handle, target.engine, change, target.options)
