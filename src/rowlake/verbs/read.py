"""Reading a table: a view of a snapshot, a plan of its files, a DataFrame or an Arrow table.

Comes in: a table handle and what to read. Goes out: rows. Clean Parquet files go to Spark's own
reader where it resolves them right; all others go through the scan kernel; one DataFrame unites
them. A predicate only leaves rows out that do not match; `exact` reads apply it fully.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import InvalidStatementError, shown
from rowlake.model.schema import FIELD_ID, Schema, field_id
from rowlake.model.task import (
    DELETED_COLUMN,
    DELETED_COLUMN_ID,
    FILE_COLUMN,
    FILE_COLUMN_ID,
    LAST_UPDATED_COLUMN,
    LAST_UPDATED_COLUMN_ID,
    PARTITION_COLUMN,
    PARTITION_COLUMN_ID,
    POS_COLUMN,
    POS_COLUMN_ID,
    ROW_ID_COLUMN,
    ROW_ID_COLUMN_ID,
    SPEC_ID_COLUMN,
    SPEC_ID_COLUMN_ID,
    ScanContext,
)
from rowlake.model.unified_partition import unified_partition_type
from rowlake.plan.files import plan_files
from rowlake.plan.key_lookup import narrowed
from rowlake.plan.tasks import scan_tasks
from rowlake.prune.bind import bind, resolve
from rowlake.scan.kernel import output_schema, scan_kernel
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.plan.files import FilePlan

# Spark lists every path again and starts a task per some files: above this the kernel is quicker.
MOST_NATIVE_FILES = 2_000

_METADATA = {
    FILE_COLUMN: (FILE_COLUMN_ID, pa.string()),
    POS_COLUMN: (POS_COLUMN_ID, pa.int64()),
    DELETED_COLUMN: (DELETED_COLUMN_ID, pa.bool_()),
    SPEC_ID_COLUMN: (SPEC_ID_COLUMN_ID, pa.int32()),
    ROW_ID_COLUMN: (ROW_ID_COLUMN_ID, pa.int64()),
    LAST_UPDATED_COLUMN: (LAST_UPDATED_COLUMN_ID, pa.int64()),
}
METADATA_COLUMNS = (*_METADATA, PARTITION_COLUMN)


@dataclass(frozen=True)
class Request:
    """What to read: column names (None: all; metadata columns only by name), rows, snapshot."""

    columns: Sequence[str] | None = None
    predicate: Predicate | None = None
    snapshot_id: int | None = None
    as_of_ms: int | None = None
    ref: str | None = None
    exact: bool = False


@dataclass(frozen=True)
class Read:
    """A request, planned: ready to run."""

    view: TableView
    context: ScanContext
    plan: FilePlan


def planned(handle: TableHandle, request: Request, engine: Engine | None = None) -> Read:
    """Resolve names, choose the snapshot and plan the files; an engine reads many manifests."""
    view = handle.view(snapshot_id=request.snapshot_id, as_of_ms=request.as_of_ms, ref=request.ref)
    return planned_view(
        view, request.columns, request.predicate, exact=request.exact, engine=engine
    )


def planned_view(
    view: TableView,
    columns: Sequence[str] | None = None,
    predicate: Predicate | None = None,
    *,
    exact: bool = False,
    engine: Engine | None = None,
) -> Read:
    """Plan the read of a snapshot that is chosen already."""
    predicate = None if predicate is None else bind(predicate, view.schema)
    context = replace(scan_context(view, columns), predicate=predicate, exact=exact)
    storage = Storage(view.io_properties)
    plan = plan_files(view, predicate, storage, runner=engine)
    return Read(view, context, narrowed(plan, storage))


def scan_context(view: TableView, columns: Sequence[str] | None = None) -> ScanContext:
    """Return how files of a table are read: these columns, all rows."""
    return ScanContext(
        table_schema=view.schema,
        projection=projection_of(view, columns),
        specs=view.specs,
        name_mapping=view.name_mapping,
        partition_type=unified_partition_type(view),
        io_properties=view.io_properties,
    )


def projection_of(view: TableView, columns: Sequence[str] | None) -> Schema:
    """Return the schema of the named columns, metadata columns among them, in their order."""
    if columns is None:
        return view.schema
    fields = [_projected(view, name) for name in columns]
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise InvalidStatementError(f"A column is asked for twice: {shown(names)}.")
    return Schema(pa.schema(fields), view.schema.schema_id, view.schema.identifier_field_ids)


def _projected(view: TableView, name: str) -> pa.Field:
    if name == PARTITION_COLUMN:
        kind = unified_partition_type(view)
        return pa.field(name, kind, metadata={FIELD_ID: str(PARTITION_COLUMN_ID).encode()})
    if name in _METADATA and view.schema.find((name,), case_sensitive=True) is None:
        identity, kind = _METADATA[name]
        return pa.field(name, kind, metadata={FIELD_ID: str(identity).encode()})
    return resolve((name,), view.schema)


def frame(handle: TableHandle, engine: Engine, request: Request) -> Any:
    """Return the rows as a lazy Spark DataFrame."""
    read = planned(handle, request, engine)
    native, rest = _native_part(read, engine)
    if native is not None and not rest.file_count:
        return native
    tasks = scan_tasks(rest, read.context, slots=engine.slots)
    kernel = engine.dataframe(scan_kernel, tasks, output_schema(read.context))
    return kernel if native is None else native.unionByName(kernel)


def arrow(handle: TableHandle, engine: Engine, request: Request) -> pa.Table:
    """Return the rows as an Arrow table; small reads run in the driver, without Spark.

    Files that are gone because their snapshot was expired make it read the newest snapshot.
    """
    return rerun_on_conflict(handle, lambda newest: _arrow(newest, engine, request))


def _arrow(handle: TableHandle, engine: Engine, request: Request) -> pa.Table:
    read = planned(handle, request, engine)
    size = read.plan.size_in_bytes
    tasks = scan_tasks(read.plan, read.context, slots=engine.parallelism)
    return engine.run(
        scan_kernel,
        tasks,
        output_schema(read.context),
        size_in_bytes=size,
        label=f"reading {read.view.name}",
    )


def _native_part(read: Read, engine: Engine) -> tuple[Any, FilePlan]:
    """Return a frame of the clean Parquet files by Spark's reader (or None), and what is left."""
    has_metadata = any(
        field_id(field) not in read.view.schema.by_id for field in read.context.projection.arrow
    )
    if has_metadata or read.context.exact or read.view.name_mapping is not None:
        return None, read.plan
    if not read.context.projection.arrow or read.plan.rows:
        return None, read.plan
    clean = {spec_id: _is_clean_parquet(read.plan, spec_id) for spec_id in read.plan.data}
    locations = [
        path
        for spec_id, files in read.plan.data.items()
        for path in files.filter(clean[spec_id])["location"].to_pylist()
    ]
    if not locations or len(locations) > MOST_NATIVE_FILES:
        return None, read.plan
    left = {
        spec_id: files.filter(pc.invert(clean[spec_id]))
        for spec_id, files in read.plan.data.items()
    }
    rest = replace(read.plan, data=left)
    made = engine.read_parquet(locations, read.context.projection, read.view.schemas.values())
    return (None, read.plan) if made is None else (made, rest)


def _is_clean_parquet(plan: FilePlan, spec_id: int) -> pa.Array:
    is_parquet = pc.equal(plan.data[spec_id]["file_format"], "PARQUET")
    return pc.and_(is_parquet, pa.array(plan.clean(spec_id)))
