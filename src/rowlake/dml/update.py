"""UPDATE: the rows of a condition get new values, in one commit.

New values that are the same for all rows are evaluated once, and rows of a plain predicate are
matched by the tasks that change the files: no row passes through Spark. For anything else Spark
finds the rows and evaluates the values; what is not set never passes through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.dml.assigned_columns import assigned_columns, stored_text
from rowlake.dml.generated_columns import made_by, texts_of, unset_bases
from rowlake.dml.join_sides import Side, Sides, refuse_random
from rowlake.dml.target import row_target
from rowlake.dml.values import constants_of, is_sparks, spark_types
from rowlake.model.merge import Action, When
from rowlake.model.predicate import FALSE, TRUE
from rowlake.model.task import FILE_COLUMN, POS_COLUMN
from rowlake.prune.bind import bind
from rowlake.query.lookup import names_without_spark
from rowlake.query.row_condition import RowCondition, pushed_rows
from rowlake.query.run import run_query
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.sqltext.lexer import quote, quote_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.assigned_columns import Assigned
    from rowlake.dml.operations import Update
    from rowlake.dml.target import RowTarget
    from rowlake.model.predicate import Predicate
    from rowlake.query.lookup import TableLookup
    from rowlake.rowlevel.runner import Run, T

_FILE, _POS = FILE_COLUMN, POS_COLUMN


def update_rows(
    lookup: TableLookup, statement: Update, arguments: Any, options: dict[str, Any], run: Run[T]
) -> T:
    """Run an UPDATE on a table of the lake or a branch of one; `run` commits or explains it."""
    target = row_target(lookup, statement, "update", options)
    found = assigned_columns(statement.assignments, target)
    names = names_without_spark(target.engine)
    sides = Sides(Side(target.visible, tuple(target.view.schema.arrow.names)), names=names)
    predicate, exact = _predicate(statement, target)
    made = made_by(found, target)
    refuse_random(statement.where, "the condition of UPDATE")
    try:
        by_tasks = exact and not arguments and not made
        values = constants_of(target, found, sides) if by_tasks else None
    except Exception as error:
        if is_sparks(error) and not _selects_any(target, statement):
            nothing = RowChange("update", (), predicate=FALSE)
            return run(target.handle, target.engine, nothing, target.options)
        raise
    if values is not None:
        clause = TaskClause(When.MATCHED, Action.UPDATE, values=values)
        change = RowChange("update", (clause,), predicate=predicate, makes_columns=True)
        return run(target.handle, target.engine, change, target.options)
    updated = _Updated(found, made)
    return _with_spark(target, statement, updated, predicate, arguments, run)


def _selects_any(target: RowTarget, statement: Update) -> bool:
    """Return whether there is a row to update: a value that no row gets cannot be wrong."""
    text = f"SELECT 1 FROM {quote_parts(statement.name)} AS {quote(target.visible)}"
    condition = target.short(statement.where or "TRUE")
    rows = run_query(target.lookup, f"{text} WHERE {condition} LIMIT 1")
    return bool(rows.collect())


def _predicate(statement: Update, target: RowTarget) -> tuple[Predicate, bool]:
    if statement.where is None:
        return TRUE, True
    condition = RowCondition(statement.where, target.view.schema, target.visible, target.written)
    pushed = pushed_rows(target.engine, condition)
    return bind(pushed.predicate, target.view.schema), pushed.exact


@dataclass(frozen=True)
class _Updated:
    """What is set, and the generated columns that this makes (with what each is made from)."""

    assigned: list[Assigned]
    made: dict[str, list[str]]

    @property
    def columns(self) -> list[str]:
        """All columns that get values."""
        return list(dict.fromkeys([*(one.column.name for one in self.assigned), *self.made]))


def _with_spark(
    target: RowTarget,
    statement: Update,
    updated: _Updated,
    predicate: Predicate,
    arguments: Any,
    run: Run[T],
) -> T:
    view, found = target.view, updated.assigned
    found = [*found, *unset_bases(updated.made, found, target)]
    condition = target.short(statement.where or "TRUE")
    rest = f" FROM {quote_parts(statement.name)} AS {quote(target.visible)} WHERE {condition}"

    def select(listed: Sequence[str]) -> Any:
        text = target.short(", ".join(listed))
        query = f"{statement.with_clause}SELECT {text}{rest}"
        return run_query(target.lookup, query, arguments)

    types = spark_types([text for each in found for text in each.texts], select)
    staged = {name: f"v{at}" for at, name in enumerate(updated.columns)}
    held = {each.column.name: f"v{at}" for at, each in enumerate(found)}
    listed = [quote(_FILE), quote(_POS)] + [
        f"{stored_text(each, types, target)} AS {quote(held[each.column.name])}" for each in found
    ]
    frame = _with_made(select(listed), target, updated, held, staged)
    shape = Shape(
        (
            pa.field(_FILE, pa.string()),
            pa.field(_POS, pa.int64()),
            *(view.schema.arrow.field(name).with_name(place) for name, place in staged.items()),
        ),
        dealing=Dealing(file_column=_FILE),
    )
    with staging(target.engine, view) as place:
        change = RowChange(
            "update",
            (TaskClause(When.MATCHED, Action.UPDATE, values=staged),),
            Matching(location=_FILE, position=_POS),
            predicate,
            place.stage(frame, shape, progress=target.options.progress),
            snapshot_id=view.snapshot_id,
            makes_columns=True,
        )
        return run(target.handle, target.engine, change, target.options)


def _with_made(
    frame: Any, target: RowTarget, updated: _Updated, held: dict[str, str], staged: dict[str, str]
) -> Any:
    """Return the new values under the names that they are staged by, with the generated ones."""
    if not updated.made:
        return frame
    own = [quote(_FILE), quote(_POS)]
    named = [f"{quote(place)} AS {quote(name)}" for name, place in held.items()]
    texts = texts_of(target, held)
    made = {name: text for name, text in texts.items() if name in updated.made}
    listed = [f"{made.get(name, quote(name))} AS {quote(place)}" for name, place in staged.items()]
    return frame.selectExpr(*own, *named).selectExpr(*own, *listed)
