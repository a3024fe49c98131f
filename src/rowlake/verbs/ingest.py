"""add_files: files that exist become data files of a table, without being rewritten.

Comes in: a table and a directory or files. Goes out: the handle after
one append commit and a `Result`. Files are only read: on any failure the table is as it was and
the files stay where they are.

Partition values come from `key=value` folders, so the table needs a spec of identity fields with
just these names, as in Iceberg's own add_files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from rowlake.commit.outcome import Phases, commit_or_raise
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.ingest.folders import FORMATS, source_files
from rowlake.ingest.footers import AdoptContext, AdoptTask, adopt_kernel
from rowlake.ingest.partition_match import check_duplicates, compatible_spec, partitioned
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.metadata_change import AddNameMapping
from rowlake.model.result import Result
from rowlake.model.task import NameMapping
from rowlake.storage.files import Storage
from rowlake.verbs.write import WriteOptions, view_for_write
from rowlake.write.metrics_modes import metrics_modes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from rowlake.engine.spark import Engine
    from rowlake.ingest.folders import SourceFile
    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.partition import PartitionSpec
    from rowlake.model.view import TableView

FOOTER_BYTES = 64 * 1024  # about what reading a footer costs
FILES_PER_TASK = 500


def add_files(
    handle: TableHandle,
    engine: Engine,
    source: Any,
    options: WriteOptions,
    *,
    partition_filter: Mapping[str, Any] | None = None,
    check_duplicate_files: bool = True,
    file_format: str | None = None,
) -> tuple[TableHandle, Result]:
    """Take files into a table; `partition_filter` picks folders by their values."""
    phases = Phases()
    view = view_for_write(handle, options.branch)
    if not view.can.existing_files:
        raise UnsupportedFeatureError(
            f"Cannot add files to {view.name}: its format does not take files that others wrote."
        )
    with phases.phase("list"):
        files = source_files(source, Storage(view.io_properties), checked_format(file_format))
    return added(
        handle, view, engine, files, options, phases, partition_filter or {}, check_duplicate_files
    )


def checked_format(file_format: str | None) -> str | None:
    """Return the name of a file format as manifests have it."""
    if file_format is not None and file_format.upper() not in FORMATS:
        raise InvalidStatementError(
            f"Unsupported file format {file_format} (supported: {', '.join(FORMATS)})."
        )
    return None if file_format is None else file_format.upper()


def added(
    handle: TableHandle,
    view: TableView,
    engine: Engine,
    files: list[SourceFile],
    options: WriteOptions,
    phases: Phases,
    partition_filter: Mapping[str, Any],
    checks_duplicates: bool,
) -> tuple[TableHandle, Result]:
    """Read the files' footers and commit them to a table, which may be a staged one."""
    spec = compatible_spec(view, files)
    files, partitions = partitioned(view, spec, files, partition_filter)
    storage = Storage(view.io_properties)
    checked = check_duplicates(view, files, storage) if checks_duplicates else None
    mapping = handle.format.name_mapping(handle)
    with phases.phase("read footers"):
        context = adopt_context(view, spec, mapping)
        written = engine_rows(engine, context, files, partitions, spec.spec_id, options)

    def first(newest: TableHandle) -> Payload | None:
        if checks_duplicates:
            after = view_for_write(newest, options.branch)
            if after.snapshot_id != checked:
                check_duplicates(after, files, storage)
        return newest.format.alter(newest, AddNameMapping())

    change = Change(
        Operation.APPEND,
        added_data=written,
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
    )
    with phases.phase("commit"):
        landed, committed = commit_or_raise(
            handle, change, storage, "add_files", keep_files=True, first=first
        )
    return landed, Result(
        operation="add_files",
        snapshot_id=committed.snapshot_id,
        rows_inserted=int(pc.sum(written["record_count"]).as_py() or 0),
        data_files_added=written.num_rows,
        files_considered=len(files),
        retries=committed.retries,
        seconds=phases.total,
        phases=phases.seconds,
    )


def adopt_context(view: TableView, spec: PartitionSpec, mapping: str) -> AdoptContext:
    """Return what reading the footers of files for a table needs."""
    names: dict[int, set[str]] = {}
    for schema in view.schemas.values():
        for key, path in schema.paths.items():
            names.setdefault(key, set()).add(path[-1])
    return AdoptContext(
        schema=view.schema,
        name_mapping=NameMapping(mapping),
        modes=metrics_modes(view.properties, view.schema, None),
        constant_ids=frozenset(field.source_id for field in spec.fields),
        names={key: frozenset(found) for key, found in names.items()},
        io_properties=view.io_properties,
    )


def engine_rows(
    engine: Engine,
    context: AdoptContext,
    files: Sequence[SourceFile],
    partitions: Sequence[tuple[bytes | None, ...]],
    spec_id: int,
    options: WriteOptions,
) -> pa.Table:
    """Read footers: in the driver for a few files, in Spark tasks for many."""
    tasks = tasks_of(context, files, partitions, spec_id)
    found = engine.run(
        adopt_kernel,
        tasks,
        WRITTEN_FILES,
        size_in_bytes=cost_of(files),
        label="reading footers",
        progress=options.progress,
    )
    return found.sort_by("location")


def tasks_of(
    context: AdoptContext,
    files: Sequence[SourceFile],
    partitions: Sequence[tuple[bytes | None, ...]] = (),
    spec_id: int = 0,
) -> list[AdoptTask]:
    """Return the tasks that read the footers of files."""
    step = min(FILES_PER_TASK, max(1, -(-len(files) // 8)))
    return [
        AdoptTask(
            context,
            tuple(files[start : start + step]),
            tuple(partitions[start : start + step]),
            spec_id,
        )
        for start in range(0, len(files), step)
    ]


def cost_of(files: Sequence[SourceFile]) -> int:
    """Return about how many bytes reading the footers takes."""
    return sum(min(file.size_in_bytes, FOOTER_BYTES) for file in files)
