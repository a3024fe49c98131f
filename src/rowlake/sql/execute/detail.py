"""DESCRIBE DETAIL: a table in one row, with the columns that Delta gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.history_rows import TEXTS, time_of
from rowlake.plan.files import plan_files
from rowlake.secrets import redacted, without_passwords
from rowlake.sql.tables import need_table

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sql import statements as s

_TIME = pa.timestamp("us", "UTC")
_NAMES = pa.list_(pa.string())
DETAIL = pa.schema(
    [
        ("format", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("location", pa.string()),
        ("createdAt", _TIME),
        ("lastModified", _TIME),
        ("partitionColumns", _NAMES),
        ("clusteringColumns", _NAMES),
        ("numFiles", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("properties", TEXTS),
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("tableFeatures", _NAMES),
    ]
)


def describe_detail(lake: Lake, statement: s.DescribeDetail) -> pa.Table:
    """DESCRIBE DETAIL: format, id, name, location, times, layout, size, properties, protocol."""
    table = need_table(lake, statement.name)
    handle = table.handle
    view = handle.view()
    plan = plan_files(view, None, handle.storage, runner=lake.engine)
    row = {
        "format": table.format,
        "id": handle.uuid,
        "name": table.name,
        "description": handle.properties.get("comment"),
        "location": without_passwords(handle.location),
        "lastModified": time_of(handle.last_updated_ms),
        "partitionColumns": [str(one) for one in table.spec.fields],
        "clusteringColumns": [],
        "numFiles": plan.file_count,
        "sizeInBytes": plan.size_in_bytes,
        "properties": list(redacted(handle.properties).items()),
        **handle.details,
    }
    created = row.pop("createdAt", None)
    row["createdAt"] = None if created is None else time_of(created)
    return pa.Table.from_pylist([row], DETAIL)
