"""DELETE: the rows of a condition go, in one commit.

What can be said as a predicate is matched by the tasks that change the files; of anything else
Spark finds the rows, and their positions are staged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.model.merge import Action, When
from rowlake.model.task import FILE_COLUMN, POS_COLUMN
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from rowlake.rowlevel.runner import Run, T
    from rowlake.verbs.write import WriteOptions

DELETE = TaskClause(When.MATCHED, Action.DELETE)
POSITIONS = Shape(
    (pa.field(FILE_COLUMN, pa.string()), pa.field(POS_COLUMN, pa.int64())),
    dealing=Dealing(file_column=FILE_COLUMN),
)


@dataclass(frozen=True)
class Selection:
    """Which rows to delete: those of `predicate`, or some of those: a frame of (`_file`, `_pos`).

    `snapshot_id` is what the frame reads.
    """

    predicate: Predicate
    found: Any = None
    snapshot_id: int | None = None


def delete(
    handle: TableHandle,
    engine: Engine,
    select: Callable[[TableHandle], Selection],
    options: WriteOptions,
) -> tuple[TableHandle, Result]:
    """Delete the rows that `select` chooses of a table; asked again after a conflict.

    `Selection.predicate` also tells which concurrent changes conflict.
    """

    def find(found: TableHandle) -> tuple[TableHandle, Result]:
        return run_delete(found, engine, select(found), options, change_rows)

    return rerun_on_conflict(handle, find)


def run_delete(
    handle: TableHandle,
    engine: Engine,
    selection: Selection,
    options: WriteOptions,
    run: Run[T],
) -> T:
    """Stage what Spark found, and let the deletion be run (or explained)."""
    if selection.found is None:
        change = RowChange("delete", (DELETE,), predicate=selection.predicate)
        return run(handle, engine, change, options)
    view = view_for_write(handle, options.branch)
    with staging(engine, view) as place:
        staged = place.stage(selection.found, POSITIONS, progress=options.progress)
        change = RowChange(
            "delete",
            (DELETE,),
            Matching(location=FILE_COLUMN, position=POS_COLUMN),
            selection.predicate,
            staged,
            snapshot_id=selection.snapshot_id,
        )
        return run(handle, engine, change, options)
