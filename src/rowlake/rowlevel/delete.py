"""DELETE: the rows of a condition go, in one commit.

Comes in: a table handle and what to delete: a predicate that says it exactly, or positions that
Spark found. Goes out: the handle after the commit and a `Result`. Files that lie wholly inside the
predicate by their metadata are removed unread; of all others only the predicate's columns are read
until a row matches. No matching row: no commit.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CommitConflictError
from rowlake.model.change import Change, Isolation, Operation, Requirements
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.result import Result
from rowlake.model.values import encode_partitions
from rowlake.plan.bind import bind
from rowlake.plan.files import plan_files
from rowlake.plan.prune import must_match
from rowlake.plan.tasks import scan_tasks
from rowlake.rowlevel.kernel import OUTCOMES, DeleteTask, delete_kernel
from rowlake.rowlevel.strategy import Way, granularity_of, mode_of
from rowlake.storage.files import Storage
from rowlake.verbs.outcome import Phases, commit_or_raise
from rowlake.verbs.read import planned_view
from rowlake.verbs.write import view_for_write
from rowlake.write.context import write_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.catalog.handle import TableHandle
    from rowlake.engine.spark import Engine
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.plan.files import FilePlan
    from rowlake.rowlevel.marks import Partition
    from rowlake.verbs.write import WriteOptions

# A data file's vector is made by one task, so files are not split.
_WHOLE_FILES = {"read.split.target-size": str(1 << 62)}


@dataclass(frozen=True)
class Found:
    """Rows to delete that were found elsewhere: sorted positions by data file."""

    positions: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Selection:
    """Which rows to delete: those of `predicate`, or (with `found`) some of those."""

    predicate: Predicate
    found: Found | None = None


def delete(
    handle: TableHandle, engine: Engine, selection: Selection, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Delete rows; `selection.predicate` also tells which concurrent changes conflict."""
    phases = Phases()
    view = view_for_write(handle, options.branch)
    storage = Storage(view.io_properties)
    with phases.phase("plan"):
        plan = _plan(view, selection, storage)
        removed = {} if selection.found else _inside(plan)
    with phases.phase("write"):
        outcomes = _run(engine, plan, selection, set(removed), options)
    if not removed and not outcomes.num_rows:
        return handle, Result(
            "delete",
            files_considered=plan.files_considered,
            files_pruned=plan.files_pruned,
            seconds=phases.total,
            phases=phases.seconds,
        )
    summary = _Summary.of(outcomes)
    change = _change(view, plan, summary, removed, options)
    with phases.phase("commit"):
        landed, committed = commit_or_raise(handle, change, storage, "delete")
    return landed, Result(
        operation="delete",
        snapshot_id=committed.snapshot_id,
        rows_deleted=summary.matched + sum(removed.values()),
        rows_copied=summary.copied,
        data_files_added=change.added_data.num_rows,
        data_files_removed=len(change.removed_data),
        delete_files_added=change.added_deletes.num_rows,
        delete_files_removed=len(change.removed_deletes),
        bytes_written=int(pc.sum(summary.files["file_size_in_bytes"]).as_py() or 0),
        files_considered=plan.files_considered,
        files_pruned=plan.files_pruned,
        files_matched=len(removed) + summary.sources,
        retries=committed.retries,
        seconds=phases.total,
        phases=phases.seconds,
    )


def _plan(view: TableView, selection: Selection, storage: Storage) -> FilePlan:
    plan = plan_files(
        replace(view, properties={**view.properties, **_WHOLE_FILES}),
        selection.predicate,
        storage,
        whole_files=True,
    )
    if selection.found is None:
        return plan
    wanted = pa.array(sorted(selection.found.positions), pa.string())
    data = {
        spec_id: files.filter(pc.is_in(files["location"], wanted))
        for spec_id, files in plan.data.items()
    }
    planned = sum(files.num_rows for files in data.values())
    if planned < len(wanted):
        raise CommitConflictError(
            "DELETE", view.name, "the table was changed while its rows were looked for"
        )
    return replace(plan, data=data)


def _inside(plan: FilePlan) -> dict[str, int]:
    """Return the clean files all of whose rows match by metadata alone, with their rows."""
    found: dict[str, int] = {}
    for spec_id, files in plan.data.items():
        view = plan.view
        inside = must_match(files, plan.predicate, view.specs[spec_id], view.schema)
        whole = files.filter(pc.and_(inside, pa.array(plan.clean(spec_id))))
        rows = whole["record_count"].to_pylist()
        found |= dict(zip(whole["location"].to_pylist(), rows, strict=True))
    return found


def _run(
    engine: Engine,
    plan: FilePlan,
    selection: Selection,
    removed: set[str],
    options: WriteOptions,
) -> pa.Table:
    gone = pa.array(sorted(removed), pa.string())
    left = replace(
        plan,
        data={
            spec_id: files.filter(pc.invert(pc.is_in(files["location"], gone)))
            for spec_id, files in plan.data.items()
        },
    )
    if not left.file_count:
        return OUTCOMES.empty_table()
    tasks = _tasks(engine, left, selection, options)
    return engine.run(
        delete_kernel,
        tasks,
        OUTCOMES,
        size_in_bytes=left.size_in_bytes,
        label=f"deleting from {plan.view.name}",
        progress=options.progress,
    )


def _tasks(
    engine: Engine, plan: FilePlan, selection: Selection, options: WriteOptions
) -> list[DeleteTask]:
    view = plan.view
    context = replace(planned_view(view).context, predicate=bind(selection.predicate, view.schema))
    partitions = _partitions(plan)
    lineage = view.format_version >= 3
    write = write_context(view, operation_id=str(uuid.uuid4()), row_lineage=lineage)
    positions = selection.found.positions if selection.found else None
    folder = view.properties.get("write.data.path") or f"{view.location}/data"
    slots = engine.slots if engine.has_session else 1
    return [
        DeleteTask(
            context=context,
            files=task.files,
            partitions=tuple(partitions[file.location] for file in task.files),
            mode=mode_of(options.mode, view.properties, "delete"),
            write=write,
            delete_folder=folder.rstrip("/"),
            format_version=view.format_version,
            granularity=granularity_of(view.properties),
            positions=None
            if positions is None
            else {file.location: positions[file.location] for file in task.files},
        )
        for task in scan_tasks(plan, context, slots=slots)
    ]


def _partitions(plan: FilePlan) -> dict[str, Partition]:
    found: dict[str, Partition] = {}
    for files in plan.data.values():
        encoded = encode_partitions(files["partition"].combine_chunks()).to_pylist()
        locations = files["location"].to_pylist()
        found |= {place: tuple(key) for place, key in zip(locations, encoded, strict=True)}
    return found


@dataclass(frozen=True)
class _Summary:
    """What the tasks did, put together."""

    matched: int
    copied: int
    sources: int
    replaced: frozenset[str]
    marked: frozenset[str]
    replaced_deletes: frozenset[tuple[str, int | None]]
    files: pa.Table

    @classmethod
    def of(cls, outcomes: pa.Table) -> _Summary:
        done = outcomes.filter(pc.is_valid(outcomes["source"]))
        written = outcomes.filter(pc.is_null(outcomes["source"]))["file"]
        rows: list[dict[str, Any]] = done.drop_columns(["file"]).to_pylist()
        marked = {row["source"] for row in rows if row["way"] == Way.MARK.value}
        return cls(
            matched=sum(row["matched"] for row in rows),
            copied=sum(row["copied"] or 0 for row in rows),
            sources=len(rows),
            replaced=frozenset(row["source"] for row in rows) - marked,
            marked=frozenset(marked),
            replaced_deletes=frozenset(
                (old["location"], old["content_offset"])
                for row in rows
                for old in row["replaced_deletes"] or ()
            ),
            files=_unwrapped(written),
        )


def _unwrapped(structs: pa.ChunkedArray) -> pa.Table:
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=WRITTEN_FILES)
        for chunk in structs.chunks
        if len(chunk)
    ]
    return pa.Table.from_batches(batches, WRITTEN_FILES)


def _change(
    view: TableView,
    plan: FilePlan,
    summary: _Summary,
    removed: Mapping[str, int],
    options: WriteOptions,
) -> Change:
    is_data = pc.equal(summary.files["content"], int(Content.DATA))
    data = summary.files.filter(is_data)
    isolation = options.isolation or Isolation(
        view.properties.get("write.delete.isolation-level", Isolation.SERIALIZABLE.value)
    )
    touched = summary.replaced | summary.marked | set(removed)
    return Change(
        operation=Operation.OVERWRITE if data.num_rows else Operation.DELETE,
        added_data=data,
        added_deletes=summary.files.filter(pc.invert(is_data)),
        removed_data=summary.replaced | set(removed),
        removed_deletes=summary.replaced_deletes,
        requirements=Requirements(
            starting_snapshot_id=view.snapshot_id,
            conflict_detection_filter=plan.predicate,
            no_new_data=isolation is Isolation.SERIALIZABLE,
            no_new_deletes_for=touched,
            files_exist=touched,
        ),
        branch=options.branch,
        properties=options.properties,
    )
