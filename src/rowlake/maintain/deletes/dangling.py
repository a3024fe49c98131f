"""Delete files that apply to no data file any more, removed from the table's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rowlake.commit.outcome import commit_or_raise
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.model.change import Change, Operation, Requirements
from rowlake.model.distinct import distinct
from rowlake.model.files import Content
from rowlake.plan.files import plan_files
from rowlake.scan.deletes import all_positions
from rowlake.storage.files import Storage
from rowlake.verbs.write import view_for_write

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.files import DeleteFile
    from rowlake.model.handle import TableHandle
    from rowlake.plan.files import FilePlan

_NONE = np.empty(0, np.int64)


def dangling_deletes(plan: FilePlan, storage: Storage) -> frozenset[tuple[str, int | None]]:
    """Return the keys of delete files that touch no file of a plan of the whole table.

    Metadata only bounds the paths that a position delete file is about, and new files may have
    names in between: those about several data files are read.
    """
    if plan.deletes.is_empty:
        return frozenset()
    used = distinct(np.concatenate([_NONE, *(each.used() for each in plan.applied.values())]))
    idle = np.setdiff1d(np.arange(plan.deletes.files.num_rows), used, assume_unique=True)
    found = {delete.key for delete in plan.deletes.delete_files(idle.tolist())}
    loose = [delete for delete in plan.deletes.delete_files(used.tolist()) if _is_loose(delete)]
    if loose:
        live = {at for files in plan.data.values() for at in files["location"].to_pylist()}
        found |= {one.key for one in loose if live.isdisjoint(all_positions(one, storage))}
    return frozenset(found)


def _is_loose(delete: DeleteFile) -> bool:
    is_position = delete.content is Content.POSITION_DELETES
    return is_position and not delete.is_vector and delete.referenced_data_file is None


def remove_dangling_deletes(
    handle: TableHandle, engine: Engine, branch: str = "main"
) -> tuple[TableHandle, int]:
    """Remove what dangles; return how many delete files that were.

    Data files that others add in between are newer than these deletes, which never apply to them.
    """

    def run(found: TableHandle) -> tuple[TableHandle, int]:
        view = view_for_write(found, branch)
        storage = Storage(view.io_properties)
        plan = plan_files(view, None, storage, whole_files=True, runner=engine)
        dangling = dangling_deletes(plan, storage)
        if not dangling:
            return found, 0
        change = Change(
            Operation.REPLACE,
            removed_deletes=dangling,
            requirements=Requirements(starting_snapshot_id=view.snapshot_id),
            branch=branch,
        )
        landed, _ = commit_or_raise(found, change, storage, "remove dangling deletes")
        return landed, len(dangling)

    return rerun_on_conflict(handle, run)
