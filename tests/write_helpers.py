"""Tables to write to, without a catalog: views, contexts, and what comes back."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.iceberg.capabilities import capabilities_of
from rowlake.iceberg.format import ICEBERG
from rowlake.model.partition import PartitionField, PartitionSpec, SortOrder
from rowlake.model.schema import FIELD_ID, TYPE_NAME, Schema
from rowlake.model.view import TableView
from rowlake.write.context import WriteContext, write_context
from rowlake.write.kernel import write_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

UNSORTED = SortOrder(0)


def column(
    name: str, arrow: pa.DataType, identity: int, *, required: bool = False, **metadata: str
) -> pa.Field:
    extra = {TYPE_NAME: metadata["type"].encode()} if "type" in metadata else {}
    extra |= {
        f"rowlake:{key.replace('_', '-')}".encode(): value.encode()
        for key, value in metadata.items()
        if key != "type"
    }
    found = {FIELD_ID: str(identity).encode(), **extra}
    return pa.field(name, arrow, nullable=not required, metadata=found)


def spec_of(*fields: tuple[int, str, str]) -> PartitionSpec:
    return PartitionSpec(
        1 if fields else 0,
        tuple(
            PartitionField(source, 1000 + place, transform, name)
            for place, (source, transform, name) in enumerate(fields)
        ),
    )


def view_of(
    location: Path | str,
    fields: list[pa.Field],
    *,
    spec: PartitionSpec | None = None,
    order: SortOrder = UNSORTED,
    properties: Mapping[str, str] | None = None,
    format_version: int = 2,
) -> TableView:
    schema = Schema(pa.schema(fields))
    used = spec or spec_of()
    return TableView(
        name="db.t",
        uuid="00000000-0000-0000-0000-000000000000",
        location=str(location),
        format_version=format_version,
        schema=schema,
        schemas={0: schema},
        specs={used.spec_id: used},
        default_spec_id=used.spec_id,
        sort_orders={0: UNSORTED, order.order_id: order},
        default_sort_order_id=order.order_id,
        properties=properties or {},
        snapshot=None,
        format=ICEBERG,
        can=capabilities_of(format_version),
    )


def context_of(view: TableView, **options: Any) -> WriteContext:
    known = {"spec_id", "sort", "fanout", "row_lineage", "properties"}
    given = {key: value for key, value in options.items() if key in known}
    changed = {key: value for key, value in options.items() if key not in known}
    context = write_context(view, operation_id="op", **given)
    return dataclasses.replace(context, **changed)


def write(context: WriteContext, batches: Iterable[pa.RecordBatch] | pa.Table) -> pa.Table:
    found = batches.to_batches() if isinstance(batches, pa.Table) else batches
    return pa.Table.from_batches(list(write_batches(context, iter(found))), schema=_schema())


def _schema() -> pa.Schema:
    from rowlake.model.files import WRITTEN_FILES

    return WRITTEN_FILES
