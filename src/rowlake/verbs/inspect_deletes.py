"""The metadata table `position_deletes`: one row per deleted position.

Comes in: a table at a snapshot. Goes out: what its position delete files and deletion
vectors delete, with the columns of Iceberg's `PositionDeletesTable`. The deleted `row` itself is
always null: writers of today do not keep it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.files import Content, DeleteFile, files_schema
from rowlake.model.predicate import TRUE
from rowlake.model.unified_partition import in_unified_partition, unified_partition_type
from rowlake.scan.deletes import all_positions

if TYPE_CHECKING:
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

_FACTS = (
    "location",
    "file_format",
    "file_size_in_bytes",
    "record_count",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


def position_deletes(view: TableView, storage: Storage) -> pa.Table:
    """Return every position deleted at a snapshot; reads all its position delete files."""
    unified = unified_partition_type(view)
    listed = view.format.list_files(view, TRUE, storage).deletes()
    parts = [in_unified_partition(files, view, key, unified) for key, files in listed.items()]
    entries = pa.concat_tables([files_schema(unified).empty_table(), *parts])
    entries = entries.filter(pc.equal(entries["content"], int(Content.POSITION_DELETES)))
    schema = _schema(view)
    parts = [
        _rows(entries.slice(place, 1), facts, schema, storage)
        for place, facts in enumerate(entries.select(_FACTS).to_pylist())
    ]
    return pa.concat_tables([schema.empty_table(), *parts])


def _schema(view: TableView) -> pa.Schema:
    partition = unified_partition_type(view)
    fields = [
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("pos", pa.int64(), nullable=False),
        pa.field("row", pa.struct([_optional(one) for one in view.schema.arrow])),
        *([pa.field("partition", partition)] if partition.num_fields else []),
        pa.field("spec_id", pa.int32()),
        pa.field("delete_file_path", pa.string(), nullable=False),
    ]
    if view.can.deletion_vectors:
        fields += [
            pa.field("content_offset", pa.int64()),
            pa.field("content_size_in_bytes", pa.int64()),
        ]
    return pa.schema(fields)


def _optional(field: pa.Field) -> pa.Field:
    """Return a field that may be null, as those of a null row are; Arrow checks it."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_optional(one) for one in kind])
    return pa.field(field.name, kind, metadata=field.metadata)


def _rows(entry: pa.Table, facts: dict[str, Any], schema: pa.Schema, storage: Storage) -> pa.Table:
    """Return the rows of one delete file."""
    found = all_positions(DeleteFile(Content.POSITION_DELETES, **facts), storage)
    counts = [len(positions) for positions in found.values()]
    files = np.repeat(np.arange(len(counts)), counts)
    paths = pa.array(list(found), pa.string()).take(pa.array(files))
    repeated = pa.array(np.zeros(len(files), np.int64))
    columns: dict[str, Any] = {
        "file_path": paths,
        "pos": pa.array(np.concatenate([*found.values(), np.empty(0, np.int64)])),
        "row": pa.nulls(len(files), schema.field("row").type),
        "delete_file_path": entry["location"].take(repeated),
    }
    for name in schema.names:
        if name not in columns:
            columns[name] = entry[name].take(repeated)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
