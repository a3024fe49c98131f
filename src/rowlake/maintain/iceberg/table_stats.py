"""compute_table_stats: how many distinct values each column has, in a Puffin file.

Comes in: a table, a snapshot and columns. Goes out: the table with the file registered, and a
report. One scan of these columns with deletes applied; each task makes theta sketches of bounded
size, which the driver merges.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from rowlake.codecs.puffin import Blob, write_puffin
from rowlake.codecs.theta import BLOB_TYPE, ThetaSketch
from rowlake.commit.metadata import commit_metadata
from rowlake.errors import CommitStateUnknownError, InvalidStatementError, RowlakeError, shown
from rowlake.iceberg.statistics import set_statistics, statistics_location
from rowlake.maintain.guard import check_outside_transaction
from rowlake.maintain.iceberg.handles import iceberg_handle
from rowlake.maintain.iceberg.sketch_kernel import (
    SKETCHES,
    CountedColumn,
    sketch_kernel,
    sketches_of,
)
from rowlake.model.report import Report
from rowlake.model.schema import Schema, field_id, type_name
from rowlake.plan.tasks import scan_tasks
from rowlake.storage.files import Storage
from rowlake.verbs.read import planned_view
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.codecs.puffin import PuffinFile
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView

VERB = "compute_table_stats"


@dataclass(frozen=True)
class TableStatsReport(Report):
    """What was counted; `statistics_file` is None for a table without snapshots and a dry run."""

    always_shown: ClassVar[tuple[str, ...]] = ("statistics_file",)

    statistics_file: str | None
    snapshot_id: int | None = None
    dry_run: bool = False
    distinct_values: Mapping[str, int] = field(default_factory=dict)
    file_size_in_bytes: int = 0
    seconds: float = 0.0

    def rows(self) -> list[tuple[str, str]]:
        """Return (name, value) of what is worth showing; a column and its count side by side."""
        counts = ", ".join(f"{name} {count:,}" for name, count in self.distinct_values.items())
        short = {"distinct values": counts}
        return [(name, short.get(name, value)) for name, value in super().rows()]


def compute_table_stats(
    handle: TableHandle,
    engine: Engine,
    *,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
    dry_run: bool = False,
) -> tuple[TableHandle, TableStatsReport]:
    """Count the distinct values of columns (all of primitive types) at a snapshot (the current).

    The file replaces what statistics the snapshot had. A dry run counts and registers nothing.
    """
    iceberg_handle(handle, VERB)
    check_outside_transaction(handle, VERB)
    started = time.perf_counter()
    view = _view(handle, snapshot_id)
    if view.snapshot is None:
        return handle, TableStatsReport(None, dry_run=dry_run)
    counted = counted_columns(view, columns)
    sketches = _sketches(view, engine, counted)
    blobs = [_blob(view, column, sketches[column.field_id]) for column in counted]
    values = {column.name: sketches[column.field_id].estimate for column in counted}
    puffin = write_puffin(blobs, created_by=f"rowlake {__version__}")
    location = None if dry_run else statistics_location(view, f"{view.snapshot_id}-{{}}.stats")
    if location is not None:
        handle = _registered(handle, view.snapshot.snapshot_id, location, puffin)
    return handle, TableStatsReport(
        location,
        view.snapshot_id,
        dry_run,
        values,
        len(puffin.data),
        time.perf_counter() - started,
    )


def _registered(
    handle: TableHandle, snapshot_id: int, location: str, puffin: PuffinFile
) -> TableHandle:
    storage = Storage(handle.io_properties)
    with removed_on_failure(storage, location):
        storage.write(location, puffin.data)
        return commit_metadata(
            handle,
            VERB,
            lambda newest: set_statistics(
                iceberg_handle(newest, VERB), snapshot_id, location, puffin
            ),
        )


@contextmanager
def removed_on_failure(storage: Storage, location: str) -> Iterator[None]:
    """Remove a file when the commit inside is known not to have landed."""
    try:
        yield
    except CommitStateUnknownError:
        raise
    except RowlakeError:
        storage.delete([location])
        raise


def _view(handle: TableHandle, snapshot_id: int | None) -> TableView:
    """Return the table at a snapshot, with the schema that it was written with."""
    return handle.view(
        snapshot_id=handle.current_snapshot_id if snapshot_id is None else snapshot_id
    )


def counted_columns(view: TableView, columns: Sequence[str] | None) -> list[CountedColumn]:
    """Return the columns to count: those named (fields of structs by `a.b`), else all that can."""
    if isinstance(columns, str):
        raise InvalidStatementError(f"columns must be a list of names, not {columns!r}.")
    if columns is None:
        found = [
            CountedColumn(field_id(top) or 0, (top.name,))
            for top in view.schema.arrow
            if _is_countable(top)
        ]
    else:
        found = [_named(view, name) for name in dict.fromkeys(columns)]
    if not found:
        raise InvalidStatementError(f"There is no column of {view.name} to compute statistics of.")
    return found


def _named(view: TableView, name: str) -> CountedColumn:
    for path in ((name,), tuple(name.split("."))):
        found = view.schema.find(path)
        if found is None:
            continue
        below_struct = _struct_path(view.schema, field_id(found) or 0)
        if below_struct is None or not _is_countable(found):
            raise InvalidStatementError(
                f"Cannot compute statistics of column {name} of {view.name}: it is "
                f"{type_name(found) or found.type}. Name columns of primitive types, or fields of "
                "structs."
            )
        return CountedColumn(field_id(found) or 0, below_struct)
    raise InvalidStatementError(
        f"Cannot compute statistics of column {name}: {view.name} has no such column. "
        f"It has {shown(view.schema.arrow.names)}."
    )


def _struct_path(schema: Schema, wanted: int) -> tuple[str, ...] | None:
    """Return the path to a field that only structs lie above, None for one in a list or map."""
    path = schema.paths[wanted]
    above = [schema.find(path[:depth], case_sensitive=True) for depth in range(1, len(path))]
    return path if all(one is not None and pa.types.is_struct(one.type) for one in above) else None


def _is_countable(found: pa.Field) -> bool:
    kind = type_name(found)
    is_opaque = kind is not None and kind not in ("uuid", "unknown")
    return not pa.types.is_nested(found.type) and not is_opaque


def _sketches(
    view: TableView, engine: Engine, counted: Sequence[CountedColumn]
) -> dict[int, ThetaSketch]:
    names = list(dict.fromkeys(column.path[0] for column in counted))
    read = planned_view(view, names, engine=engine)
    found = engine.run(
        partial(sketch_kernel, tuple(counted)),
        scan_tasks(read.plan, read.context, slots=engine.parallelism),
        SKETCHES,
        size_in_bytes=read.plan.size_in_bytes,
        label=f"counting distinct values of {view.name}",
    )
    none = {column.field_id: ThetaSketch() for column in counted}
    return none | sketches_of(found)


def _blob(view: TableView, column: CountedColumn, sketch: ThetaSketch) -> Blob:
    snapshot = view.snapshot
    return Blob(
        type=BLOB_TYPE,
        data=sketch.to_bytes(),
        fields=(column.field_id,),
        snapshot_id=snapshot.snapshot_id if snapshot else -1,
        sequence_number=snapshot.sequence_number if snapshot else -1,
        properties={"ndv": str(sketch.estimate)},
    )
