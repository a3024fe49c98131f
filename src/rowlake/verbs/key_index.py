"""Write key indexes for data files that exist already.

Comes in: data files of a table. Goes out: an index file beside each of them that is the table's
own. Their key columns are read whole, deleted rows too: a file's deletes come and go, its index
stays. Nothing is committed, and an index that cannot be written is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.model.schema import Schema
from rowlake.model.task import ScanTask
from rowlake.plan.tasks import SPLIT_BYTES, pack, task_count
from rowlake.scan.kernel import scan_kernel
from rowlake.storage.files import Storage
from rowlake.storage.places import are_below
from rowlake.verbs.read import scan_context
from rowlake.write.key_index import IndexBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.model.view import TableView
    from rowlake.write.key_index import IndexKeys

INDEXED = pa.schema([pa.field("location", pa.string()), pa.field("rows", pa.int64())])


@dataclass(frozen=True)
class IndexTask:
    """Some files to index; `context` reads their keys."""

    context: ScanContext
    keys: IndexKeys
    files: tuple[FileTask, ...]


def build_indexes(
    handle: TableHandle,
    engine: Engine,
    files: Sequence[FileTask],
    keys: IndexKeys,
    progress: Any = None,
) -> pa.Table:
    """Write the indexes of some files of a table; return those written as `INDEXED`."""
    view = handle.view()
    locations = pa.array([file.location for file in files], pa.string())
    is_own = are_below(locations, own_folders(view)).tolist()
    own = [file for file, is_own in zip(files, is_own, strict=True) if is_own]
    fields = [view.schema.arrow.field(name) for name in keys.names]
    context = replace(scan_context(view), projection=Schema(pa.schema(fields)))
    weights = np.array([float(file.file_size_in_bytes) for file in own])
    count = task_count(float(weights.sum()), SPLIT_BYTES, engine.parallelism)
    tasks = [
        IndexTask(context, keys, tuple(own[place] for place in places.tolist()))
        for places in pack(weights, count)
    ]
    if not tasks:
        return INDEXED.empty_table()
    return engine.run(
        index_kernel,
        tasks,
        INDEXED,
        size_in_bytes=int(weights.sum()),
        label=f"indexing {view.name}",
        progress=progress,
    )


def own_folders(view: TableView) -> tuple[str, ...]:
    """Return the folders beside whose files indexes may be written: where the table writes too."""
    return view.location, view.data_folder


def index_kernel(task: IndexTask) -> Iterator[pa.RecordBatch]:
    """Write the indexes of a task's files; yield a row for each that has one now."""
    storage = Storage(task.context.io_properties)
    for file in task.files:
        size, rows = file.file_size_in_bytes, file.record_count
        whole = replace(file, deletes=(), only=None, start=0, length=size)
        builder = IndexBuilder(task.keys)
        for batch in scan_kernel(ScanTask(task.context, (whole,))):
            builder.add(batch.columns)
        if builder.write(file.location, size, rows, storage) is not None:
            yield pa.RecordBatch.from_pylist([{"location": file.location, "rows": rows}], INDEXED)
