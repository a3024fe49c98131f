"""UPDATE and MERGE whose values are computed from the rows they change, without Spark.

Rows are read at the head, new values computed in Python, and the rows changed by position: what
rowlake makes of `SET v = t.v + s.v` with Spark. After a conflict all of that is done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.model.merge import Action, When
from rowlake.model.predicate import Leaf, Op
from rowlake.model.task import FILE_COLUMN, POS_COLUMN
from rowlake.plan.tasks import scan_tasks
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.scan.kernel import output_schema, scan_kernel
from rowlake.verbs.read import Request, planned
from rowlake.verbs.write import WriteOptions, view_for_write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from rowlake.model.view import TableView
    from rowlake.table import Table

UPDATE = TaskClause(When.MATCHED, Action.UPDATE, values={"v": "v"})
DEFAULTS = WriteOptions()


def change_values(
    table: Table,
    verb: str,
    keys: Sequence[int],
    value: Callable[[int, int], int],
    options: WriteOptions = DEFAULTS,
) -> tuple[Result, int]:
    """Set `v` of the rows with these ids to `value(id, v)`; return the result and the runs."""
    runs: list[TableHandle] = []
    where = Leaf(("id",), Op.IN, tuple(keys))

    def run(found: TableHandle) -> tuple[TableHandle, Result]:
        runs.append(found)
        view, engine = view_for_write(found, options.branch), table._engine
        rows = _computed(view, _rows_at(found, engine, view, where), value)
        with staging(engine, view) as place:
            shape = Shape(tuple(rows.schema), dealing=Dealing(file_column=FILE_COLUMN))
            change = RowChange(
                verb,
                (UPDATE,),
                Matching(location=FILE_COLUMN, position=POS_COLUMN),
                bind(where, view.schema),
                staged=place.stage(rows.to_batches(), shape),
                snapshot_id=view.snapshot_id,
            )
            return change_rows(found, engine, change, options)

    return rerun_on_conflict(table.handle, run)[1], len(runs)


def _rows_at(
    found: TableHandle, engine: Any, view: TableView, where: Predicate
) -> list[dict[str, Any]]:
    names = [FILE_COLUMN, POS_COLUMN, "id", "v"]
    read = planned(found, Request(names, where, exact=True, snapshot_id=view.snapshot_id), engine)
    tasks = scan_tasks(read.plan, read.context, slots=1)
    batches = [batch for task in tasks for batch in scan_kernel(task)]
    return list(pa.Table.from_batches(batches, output_schema(read.context)).to_pylist())


def _computed(
    view: TableView, rows: list[dict[str, Any]], value: Callable[[int, int], int]
) -> pa.Table:
    fields = [
        pa.field(FILE_COLUMN, pa.string()),
        pa.field(POS_COLUMN, pa.int64()),
        pa.field("v", view.schema.arrow.field("v").type),
    ]
    places = [row[FILE_COLUMN] for row in rows], [row[POS_COLUMN] for row in rows]
    values = [value(row["id"], row["v"]) for row in rows]
    return pa.table([*places, values], schema=pa.schema(fields))


def insert_missing(table: Table, rows: pa.Table, options: WriteOptions = DEFAULTS) -> Result:
    """Run `MERGE … ON t.id = s.id WHEN NOT MATCHED THEN INSERT *`."""
    clause = TaskClause(
        When.NOT_MATCHED, Action.INSERT, values={name: name for name in rows.column_names}
    )
    return merge_by_id(table, rows, (clause,), options)


def merge_by_id(
    table: Table,
    rows: pa.Table,
    clauses: tuple[TaskClause, ...],
    options: WriteOptions = DEFAULTS,
) -> Result:
    """Run a MERGE by id whose clauses take values of the source alone."""

    def run(found: TableHandle) -> tuple[TableHandle, Result]:
        view = view_for_write(found, options.branch)
        types = [view.schema.arrow.field(name) for name in rows.column_names]
        given = rows.cast(pa.schema([pa.field(one.name, one.type) for one in types]))
        with staging(table._engine, view) as place:
            staged = place.stage(given.to_batches(), Shape(list(given.schema), ("id",)))
            change = RowChange(
                "merge",
                clauses,
                Matching((("id", "id"),), (False,)),
                staged=staged,
                checks_cardinality=any(one.when is When.MATCHED for one in clauses),
            )
            return change_rows(found, table._engine, change, options)

    return rerun_on_conflict(table.handle, run)[1]
