"""Batches of events that are too large for the driver: Spark collapses and merges them.

Comes in: a Spark frame of events. Goes out: one commit, as for small batches, but for ties: which
of two events with equal keys and sequences arrived last is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.dml.change import change_rows
from rowlake.dml.operations import Action, Assignment, Clause, Merge, When
from rowlake.errors import UnsupportedFeatureError
from rowlake.query.lookup import TableLookup
from rowlake.rowlevel.equality_writes import upsert_keys
from rowlake.rowlevel.strategy import Deletes, deletes_of
from rowlake.sqltext.lexer import quote
from rowlake.stream.apply_rows import DELETED, column_named, columns_used, with_deleted
from rowlake.verbs.write import view_for_write
from rowlake.workspace import Workspace

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result
    from rowlake.stream.apply import ApplyChanges
    from rowlake.verbs.write import WriteOptions

_RANK = "__rowlake_rank"


def apply_large(
    handle: TableHandle, engine: Engine, frame: Any, wanted: ApplyChanges, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Apply a Spark frame of events in one commit."""
    view = view_for_write(handle, options.branch)
    if wanted.scd_type == 2:
        raise UnsupportedFeatureError(
            "A batch for scd_type=2 is put together in the driver, and this one is too large. "
            "Apply it in parts, or bound the batches of the stream (maxFilesPerTrigger, "
            "maxOffsetsPerTrigger)."
        )
    if (
        deletes_of(options.deletes, view, options.mode) is Deletes.EQUALITY
        and wanted.apply_as_deletes
    ):
        raise UnsupportedFeatureError(
            "deletes='equality' with apply_as_deletes is put together in the driver, and this "
            "batch is too large. Apply it in parts, or bound the batches of the stream."
        )
    keys = upsert_keys(view, wanted.keys, "error").names
    statement = _statement(handle, _collapsed(frame, keys, wanted), keys, wanted, view)
    lookup = TableLookup(Workspace(handle.catalog, engine), [handle])
    given = {name: getattr(options, name) for name in options.__dataclass_fields__}
    given = {name: value for name, value in given.items() if name != "stage_only"}
    return change_rows(lookup, statement, **given)


def _collapsed(frame: Any, keys: list[str], wanted: ApplyChanges) -> Any:
    """Return one event per key: the last by sequence, a row before a delete, else any of them."""
    marked = with_deleted(frame, wanted.apply_as_deletes)
    columns = [column_named(frame.columns, name) for name in keys]
    order = DELETED
    if wanted.sequence_by is not None:
        columns.append(column_named(frame.columns, wanted.sequence_by))
        order = f"{quote(columns[-1])} DESC, {DELETED}"
    for name in columns:
        marked = marked.where(_is_held(name))
    by = ", ".join(quote(name) for name in columns[: len(keys)])
    ranked = marked.selectExpr(
        "*", f"row_number() OVER (PARTITION BY {by} ORDER BY {order}) AS {_RANK}"
    )
    return ranked.where(f"{_RANK} = 1").drop(_RANK)


def _is_held(name: str) -> str:
    """Return a condition that fails the job where a column of an event is null."""
    told = f"{name} is null in an event, so nobody can tell which row it changes, or when."
    return f"CASE WHEN {quote(name)} IS NULL THEN raise_error('{_escaped(told)}') ELSE true END"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _statement(
    handle: TableHandle, events: Any, keys: list[str], wanted: ApplyChanges, view: Any
) -> Merge:
    names = [name for name in events.columns if name != DELETED]
    used = columns_used(wanted.apply_as_deletes, wanted.sequence_by, names)
    given = [name for name in names if name not in used or view.schema.find((name,))]
    late = wanted.sequence_by is not None and view.schema.find((wanted.sequence_by,)) is not None
    column = quote(wanted.sequence_by or "")
    in_time = f" AND (t.{column} IS NULL OR t.{column} <= s.{column})" if late else ""
    values = tuple(Assignment((name,), f"s.{quote(name)}") for name in given)
    changed = tuple(one for one in values if one.column[0].lower() not in {k.lower() for k in keys})
    gone = f"s.{DELETED}"
    clauses = (
        Clause(When.MATCHED, Action.DELETE, f"{gone}{in_time}"),
        Clause(When.MATCHED, Action.UPDATE, f"NOT {gone}{in_time}", changed),
        Clause(When.NOT_MATCHED, Action.INSERT, f"NOT {gone}", values),
    )
    on = " AND ".join(f"t.{quote(name)} = s.{quote(name)}" for name in keys)
    return Merge(
        tuple(handle.identifier),
        events,
        on,
        clauses,
        alias="t",
        source_alias="s",
        schema_evolution=wanted.schema_evolution,
    )
