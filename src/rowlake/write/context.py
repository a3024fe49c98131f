"""How a task writes: decided once in the driver, shipped to every task.

Comes in: a `TableView` and what the operation wants. Goes out: a frozen, picklable
`WriteContext`, with every table property already read and checked, so that a wrong one fails
before any file is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.file_layout import DEFAULT_LAYOUT
from rowlake.model.files import Content
from rowlake.model.properties import whole_number
from rowlake.model.schema import FIELD_ID, Schema, children, field_id, type_name
from rowlake.model.task import (
    LAST_UPDATED_COLUMN,
    LAST_UPDATED_COLUMN_ID,
    PAGE_ROWS,
    ROW_ID_COLUMN,
    ROW_ID_COLUMN_ID,
)
from rowlake.secrets import redacted_repr
from rowlake.write.key_index import index_keys
from rowlake.write.locations import DataLocations, data_locations
from rowlake.write.metrics_modes import TRUNCATE_16, MetricsMode, metrics_modes
from rowlake.write.properties import (
    AVRO_CODECS,
    MB,
    OrcOptions,
    ParquetOptions,
    orc_options,
    parquet_options,
    parse_choice,
    parse_flag,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.file_layout import FileLayout
    from rowlake.model.partition import PartitionSpec, SortField, SortOrder
    from rowlake.model.row_rules import RowRule
    from rowlake.model.view import TableView
    from rowlake.write.key_index import IndexKeys

FORMATS = {"parquet": "PARQUET", "orc": "ORC", "avro": "AVRO"}
LINEAGE = (
    (ROW_ID_COLUMN, ROW_ID_COLUMN_ID),
    (LAST_UPDATED_COLUMN, LAST_UPDATED_COLUMN_ID),
)


@dataclass(frozen=True)
class WriteContext:
    """What all the tasks of one write share.

    - `schema`: the columns of the files, in order; input is conformed to it;
    - `sort`: keys to sort the input by before writing (each file comes out sorted);
      `sort_order_id` is what files report, also where the engine has sorted;
    - `fanout`: keep a file open for every partition; without it input is expected clustered by
      partition, and a partition that comes back opens another file;
    - `buffer_size_in_bytes`: how much fan-out and sorting may hold in memory;
    - `task_number`: the first part of file names, for people;
    - `index`: the keys of which data files get an index, where they do.
    """

    table: str
    operation_id: str
    locations: DataLocations
    schema: Schema
    spec: PartitionSpec
    metrics: Mapping[int, MetricsMode]
    file_format: str = "PARQUET"
    parquet: ParquetOptions = field(default_factory=ParquetOptions)
    orc: OrcOptions = field(default_factory=OrcOptions)
    avro_codec: str = "deflate"
    target_file_size_in_bytes: int = 512 * MB
    sort: tuple[SortField, ...] = ()
    sort_order_id: int | None = None
    fanout: bool = True
    open_files: int = 200
    buffer_size_in_bytes: int = 512 * MB
    content: Content = Content.DATA
    equality_ids: tuple[int, ...] = ()
    io_properties: Mapping[str, str] = field(default_factory=dict)
    task_number: int = 0
    layout: FileLayout = DEFAULT_LAYOUT
    rules: tuple[RowRule, ...] = ()
    index: IndexKeys | None = None

    __repr__ = redacted_repr


def write_context(
    view: TableView,
    *,
    operation_id: str,
    spec_id: int | None = None,
    sort: str = "none",
    fanout: bool | None = None,
    row_lineage: bool = False,
    properties: Mapping[str, str] | None = None,
) -> WriteContext:
    """Return how to write data files of a table.

    - `spec_id`: a spec of the table other than the default one;
    - `sort`: `none`; `local` (each task sorts what it writes by the table's order); or `given`
      (the input comes sorted by it already);
    - `fanout`: by default as `write.spark.fanout.enabled` says, else True;
    - `row_lineage`: files also hold `_row_id` and `_last_updated_sequence_number` (null means
      inherited), for rewrites of v3 tables;
    - `properties`: win over the table's.
    """
    merged = {**view.write_properties, **(properties or {})}
    index = index_keys(view, merged)
    if index is not None:  # rows are fetched one by one
        merged.setdefault("write.parquet.page-row-limit", str(PAGE_ROWS))
    schema = _with_lineage(view) if row_lineage else view.schema
    _validate_types(schema)
    order = view.sort_orders.get(view.default_sort_order_id)
    return WriteContext(
        table=view.name,
        operation_id=operation_id,
        locations=data_locations(view.location, merged),
        schema=schema,
        spec=_spec_of(view, spec_id),
        metrics=metrics_modes(merged, schema, order),
        file_format=parse_choice(merged, "write.format.default", FORMATS, "parquet"),
        parquet=parquet_options(merged),
        orc=orc_options(merged),
        avro_codec=_avro_codec(merged),
        target_file_size_in_bytes=whole_number(
            merged, "write.target-file-size-bytes", 512 * MB, least=1
        ),
        sort=order.fields if order and sort == "local" else (),
        sort_order_id=_reported_order(order, sort),
        fanout=parse_flag(merged, "write.spark.fanout.enabled", default=True)
        if fanout is None
        else fanout,
        io_properties=dict(view.io_properties),
        layout=view.layout,
        rules=view.rules,
        index=index,
    )


def equality_delete_context(
    view: TableView,
    field_ids: tuple[int, ...],
    *,
    operation_id: str,
    spec: PartitionSpec | None = None,
) -> WriteContext:
    """Return how to write equality delete files on these columns, in the default spec or another.

    The files hold these columns alone, so partition columns must be among them. Bounds of them
    are kept whatever the table's properties say: planning finds out by them where deletes apply.
    """
    schema = key_schema(view.schema, field_ids)
    merged = dict(view.properties)
    default = merged.get("write.format.default", "parquet")
    modes = metrics_modes(merged, schema, None)
    return WriteContext(
        table=view.name,
        operation_id=operation_id,
        locations=data_locations(view.location, merged),
        schema=schema,
        spec=view.spec if spec is None else spec,
        metrics={leaf: mode if mode.bounds else TRUNCATE_16 for leaf, mode in modes.items()},
        file_format=parse_choice(merged, "write.delete.format.default", FORMATS, default),
        parquet=parquet_options(merged, deletes=True),
        orc=orc_options(merged, deletes=True),
        avro_codec=_avro_codec(merged),
        target_file_size_in_bytes=whole_number(
            merged, "write.delete.target-file-size-bytes", 64 * MB, least=1
        ),
        content=Content.EQUALITY_DELETES,
        equality_ids=field_ids,
        io_properties=dict(view.io_properties),
    )


def key_schema(schema: Schema, field_ids: tuple[int, ...]) -> Schema:
    """Return the columns with these ids alone; of structs only the parts that are asked for.

    These parts may be null: where a struct is null, so is each key in it.
    """
    wanted = frozenset(field_ids)
    found = [_restricted(field, wanted) for field in schema.arrow]
    return Schema(pa.schema([field for field in found if field is not None]), schema.schema_id)


def _restricted(found: pa.Field, wanted: frozenset[int]) -> pa.Field | None:
    if field_id(found) in wanted or not pa.types.is_struct(found.type):
        return found if field_id(found) in wanted else None
    below = [_restricted(child, wanted) for child in children(found.type)]
    kept = [child for child in below if child is not None]
    optional = [child.with_nullable(True) for child in kept]
    return found.with_type(pa.struct(optional)) if kept else None


def _spec_of(view: TableView, spec_id: int | None) -> PartitionSpec:
    if spec_id is None:
        return view.spec
    if spec_id not in view.specs:
        known = ", ".join(str(each) for each in sorted(view.specs))
        raise InvalidStatementError(f"{view.name} has no partition spec {spec_id}, only {known}.")
    return view.specs[spec_id]


def _reported_order(order: SortOrder | None, sort: str) -> int | None:
    if sort not in ("none", "local", "given"):
        raise InvalidStatementError(f"Unknown sort {sort!r}: expected none, local or given.")
    return order.order_id if order and order.fields and sort != "none" else 0


def _avro_codec(properties: Mapping[str, str]) -> str:
    return parse_choice(properties, "write.avro.compression-codec", AVRO_CODECS, "gzip")


def _with_lineage(view: TableView) -> Schema:
    if not view.can.row_ids:
        raise UnsupportedFeatureError(
            f"Cannot write row ids to {view.name}: format version {view.format_version} has none."
        )
    arrow = view.schema.arrow
    for name, identity in LINEAGE:
        arrow = arrow.append(
            pa.field(name, pa.int64(), metadata={FIELD_ID: str(identity).encode()})
        )
    return Schema(arrow, view.schema.schema_id, view.schema.identifier_field_ids)


def _validate_types(schema: Schema) -> None:
    for path, found in schema.walk():
        name = type_name(found) or ""
        if name.partition("(")[0] in ("variant", "geometry", "geography"):
            raise UnsupportedFeatureError(
                f"Cannot write column {'.'.join(path)}: rowlake does not write {name} values."
            )
        if pa.types.is_null(found.type) and len(path) > 1:
            raise UnsupportedFeatureError(
                f"Cannot write column {'.'.join(path)}: a nested column of unknown type."
            )


def is_stored(found: pa.Field, layout: FileLayout) -> bool:
    """Return whether files hold a top-level column: not one of unknown type."""
    return not pa.types.is_null(found.type) and field_id(found) not in layout.unstored


def stored_schema(schema: Schema, layout: FileLayout = DEFAULT_LAYOUT) -> pa.Schema:
    """Return the Arrow schema of data files: ids only, uuids typed, names as files have them."""
    names = layout.stored_names
    return pa.schema(
        [_stored_field(found, names) for found in schema.arrow if is_stored(found, layout)]
    )


def _stored_field(found: pa.Field, names: Mapping[int, str]) -> pa.Field:
    metadata = {FIELD_ID: found.metadata[FIELD_ID]}
    name = names.get(int(found.metadata[FIELD_ID]), found.name)
    return pa.field(name, _stored_type(found, names), found.nullable, metadata)


def _stored_type(found: pa.Field, names: Mapping[int, str]) -> pa.DataType:
    if type_name(found) == "uuid":
        return pa.uuid()
    below = [_stored_field(child, names) for child in children(found.type)]
    if pa.types.is_struct(found.type):
        return pa.struct(below)
    if pa.types.is_map(found.type):
        return pa.map_(*below)
    return pa.list_(below[0]) if below else found.type
