"""append, overwrite, truncate: rows in, one commit out.

Comes in: a table handle, an engine and rows. Goes out: the handle after the commit and a `Result`.
On any failure the table is as it was and the files written are removed.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.batches import has_landed
from rowlake.commit.outcome import Phases, commit_or_raise
from rowlake.commit.rerun import rerun_on_conflict
from rowlake.engine.spark import Spread
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.model.change import Change, Isolation, Operation, Requirements, no_files
from rowlake.model.column_rules import identity_columns
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.predicate import TRUE
from rowlake.model.properties import validate_no_secrets
from rowlake.model.result import Result
from rowlake.secrets import redacted_repr
from rowlake.sources.column_match import matched_batches, matched_frame, matched_names
from rowlake.sources.plain_parquet import FileSource
from rowlake.sources.rows import ArrowSource, rereadable, source_of
from rowlake.storage.files import Storage
from rowlake.verbs.identity_columns import moved_marks
from rowlake.verbs.made_columns import with_made_columns
from rowlake.verbs.row_rules import with_rules
from rowlake.write.context import write_context
from rowlake.write.distribution import Kind, choose_distribution
from rowlake.write.kernel import remove_attempt, remove_written, write_batches
from rowlake.write.plain import spread_plain, write_plain
from rowlake.write.spread import KEY_COLUMN, KEYS, SPREAD, spread_batches, write_spread

DISTRIBUTION_MODE = "write.distribution-mode"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
REPLACE_PARTITIONS = "replace-partitions"

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.engine.spark import Engine
    from rowlake.model.app_batch import AppBatch
    from rowlake.model.change import MovedMark
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.sources.rows import Source, SparkSource
    from rowlake.write.context import WriteContext


@dataclass(frozen=True)
class WriteOptions:
    """What every write takes (see `Table`)."""

    branch: str = "main"
    properties: Mapping[str, str] = field(default_factory=dict)
    isolation: Isolation | None = None
    mode: str | None = None
    deletes: str | None = None
    progress: Any = None
    stage_only: bool = False
    app_batch: AppBatch | None = None

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        validate_no_secrets(self.properties, of="snapshot property")


@dataclass(frozen=True)
class RowsWritten:
    """Data files that hold rows, and how far identity columns have come by them."""

    files: pa.Table
    moved_marks: tuple[MovedMark, ...] = ()


def append(
    handle: TableHandle, engine: Engine, rows: Any, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Add rows; an empty input commits nothing, unless it is a batch of a stream."""
    if not identity_columns(handle.view().schema.arrow):
        return _append(handle, engine, rows, options)
    held = rereadable(rows)
    return rerun_on_conflict(handle, lambda found: _append(found, engine, held, options))


def _append(
    handle: TableHandle, engine: Engine, rows: Any, options: WriteOptions
) -> tuple[TableHandle, Result]:
    phases = Phases()
    view = view_for_write(handle, options.branch)
    storage = Storage(view.io_properties)
    with phases.phase("write"):
        written = write_rows(view, engine, rows, options)
    if not written.files.num_rows and options.app_batch is None:
        return handle, Result("append", seconds=phases.total, phases=phases.seconds)
    change = Change(
        Operation.APPEND,
        added_data=written.files,
        moved_marks=written.moved_marks,
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
        app_batch=options.app_batch,
    )
    return committed_result(handle, change, storage, "append", phases)


def overwrite(
    handle: TableHandle,
    engine: Engine,
    rows: Any,
    options: WriteOptions,
    *,
    where: Predicate | None = None,
    dynamic: bool = False,
) -> tuple[TableHandle, Result]:
    """Replace the rows that a filter selects (all of them by default), or whole partitions.

    `dynamic` replaces the partitions that the new rows fall into. A filter must select whole
    files: rows of the rest of a file would be lost otherwise.
    """
    if not identity_columns(handle.view().schema.arrow):
        return _overwrite(handle, engine, rows, options, where, dynamic=dynamic)
    held = rereadable(rows)
    return rerun_on_conflict(
        handle, lambda found: _overwrite(found, engine, held, options, where, dynamic=dynamic)
    )


def _overwrite(
    handle: TableHandle,
    engine: Engine,
    rows: Any,
    options: WriteOptions,
    where: Predicate | None,
    *,
    dynamic: bool,
) -> tuple[TableHandle, Result]:
    phases = Phases()
    view = view_for_write(handle, options.branch)
    storage = Storage(view.io_properties)
    with phases.phase("write"):
        written = write_rows(view, engine, rows, options)
    change = Change(
        Operation.OVERWRITE,
        added_data=written.files,
        moved_marks=written.moved_marks,
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
        app_batch=options.app_batch,
    )
    replaced = _replaced_partitions(written.files) if dynamic else frozenset()
    if dynamic and not replaced and options.app_batch is None:
        return handle, Result("overwrite", seconds=phases.total, phases=phases.seconds)
    if dynamic:
        change = replace(change, properties={REPLACE_PARTITIONS: "true", **change.properties})
    change = _replacing(change, view, None if dynamic else (where or TRUE), replaced, options)
    return committed_result(handle, change, storage, "overwrite", phases)


def delete_files(
    handle: TableHandle, options: WriteOptions, where: Predicate, operation: str
) -> tuple[TableHandle, Result]:
    """Remove every data file all of whose rows match; reads metadata only (TRUNCATE)."""
    phases = Phases()
    view = view_for_write(handle, options.branch)
    if view.snapshot is None and options.app_batch is None:
        return handle, Result(operation, seconds=phases.total)
    change = Change(
        Operation.DELETE,
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
        app_batch=options.app_batch,
    )
    change = _replacing(change, view, where, frozenset(), options)
    return committed_result(handle, change, Storage(view.io_properties), operation, phases)


def truncate(handle: TableHandle, options: WriteOptions) -> tuple[TableHandle, Result]:
    """Remove every row; metadata only."""
    return delete_files(handle, options, TRUE, "truncate")


def _replacing(
    change: Change,
    view: TableView,
    where: Predicate | None,
    partitions: frozenset[tuple[int, tuple[bytes | None, ...]]],
    options: WriteOptions,
) -> Change:
    # Iceberg's overwrites only check for conflicts where an isolation level is asked for.
    checks = where is not None and options.isolation is not None
    serializable = checks and options.isolation == Isolation.SERIALIZABLE
    return Change(
        operation=change.operation,
        added_data=change.added_data,
        moved_marks=change.moved_marks,
        remove_where=where,
        replaced_partitions=partitions,
        requirements=Requirements(
            starting_snapshot_id=view.snapshot_id,
            conflict_detection_filter=where,
            no_new_data=serializable,
            no_new_deletes=checks,
        ),
        branch=change.branch,
        stage_only=change.stage_only,
        properties=change.properties,
        app_batch=change.app_batch,
    )


def skipped_result(operation: str, phases: Phases) -> Result:
    """Return the result of a batch that had landed before."""
    return Result(operation, skipped=True, seconds=phases.total, phases=phases.seconds)


def is_done(handle: TableHandle, options: WriteOptions, operation: str) -> Result | None:
    """Return the result of a batch that had landed before; asked before any work is done."""
    done = has_landed(
        handle, options.branch, options.app_batch, operation, staged=options.stage_only
    )
    return skipped_result(operation, Phases()) if done else None


def view_for_write(handle: TableHandle, branch: str) -> TableView:
    """Return the head of the branch that is to be written."""
    handle.format.validate_writable(handle)
    ref = handle.refs.get(branch)
    if ref is None and branch != "main":
        raise InvalidStatementError(
            f"Table {handle.name} has no branch {branch}. Create it with create_branch."
        )
    if ref is not None and ref.is_tag:
        raise InvalidStatementError(f"{branch} is a tag of {handle.name}; tags cannot be written.")
    return with_rules(handle.view(ref=branch if ref else None))


def write_rows(view: TableView, engine: Engine, rows: Any, options: WriteOptions) -> RowsWritten:
    """Write rows as data files of the table, with all columns that the table makes."""
    made = with_made_columns(source_of(rows, engine, view.schema.arrow), view, engine)
    files = _write_made(made.view, engine, made.source, options)
    try:
        return RowsWritten(files, moved_marks(files, made.identities, made.view))
    except BaseException:
        remove_written(files, Storage(view.io_properties))
        raise


def _write_made(view: TableView, engine: Engine, source: Source, options: WriteOptions) -> pa.Table:
    """Write rows that have all their columns; return the files as `WRITTEN_FILES`."""
    is_sorted = bool(view.sort_order.fields)
    context = write_context(
        view, operation_id=str(uuid.uuid4()), sort="local" if is_sorted else "none"
    )
    if isinstance(source, ArrowSource):
        matched = matched_batches(source.schema, source.batches, view)
        return pa.Table.from_batches(list(write_batches(context, matched)), WRITTEN_FILES)
    try:
        return _write_source(view, engine, source, context, options)
    except BaseException:
        # A storage that cannot be listed must not hide why the write failed.
        with suppress(RowlakeError):
            remove_attempt(context, Storage(view.io_properties))
        raise


def _write_source(
    view: TableView,
    engine: Engine,
    source: FileSource | SparkSource,
    context: WriteContext,
    options: WriteOptions,
) -> pa.Table:
    distribution = choose_distribution(view.properties, view.spec, view.sort_order)
    # Where one task runs at a time a shuffle that nobody asked for costs, and saves no file.
    is_asked = engine.parallelism > 1 or DISTRIBUTION_MODE in view.properties
    kind = distribution.kind if is_asked and distribution.keys else Kind.NONE
    if isinstance(source, FileSource) and kind is not Kind.RANGE:
        return _write_files(view, engine, source, context, options, spreads=kind is Kind.HASH)
    frame = matched_frame(source.frame, view)
    spread, kernel = None, partial(write_batches, context)
    if kind is Kind.RANGE:
        frame = engine.ordered_by(frame, distribution.keys, view.schema)
    elif kind is Kind.HASH:
        spread = Spread(partial(spread_batches, context, _keys(engine)), SPREAD, KEY_COLUMN)
        kernel = partial(write_spread, context)
    return engine.consume(
        frame,
        kernel,
        WRITTEN_FILES,
        spread=spread,
        label=f"writing {view.name}",
        progress=options.progress,
    )


def _write_files(
    view: TableView,
    engine: Engine,
    source: FileSource,
    context: WriteContext,
    options: WriteOptions,
    *,
    spreads: bool,
) -> pa.Table:
    """Write rows of plain files: tasks read them, so that they never become Spark's rows."""
    names = source.schema.names
    pairs = [(name, names[place]) for name, place in matched_names(names, view)]
    chosen, label = source.select(pairs), f"writing {view.name}"
    tasks = chosen.tasks(engine.parallelism)
    if not spreads or len(tasks) == 1:
        return engine.run(
            partial(write_plain, context),
            tasks,
            WRITTEN_FILES,
            size_in_bytes=chosen.size_in_bytes,
            label=label,
            progress=options.progress,
        )
    kernel = partial(spread_plain, context, _keys(engine))
    return engine.gather(
        Spread(kernel, SPREAD, KEY_COLUMN),
        tasks,
        partial(write_spread, context),
        WRITTEN_FILES,
        label=label,
        progress=options.progress,
    )


def _keys(engine: Engine) -> int:
    """Return how many keys rows are spread by: enough for all tasks after the shuffle."""
    asked = engine.setting(SHUFFLE_PARTITIONS)
    return max(KEYS, int(asked)) if asked and asked.isdigit() else KEYS


def _replaced_partitions(written: pa.Table) -> frozenset[tuple[int, tuple[bytes | None, ...]]]:
    pairs = zip(written["spec_id"].to_pylist(), written["partition"].to_pylist(), strict=True)
    return frozenset((spec_id, tuple(partition)) for spec_id, partition in pairs)


def committed_result(
    handle: TableHandle,
    change: Change,
    storage: Storage,
    operation: str,
    phases: Phases,
    *,
    first: Callable[[TableHandle], Payload | None] | None = None,
) -> tuple[TableHandle, Result]:
    """Commit a change and say what it did; `first` makes a metadata change that lands with it."""
    with phases.phase("commit"):
        landed, committed = commit_or_raise(handle, change, storage, operation, first=first)
    if committed.skipped:
        return landed, skipped_result(operation, phases)
    snapshot = landed.snapshot(committed.snapshot_id)
    counted = snapshot.summary if snapshot else {}
    added = change.added_data if change.added_data is not None else no_files()
    return landed, Result(
        operation=operation,
        snapshot_id=committed.snapshot_id,
        rows_inserted=int(pc.sum(added["record_count"]).as_py() or 0),
        # Rows that vectors of the removed files hid were gone before.
        rows_deleted=int(counted.get("deleted-records", 0))
        - int(counted.get("removed-position-deletes", 0)),
        data_files_added=added.num_rows,
        data_files_removed=int(counted.get("deleted-data-files", 0)),
        delete_files_removed=int(counted.get("removed-delete-files", 0)),
        bytes_written=int(pc.sum(added["file_size_in_bytes"]).as_py() or 0),
        retries=committed.retries,
        seconds=phases.total,
        phases=phases.seconds,
    )
