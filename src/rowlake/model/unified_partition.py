"""One partition struct for files of all specs, as metadata tables and `_partition` show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.files import files_schema
from rowlake.model.transform import partition_type

if TYPE_CHECKING:
    from rowlake.model.view import TableView


def unified_partition_type(view: TableView) -> pa.StructType:
    """Return the struct of the partition fields of all specs, by field id."""
    fields: dict[int, pa.Field] = {}
    for spec_id in sorted(view.specs):
        spec = view.specs[spec_id]
        of_spec = partition_type(spec, view.schema, view.schemas.values())
        for described, field in zip(spec.fields, of_spec, strict=True):
            if described.transform != "void" or described.field_id not in fields:
                fields[described.field_id] = field
    return pa.struct([fields[key] for key in sorted(fields)])


def in_unified_partition(
    entries: pa.Table, view: TableView, spec_id: int, unified: pa.StructType
) -> pa.Table:
    """Return entries with the partition struct of all specs; other specs' fields are null."""
    partitions = entries["partition"].combine_chunks()
    own = {field.field_id: index for index, field in enumerate(view.specs[spec_id].fields)}
    columns = []
    for field in unified:
        index = own.get(int(field.metadata[b"PARQUET:field_id"]))
        values = None if index is None else partitions.field(index)
        columns.append(
            pa.nulls(entries.num_rows, field.type) if values is None else values.cast(field.type)
        )
    struct = (
        pa.StructArray.from_arrays(columns, fields=list(unified))
        if columns
        else pa.array([{}] * entries.num_rows, unified)
    )
    layout = files_schema(unified)
    index = entries.schema.get_field_index("partition")
    return entries.set_column(index, layout.field("partition"), struct).cast(layout)
