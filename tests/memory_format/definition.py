"""What users ask of a table -> schemas with field ids, partition specs, sort orders."""

from __future__ import annotations

import itertools
import re
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.errors import InvalidStatementError, SchemaMismatchError
from rowlake.model.handle import MAIN
from rowlake.model.partition import (
    PartitionBy,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
)
from rowlake.model.schema import DOC, FIELD_ID, TYPE_NAME, Schema, field_id
from rowlake.model.transform import result_type
from tests.memory_format.state import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.model.metadata_change import TableDefinition
    from rowlake.model.partition import OrderBy

FIRST_PARTITION_ID = 1000
FORMAT_VERSION = "format-version"
_CALL = re.compile(r"(\w+)\((?:(\d+)\s*,\s*)?([\w.]+)(?:\s*,\s*(\d+))?\)")
_TRANSFORMS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}
_SUFFIXES = {"identity": "", "truncate": "_trunc"}
_STORED = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
}


def new_table(wanted: TableDefinition, location: str) -> MemoryTable:
    """Return a table without rows, which no store has yet."""
    properties = wanted.all_properties
    schema, last_column_id = schema_of(wanted.schema)
    order = sort_order(wanted.sort_by, schema, 1)
    empty = MemoryTable(
        uuid=str(uuid.uuid4()),
        location=(wanted.location or location).rstrip("/"),
        flavour=int(properties.pop(FORMAT_VERSION, "2")),
        schemas={0: schema},
        schema_id=0,
        specs={0: PartitionSpec(0, partition_fields(wanted.partition_by, schema, {}))},
        default_spec_id=0,
        sort_orders={0: SortOrder(0), order.order_id: order},
        default_sort_order_id=order.order_id,
        properties=properties,
        last_column_id=last_column_id,
        last_updated_ms=0,
    )
    return empty.touched()


def redefined(table: MemoryTable, wanted: TableDefinition) -> MemoryTable:
    """Return a table with a new definition and no rows on main; its history stays."""
    properties = wanted.all_properties
    flavour = max(int(properties.pop(FORMAT_VERSION, table.flavour)), table.flavour)
    schema, last_id = schema_of(wanted.schema, table.schema, table.last_column_id)
    schema = replace(schema, schema_id=max(table.schemas) + 1)
    known = {one.arrow: one for one in table.schemas.values()}
    schema = known.get(schema.arrow, schema)
    fields = partition_fields(wanted.partition_by, schema, partition_ids(table))
    spec = _known_or_new(table.specs, fields, PartitionSpec)
    order = _known_or_new(
        table.sort_orders, sort_order(wanted.sort_by, schema, 1).fields, SortOrder
    )
    return replace(
        table,
        flavour=flavour,
        schemas={**table.schemas, schema.schema_id: schema},
        schema_id=schema.schema_id,
        specs={**table.specs, spec.spec_id: spec},
        default_spec_id=spec.spec_id,
        sort_orders={**table.sort_orders, order.order_id: order},
        default_sort_order_id=order.order_id,
        properties={**table.properties, **properties},
        last_column_id=max(last_id, table.last_column_id),
        refs={name: ref for name, ref in table.refs.items() if name != MAIN},
    )


def _known_or_new(known: Mapping, fields: tuple, make: type):
    found = next((one for one in known.values() if one.fields == fields), None)
    return found or make(max(known) + 1, fields)


def schema_of(
    given: pa.Schema, known: Schema | None = None, last_id: int = 0
) -> tuple[Schema, int]:
    """Return a schema with ids: those of known columns of the same path, else new ones."""
    if not isinstance(given, pa.Schema):
        raise InvalidStatementError(f"A {type(given).__name__} is no schema: give a pyarrow one.")
    ids = {path: field_id(found) for path, found in known.walk()} if known else {}
    numbers = itertools.count(last_id + 1)
    arrow = pa.schema([_with_ids(one, (), ids, numbers) for one in given])
    schema = Schema(arrow)
    return schema, max([last_id, *schema.by_id])


def _with_ids(
    found: pa.Field, above: tuple[str, ...], ids: Mapping, numbers: Iterator[int]
) -> pa.Field:
    path = (*above, found.name)
    if isinstance(found.type, pa.BaseExtensionType):
        named = {**(found.metadata or {}), TYPE_NAME: b"uuid"}
        found = pa.field(found.name, found.type.storage_type, found.nullable, named)
    number = ids.get(path) or next(numbers)
    metadata = {key: value for key, value in (found.metadata or {}).items() if key != b"comment"}
    if b"comment" in (found.metadata or {}):
        metadata[DOC] = found.metadata[b"comment"]
    metadata[FIELD_ID] = str(number).encode()

    def below(child: pa.Field) -> pa.Field:
        return _with_ids(child, path, ids, numbers)

    return pa.field(found.name, _stored(found.type, below), found.nullable, metadata)


def _stored(kind: pa.DataType, below) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([below(child) for child in kind])
    if pa.types.is_map(kind):
        key, value = kind.key_field.with_name("key"), kind.item_field.with_name("value")
        return pa.map_(below(key), below(value))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(below(kind.value_field.with_name("element")))
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type, below)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_uint64(kind):
        raise SchemaMismatchError(f"Tables cannot hold {kind}.", column="")
    return _STORED.get(kind, kind)


def partition_ids(table: MemoryTable) -> dict[tuple[int, str], int]:
    """Return the ids of partition fields that a table has or had, by source and transform."""
    return {
        (field.source_id, field.transform): field.field_id
        for spec in table.specs.values()
        for field in spec.fields
    }


def partition_fields(
    wanted: Sequence[str | PartitionBy], schema: Schema, ids: Mapping[tuple[int, str], int]
) -> tuple[PartitionField, ...]:
    """Return partition fields; those that a table knows keep their ids."""
    numbers = itertools.count(max([FIRST_PARTITION_ID - 1, *ids.values()]) + 1)
    made = []
    for item in map(_partition_by, wanted):
        source = _source(schema, item.column)
        result_type(item.transform, schema.by_id[source].type)
        number = ids.get((source, item.transform)) or next(numbers)
        kind = item.transform.partition("[")[0]
        name = item.name or ".".join(schema.paths[source]) + _SUFFIXES.get(kind, f"_{kind}")
        made.append(PartitionField(source, number, item.transform, name))
    return tuple(made)


def _partition_by(text: str | PartitionBy) -> PartitionBy:
    if isinstance(text, PartitionBy):
        return text
    call = _CALL.fullmatch(text.strip())
    if call is None:
        return PartitionBy(tuple(text.split(".")))
    name, before, column, after = call.groups()
    transform = _TRANSFORMS.get(name, name)
    width = before or after
    return PartitionBy(tuple(column.split(".")), f"{transform}[{width}]" if width else transform)


def sort_order(wanted: Sequence[OrderBy], schema: Schema, order_id: int) -> SortOrder:
    """Return a sort order; no keys means unsorted (order 0)."""
    fields = tuple(
        SortField(_source(schema, one.column), one.transform, one.ascending, one.nulls_first)
        for one in wanted
    )
    return SortOrder(order_id if fields else 0, fields)


def _source(schema: Schema, path: tuple[str, ...]) -> int:
    found = schema.find(path)
    number = None if found is None else field_id(found)
    if number is None:
        raise InvalidStatementError(f"There is no column {'.'.join(path)}.")
    return number
