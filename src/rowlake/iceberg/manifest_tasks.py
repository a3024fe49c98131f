"""Manifests read by tasks of an engine, for tables that have many.

Comes in: rows of a manifest list (`MANIFESTS`). Goes out: tasks for `read_manifest_task`, and from
what they yield the parsed manifests, one by one, as the cache of the driver keeps them. Partitions
travel encoded, so that manifests of all specs fit one layout.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.iceberg.manifest_reader import REMOTE_THREADS, read_by_spec, selected
from rowlake.model.files import ENCODED_PARTITION, files_schema
from rowlake.model.values import decode_partitions, encode_partitions
from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PLACE = "manifest"  # the column that tells which manifest an entry is of


@dataclass(frozen=True)
class ManifestTask:
    """Some manifests to read in one task; `first` is the place of the first one among all."""

    manifests: pa.Table
    first: int
    partition_types: Mapping[int, pa.StructType]
    columns: tuple[str, ...] | None = None
    io_properties: Mapping[str, str] = field(default_factory=dict)

    __repr__ = redacted_repr


def manifest_tasks(
    manifests: pa.Table,
    partition_types: Mapping[int, pa.StructType],
    io_properties: Mapping[str, str],
    *,
    columns: tuple[str, ...] | None,
    tasks: int,
) -> list[ManifestTask]:
    """Return a bounded number of tasks of about equal bytes, manifests in their order."""
    sizes = manifests["manifest_length"].to_numpy()
    ends = np.cumsum(sizes)
    shares = np.minimum((ends - sizes) * tasks // max(int(sizes.sum()), 1), tasks - 1)
    starts = np.flatnonzero(np.diff(shares, prepend=-1)).tolist()
    return [
        ManifestTask(
            manifests.slice(start, end - start),
            start,
            partition_types,
            columns,
            dict(io_properties),
        )
        for start, end in zip(starts, [*starts[1:], len(sizes)], strict=True)
    ]


def task_schema(columns: Sequence[str] | None = None) -> pa.Schema:
    """Return what `read_manifest_task` yields."""
    layout = selected(files_schema(ENCODED_PARTITION), columns)
    return layout.append(pa.field(PLACE, pa.int32(), nullable=False))


def read_manifest_task(task: ManifestTask) -> Iterator[pa.RecordBatch]:
    """Read the manifests of one task: all their entries, the deleted ones too."""
    storage = Storage(task.io_properties)
    layout = task_schema(task.columns)

    def read(place: int) -> pa.Table:
        one = task.manifests.slice(place, 1)
        found = read_by_spec(
            one, task.partition_types, storage, columns=task.columns, live_only=False
        )
        (entries,) = found.values()
        return _travelling(entries, task.first + place, layout)

    with ThreadPoolExecutor(REMOTE_THREADS) as pool:
        tables = list(pool.map(read, range(task.manifests.num_rows)))
    yield from pa.concat_tables(tables).combine_chunks().to_batches(max_chunksize=65_536)


def _travelling(entries: pa.Table, place: int, layout: pa.Schema) -> pa.Table:
    if "partition" in entries.column_names:
        index = entries.schema.get_field_index("partition")
        encoded = encode_partitions(entries["partition"])
        entries = entries.set_column(index, layout.field("partition"), encoded)
    places = pa.array(np.full(entries.num_rows, place, np.int32))
    return entries.append_column(layout.field(PLACE), places).cast(layout)


def entries_by_place(
    found: pa.Table, spec_ids: Sequence[int], partition_types: Mapping[int, pa.StructType]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the place and the entries of each manifest, partitions in their own types.

    `spec_ids` has the spec of the manifest at each place; manifests without entries come too.
    """
    ordered = found.take(pc.sort_indices(found[PLACE])).combine_chunks()
    bounds = np.searchsorted(ordered[PLACE].to_numpy(), np.arange(len(spec_ids) + 1))
    entries = ordered.drop_columns([PLACE])
    index = entries.schema.get_field_index("partition")
    for place, spec_id in enumerate(spec_ids):
        start, end = int(bounds[place]), int(bounds[place + 1])
        own = entries.slice(start, end - start)
        if index >= 0:
            of = partition_types[spec_id]
            native = decode_partitions(own["partition"].combine_chunks(), of)
            own = own.set_column(index, pa.field("partition", of), native)
        yield place, own
