"""What a row-level operation has to look at: files that may match, files that go unread.

Files that cannot hold a matching row (metadata bounds, then the source's real keys and partitions)
are not opened; files that lie wholly inside a DELETE's predicate are removed unread.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InternalError
from rowlake.model.merge import Action
from rowlake.model.predicate import TRUE, conjunction
from rowlake.plan.files import plan_files
from rowlake.plan.key_lookup import KeyLookup
from rowlake.prune.bind import bind
from rowlake.prune.match import must_match
from rowlake.rowlevel.key_lookup import with_positions
from rowlake.rowlevel.source_keys import source_keys
from rowlake.rowlevel.strategy import granularity_of, mode_for
from rowlake.rowlevel.task import ChangeTask
from rowlake.rowlevel.tasks import TaskLayout, placed_files
from rowlake.storage.tally import counting
from rowlake.verbs.read import scan_context
from rowlake.write.context import write_context
from rowlake.write.images import images_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.plan.files import FilePlan
    from rowlake.rowlevel.key_lookup import Fill
    from rowlake.rowlevel.operation import RowChange
    from rowlake.rowlevel.tasks import Placed
    from rowlake.storage.files import Storage
    from rowlake.verbs.write import WriteOptions

# A data file's vector is made by one task, so files are not split.
_WHOLE_FILES = {"read.split.target-size": str(1 << 62)}
# The settings of Iceberg know three operations.
SETTINGS = {"delete": "delete", "update": "update", "merge": "merge", "upsert": "merge"}


@dataclass(frozen=True)
class Planned:
    """What an operation will look at: files that may match, files that go unread.

    `source_keys` is what matching target rows satisfy, by the source's keys. `lookup` says how the
    table's key index was used, for which `bytes_read` were read.
    """

    files: FilePlan
    source_keys: Predicate
    conflict_filter: Predicate
    removed: Mapping[str, int]
    placed: list[Placed]
    template: ChangeTask
    lookup: KeyLookup = field(default_factory=KeyLookup)
    bytes_read: int = 0

    @property
    def files_pruned(self) -> int:
        """How many data files are not opened."""
        return self.files.files_considered - len(self.placed) - len(self.removed)


def plan_change(
    change: RowChange,
    view: TableView,
    engine: Engine,
    options: WriteOptions,
    storage: Storage,
    *,
    fill: Fill | None = None,
) -> Planned:
    """Return what to look at; `fill` writes indexes of files that lack one."""
    _validate_found(change, view)
    keys = source_keys(change, view.schema, storage)
    wanted = conjunction(change.predicate, keys)
    predicate = TRUE if change.touches_unmatched else bind(wanted, view.schema)
    files = plan_files(
        whole_files_of(view),
        predicate,
        storage,
        whole_files=True,
        runner=engine,
    )
    removed = _inside(files) if change.deletes_all_matched else {}
    template = change_template(change, view, options)
    layout = TaskLayout(change.staged)

    def placed(unread: Mapping[str, int]) -> list[Placed]:
        return [
            one
            for one in placed_files(_without(files, unread), layout, template)
            if one.parts or change.staged is None or change.touches_unmatched
        ]

    found = placed(removed)
    if removed and found and template.images is not None:
        # A commit that shows some of the rows that it changed must show all of them.
        removed, found = {}, placed({})
    with counting() as read:
        found, lookup = with_positions(change, view, found, storage, fill)
    return Planned(files, keys, predicate, removed, found, template, lookup, read.size_in_bytes)


def whole_files_of(view: TableView) -> TableView:
    """Return the view with files that planning does not split."""
    return replace(view, properties={**view.properties, **_WHOLE_FILES})


def _validate_found(change: RowChange, view: TableView) -> None:
    """Rows that were found by position are looked for in the snapshot they were found in.

    What landed since is checked by the commit, as for rows that tasks find.
    """
    if change.matching.position is not None and change.snapshot_id != view.snapshot_id:
        raise InternalError(
            f"Rows of {view.name} were found at snapshot {change.snapshot_id}, but are to be "
            f"changed at {view.snapshot_id}."
        )


def change_template(change: RowChange, view: TableView, options: WriteOptions) -> ChangeTask:
    """Return what all tasks of an operation share."""
    context = replace(
        scan_context(view),
        predicate=None if change.predicate == TRUE else bind(change.predicate, view.schema),
    )
    write = write_context(
        view,
        operation_id=str(uuid.uuid4()),
        row_lineage=view.can.row_ids,
        sort="local" if view.sort_order.fields else "none",
    )
    shows = any(clause.action in (Action.UPDATE, Action.DELETE) for clause in change.clauses)
    return ChangeTask(
        context=context,
        write=write,
        clauses=change.clauses,
        matching=change.matching,
        mode=mode_for(options, view, SETTINGS[change.verb]),
        delete_folder=view.data_folder,
        as_vectors=view.can.deletion_vectors,
        granularity=granularity_of(view.properties),
        staged_schema=None if change.staged is None else change.staged.schema,
        checks_cardinality=change.checks_cardinality,
        skips_unchanged=change.skips_unchanged,
        rejects_matches=change.rejects_matches,
        images=images_context(write) if shows else None,
    )


def _inside(plan: FilePlan) -> dict[str, int]:
    """Return the clean files all of whose rows match by metadata alone, with their rows."""
    found: dict[str, int] = {}
    for spec_id, files in plan.data.items():
        view: TableView = plan.view
        inside = must_match(files, plan.predicate, view.specs[spec_id], view.schema)
        whole = files.filter(pc.and_(inside, pa.array(plan.clean(spec_id))))
        rows = whole["record_count"].to_pylist()
        found |= dict(zip(whole["location"].to_pylist(), rows, strict=True))
    return found


def _without(plan: FilePlan, removed: Mapping[str, int]) -> FilePlan:
    if not removed:
        return plan
    gone = pa.array(sorted(removed), pa.string())
    data = {
        spec_id: files.filter(pc.invert(pc.is_in(files["location"], gone)))
        for spec_id, files in plan.data.items()
    }
    return replace(plan, data=data)
