"""Tables of files that exist only as metadata, for tests that never open one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowlake.commit.data import Commit
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.values import encode
from rowlake.storage.files import Storage

MB = 1 << 20


def add_files(
    table, sizes, *, stores=None, lows=None, width=10, rows=100, content=Content.DATA, at=None
):
    """Commit files that exist only as metadata: bounds of `id` are [low, low + width].

    `at` has their locations, below the table's by default.
    """
    handle, count = table.handle, len(sizes)
    lows = np.arange(count) * width if lows is None else np.asarray(lows)
    bounds = (encode(pa.array(side, pa.int64())) for side in (lows, lows + width))
    keys = pa.array(np.ones(count, dtype=np.int32))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32))
    lower, upper = (pa.MapArray.from_arrays(offsets, keys, bound) for bound in bounds)
    partition = [[] for _ in sizes]
    if stores is not None:
        partition = [[value] for value in encode(pa.array(stores, pa.int32())).to_pylist()]
    first = len(handle.snapshots)
    columns = {
        "content": pa.array([int(content)] * count, pa.int8()),
        "location": pa.array(
            at or [f"{table.location}/data/{first}-{i}.parquet" for i in range(count)]
        ),
        "file_format": pa.array(["PARQUET"] * count),
        "spec_id": pa.array([handle.view().default_spec_id] * count, pa.int32()),
        "partition": pa.array(partition, WRITTEN_FILES.field("partition").type),
        "record_count": pa.array([rows] * count, pa.int64()),
        "file_size_in_bytes": pa.array(sizes, pa.int64()),
    }
    if content is Content.DATA:
        columns |= {"lower_bounds": lower, "upper_bounds": upper}
    table_of_files = pa.table(
        [
            columns[field.name].cast(field.type)
            if field.name in columns
            else pa.nulls(count, field.type)
            for field in WRITTEN_FILES
        ],
        schema=WRITTEN_FILES,
    )
    if content is Content.DATA:
        change = Change(Operation.APPEND, added_data=table_of_files)
    else:
        change = Change(Operation.DELETE, added_deletes=table_of_files)
    Commit(change, Storage({})).run(handle)
    return table


def numbers(lake, name="t", **layout):
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("store", pa.int32())])
    return lake.create_table(f"ns.{name}", schema, **layout)
