"""Row-level verbs for fault tests: DELETE, UPDATE, MERGE and upsert, none of which needs Spark.

UPDATE and MERGE are given as the change that their statement becomes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.model.merge import Action, When
from rowlake.model.predicate import Leaf, Op
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.verbs.write import WriteOptions
from tests.lakes import SALES, sales

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.table import Table

MARK, REWRITE = "merge-on-read", "copy-on-write"
MODES = (MARK, REWRITE)
FEW = Leaf(("id",), Op.LT, (3,))
# Two rows of the table, and two new ones.
CHANGED = pa.concat_tables([sales(2, 3), sales(2, 50)])
CHANGED = CHANGED.set_column(4, SALES.field("note"), pa.array(["new"] * 4))


def delete(table: Table, mode: str) -> Any:
    return table.delete("id < 3", mode=mode)


def update(table: Table, mode: str) -> Any:
    clause = TaskClause(When.MATCHED, Action.UPDATE, values={"note": pa.array(["set"])})
    predicate = bind(FEW, table.handle.view().schema)
    return _change(table, RowChange("update", (clause,), predicate=predicate), mode)


def merge(table: Table, mode: str) -> Any:
    """Update rows that are there, insert those that are not, and delete one that matches."""
    gone = bind(Leaf(("id",), Op.EQ, (3,)), table.handle.view().schema)
    clauses = (
        TaskClause(When.MATCHED, Action.DELETE, predicate=gone),
        TaskClause(When.MATCHED, Action.UPDATE, values={"note": "note"}),
        TaskClause(When.NOT_MATCHED, Action.INSERT, values={name: name for name in SALES.names}),
    )
    with staging(table._engine, table.handle.view()) as place:
        staged = place.stage(CHANGED.to_batches(), Shape(list(SALES), ("id",)))
        change = RowChange("merge", clauses, Matching((("id", "id"),), (False,)), staged=staged)
        return _change(table, change, mode)


def upsert(table: Table, mode: str) -> Any:
    return table.upsert(CHANGED, ["id"], mode=mode)


def _change(table: Table, change: RowChange, mode: str) -> Any:
    return change_rows(table.handle, table._engine, change, WriteOptions(mode=mode))[1]


VERBS: dict[str, Callable[[Table, str], Any]] = {
    "delete": delete,
    "update": update,
    "merge": merge,
    "upsert": upsert,
}
