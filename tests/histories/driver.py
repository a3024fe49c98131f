"""Operations run by the driver's engine, without Spark: what Spark would evaluate is given.

An UPDATE and a MERGE become the `RowChange` that the SQL room makes of them; conditions on the
source are evaluated in Python and staged as flags.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from rowlake.engine.local import as_table
from rowlake.engine.spark import Engine
from rowlake.model.merge import Action, When
from rowlake.model.predicate import TRUE
from rowlake.plan import tasks as plan_tasks
from rowlake.prune.bind import bind
from rowlake.rowlevel import staged as stage
from rowlake.rowlevel import tasks as change_tasks
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.verbs.write import WriteOptions, view_for_write
from tests.histories.operations import (
    Append,
    Clause,
    Delete,
    Merge,
    Operation,
    Options,
    Overwrite,
    Update,
    Upsert,
    named,
)
from tests.histories.values import Column, as_arrow, holds, sql_condition
from tests.lakes import make_lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.lake import Lake
    from rowlake.model.result import Result
    from rowlake.model.view import TableView

_WIDE = {"int": pa.int64(), "long": pa.int64(), "float": pa.float64(), "double": pa.float64()}


class DriverEngine(Engine):
    """Runs tasks one after the other in this process; there is no Spark."""

    slots = 3  # type: ignore[assignment]
    parallelism = 3  # type: ignore[assignment]
    has_session = True  # type: ignore[assignment]
    is_one_machine = True  # type: ignore[assignment]

    @property
    def spark(self) -> Any:
        raise AssertionError("the driver's engine was asked for a Spark session")

    def setting(self, key: str) -> str | None:
        return None

    def close(self) -> None:
        pass

    def run(self, kernel: Any, tasks: Any, output: pa.Schema, **_: Any) -> pa.Table:
        done = [_attempted(kernel, task) for task in tasks]
        for found in done:  # a task that fails does not stop the others: so it is in a cluster
            if isinstance(found, Exception):
                raise found
        return as_table([table for found in done for table in found], output)


def _attempted(kernel: Any, task: Any) -> list[pa.Table] | Exception:
    try:
        return [pa.Table.from_batches([batch]) for batch in kernel(task) if batch.num_rows]
    except Exception as error:  # noqa: BLE001
        return error


@contextmanager
def tight_limits(*, tight: bool) -> Iterator[None]:
    """Make few rows be spread over several tasks and staged in several pieces and files."""
    if not tight:
        yield
        return
    with (
        mock.patch.object(change_tasks, "SPLIT_BYTES", 1),
        mock.patch.object(change_tasks, "task_count", _many_tasks),
        mock.patch.object(plan_tasks, "LEAST_TASK_BYTES", 1),
        mock.patch.object(stage, "_CHUNK_BYTES", 1),
        mock.patch.object(stage, "_INLINE_BYTES", 64),
    ):
        yield


def _many_tasks(weight: float, split_bytes: int, slots: int) -> int:
    return slots


def run(table: Any, operation: Operation) -> Result:
    """Run an operation and return its result; the table's errors pass through."""
    return _RUNNERS[type(operation)](table, operation)


def run_append(table: Any, operation: Append) -> Result:
    rows = as_arrow(operation.rows, operation.columns)
    return table.append(rows, branch=operation.options.branch)


def run_overwrite(table: Any, operation: Overwrite) -> Result:
    rows = as_arrow(operation.rows, operation.columns)
    given = {"where": operation.condition, "dynamic": bool(operation.by)}
    return table.overwrite(rows, branch=operation.options.branch, **given)


def run_delete(table: Any, operation: Delete) -> Result:
    where = sql_condition(operation.condition) if operation.as_text else operation.condition
    return table.delete(where, **options_of(operation.options))


def run_upsert(table: Any, operation: Upsert) -> Result:
    latest = operation.latest
    return table.upsert(
        in_batches(as_arrow(operation.rows, operation.given)),
        [column.name for column in operation.keys],
        on_duplicates="error" if latest is None else f"latest by `{latest.name}`",
        if_exists="reject" if operation.rejects else "update",
        **options_of(operation.options),
    )


def options_of(options: Options) -> dict[str, Any]:
    given = {"mode": options.mode, "deletes": options.deletes}
    return {"branch": options.branch, **{key: each for key, each in given.items() if each}}


def in_batches(rows: pa.Table, size: int = 2) -> pa.Table:
    """Return a table of many chunks."""
    return pa.Table.from_batches(rows.combine_chunks().to_batches(size), rows.schema)


# --- what the SQL room would make of UPDATE and MERGE


def _run_update(table: Any, operation: Update) -> Result:
    values = {
        column.name: pa.array([operation.values[column.key]], column.arrow)
        for column in operation.columns
        if column.key in operation.values
    }
    condition = TRUE if operation.condition is None else operation.condition
    view = view_for_write(table.handle, operation.options.branch)
    clause = TaskClause(When.MATCHED, Action.UPDATE, values=values)
    change = RowChange("update", (clause,), predicate=bind(condition, view.schema))
    return _change(table, change, operation.options)


def _change(table: Any, change: RowChange, options: Options) -> Result:
    chosen = WriteOptions(branch=options.branch, mode=options.mode, deletes=options.deletes)
    return change_rows(table.handle, table._engine, change, chosen)[1]


def _run_merge(table: Any, operation: Merge) -> Result:
    view = view_for_write(table.handle, operation.options.branch)
    keys = [(target.name, source.name) for target, source, _ in operation.keys]
    safe = tuple(null_safe for _, _, null_safe in operation.keys)
    flags = _Flags(operation)
    eligible = flags.add(operation.on_source)
    clauses = tuple(_task_clause(operation, clause, view, flags) for clause in operation.clauses)
    change = RowChange(
        "merge",
        clauses,
        Matching(tuple(keys), safe, eligible=eligible),
        bind(TRUE if operation.on_target is None else operation.on_target, view.schema),
        checks_cardinality=operation.checks_cardinality,
    )
    rows = flags.table
    shape = Shape(list(rows.schema), tuple(name for _, name in keys), _dealing(operation, view))
    with staging(table._engine, view) as place:
        staged = place.stage(in_batches(rows).to_batches(), shape)
        return _change(table, replace(change, staged=staged), operation.options)


class _Flags:
    """The staged columns: keys in the types they are compared in, values, and conditions."""

    def __init__(self, operation: Merge) -> None:
        self._operation = operation
        wide = {source.name: _WIDE.get(source.kind) for _, source, _ in operation.keys}
        self._columns = {
            column.name: pa.array(
                [column.of(row) for row in operation.rows], wide.get(column.name) or column.arrow
            )
            for column in operation.source
        }

    def add(self, condition: Any) -> str | None:
        if condition is None:
            return None
        name = f"f{len(self._columns)}"
        held = [
            holds(condition, named(row, self._operation.source)) for row in self._operation.rows
        ]
        self._columns[name] = pa.array(held, pa.bool_())
        return name

    @property
    def table(self) -> pa.Table:
        return pa.table(self._columns)


def _task_clause(operation: Merge, clause: Clause, view: TableView, flags: _Flags) -> TaskClause:
    target = None if clause.on_target is None else bind(clause.on_target, view.schema)
    values = _task_values(clause, operation.columns)
    return TaskClause(clause.when, clause.action, flags.add(clause.on_source), target, values)


def _task_values(clause: Clause, columns: Sequence[Column]) -> dict[str, str | pa.Array]:
    found: dict[str, str | pa.Array] = {}
    for column in columns:
        value = clause.values.get(column.key)
        if value is None and clause.action is Action.INSERT:
            value = (column.default,)
        if isinstance(value, tuple):
            found[column.name] = pa.array([value[0]], column.arrow)
        elif value is not None:
            found[column.name] = value.name
    return found


def _dealing(operation: Merge, view: TableView) -> Dealing:
    """Deal out by partition where keys that are not null-safe say the partition."""
    staged = {target.name: source.name for target, source, safe in operation.keys if not safe}
    fields = [found for found in view.spec.fields if found.transform != "void"]
    paths = [view.schema.paths.get(found.source_id, ("",)) for found in fields]
    if not fields or not all(path[0] in staged for path in paths):
        return Dealing()
    pairs = tuple(dict.fromkeys((path[0], staged[path[0]]) for path in paths))
    return Dealing(view.spec, view.schema, pairs)


_RUNNERS: dict[type, Any] = {
    Append: run_append,
    Overwrite: run_overwrite,
    Delete: run_delete,
    Upsert: run_upsert,
    Update: _run_update,
    Merge: _run_merge,
}


@contextmanager
def driver_lake(folder: str, catalog: str | None = None) -> Iterator[Lake]:
    """Give a lake with the namespace `db`, whose work is all done in this process."""
    with make_lake(Path(folder), catalog=catalog, engine=DriverEngine()) as lake:
        lake.create_namespace("db", if_not_exists=True)
        yield lake
