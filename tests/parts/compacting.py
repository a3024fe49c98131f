"""A compaction by hand: all rows of a branch in new files, committed as `replace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.commit.data import Commit
from rowlake.model.change import Change, Operation, Requirements
from rowlake.plan.files import plan_files
from rowlake.storage.files import Storage
from rowlake.verbs.write import WriteOptions, write_rows

if TYPE_CHECKING:
    from rowlake.commit.data import Committed
    from rowlake.model.predicate import Predicate
    from rowlake.table import Table


def compact(table: Table, where: Predicate | None = None, branch: str = "main") -> Committed:
    """Replace the data files that may hold rows of `where` by one per partition.

    The files that were written for nothing are removed where others changed rows meanwhile.
    """
    handle = table.handle
    view, storage = handle.view(ref=branch), Storage({})
    plan = plan_files(view, where, storage)
    files = frozenset(
        location for found in plan.data.values() for location in found["location"].to_pylist()
    )
    rows = table.arrow([*view.schema.arrow.names, "_file"], snapshot_id=view.snapshot_id)
    chosen = [location in files for location in rows["_file"].to_pylist()]
    new = write_rows(view, table._engine, rows.filter(chosen).drop(["_file"]), WriteOptions()).files
    change = Change(
        Operation.REPLACE,
        added_data=new,
        removed_data=files,
        data_sequence_number=view.snapshot.sequence_number if view.snapshot else None,
        requirements=Requirements(
            starting_snapshot_id=view.snapshot_id, no_new_deletes_for=files, files_exist=files
        ),
        branch=branch,
    )
    committed = Commit(change, storage, operation="compaction").run(handle)
    if not hasattr(committed.outcome, "handle"):
        storage.delete(new["location"].to_pylist())
    return committed
