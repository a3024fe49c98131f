"""PyIceberg's schemas and types <-> the model's Arrow schemas with field ids.

Comes in: schemas of table metadata, or Arrow schemas of what users hand in. Goes out: the other
form. Invariant: ids, order, nullability, comments and defaults survive both ways.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.conversions import to_json
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.schema import index_by_id

from rowlake.errors import SchemaMismatchError, UnsupportedFeatureError
from rowlake.iceberg.metadata_checks import too_deep
from rowlake.model.schema import (
    DOC,
    FIELD_ID,
    INITIAL_DEFAULT,
    MAX_NESTING,
    TYPE_NAME,
    WRITE_DEFAULT,
    Schema,
    field_id,
    type_name,
)
from rowlake.model.type_names import ARROW_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORED_AS: dict[type[iceberg.IcebergType], pa.DataType] = {
    iceberg.UUIDType: pa.binary(16),
    iceberg.GeometryType: pa.binary(),
    iceberg.GeographyType: pa.binary(),
}
_NAMED = (iceberg.UnknownType, iceberg.UUIDType, iceberg.GeometryType, iceberg.GeographyType)


FIRST_WITH_DEFAULTS = 3


def schema_from_iceberg(schema: IcebergSchema) -> Schema:
    """Return the model's form of a PyIceberg schema."""
    arrow = pa.schema([_arrow_field(field) for field in schema.fields])
    return Schema(arrow, schema.schema_id, tuple(schema.identifier_field_ids))


def _arrow_field(field: iceberg.NestedField) -> pa.Field:
    metadata = {FIELD_ID: str(field.field_id).encode()}
    if isinstance(field.field_type, _NAMED):
        metadata[TYPE_NAME] = str(field.field_type).encode()
    if field.doc:
        metadata[DOC] = field.doc.encode()
    for key, value in (
        (INITIAL_DEFAULT, field.initial_default),
        (WRITE_DEFAULT, field.write_default),
    ):
        if value is not None and isinstance(field.field_type, iceberg.PrimitiveType):
            metadata[key] = json.dumps(to_json(field.field_type, value)).encode()
    return pa.field(
        field.name, arrow_type(field.field_type), nullable=not field.required, metadata=metadata
    )


def arrow_type(found: iceberg.IcebergType) -> pa.DataType:
    """Return the Arrow type of an Iceberg type, nested fields with their ids."""
    if isinstance(found, iceberg.StructType):
        return pa.struct([_arrow_field(field) for field in found.fields])
    if isinstance(found, iceberg.ListType):
        return pa.list_(_arrow_field(found.element_field))
    if isinstance(found, iceberg.MapType):
        return pa.map_(_arrow_field(found.key_field), _arrow_field(found.value_field))
    if isinstance(found, iceberg.DecimalType):
        return pa.decimal128(found.precision, found.scale)
    if isinstance(found, iceberg.FixedType):
        return pa.binary(len(found))
    arrow = _STORED_AS.get(type(found), ARROW_TYPES.get(str(found)))
    if arrow is None:
        raise UnsupportedFeatureError(f"rowlake cannot read columns of type {found}.")
    return arrow


def _default(metadata: Mapping[bytes, bytes], key: bytes, of: iceberg.IcebergType) -> Any:
    if key not in metadata or not isinstance(of, iceberg.PrimitiveType):
        return None
    return json.loads(metadata[key])


_PLAIN = {
    pa.bool_(): iceberg.BooleanType(),
    pa.int8(): iceberg.IntegerType(),
    pa.int16(): iceberg.IntegerType(),
    pa.int32(): iceberg.IntegerType(),
    pa.uint8(): iceberg.IntegerType(),
    pa.uint16(): iceberg.IntegerType(),
    pa.int64(): iceberg.LongType(),
    pa.uint32(): iceberg.LongType(),
    pa.float16(): iceberg.FloatType(),
    pa.float32(): iceberg.FloatType(),
    pa.float64(): iceberg.DoubleType(),
    pa.date32(): iceberg.DateType(),
    pa.date64(): iceberg.TimestampType(),
    pa.string(): iceberg.StringType(),
    pa.large_string(): iceberg.StringType(),
    pa.string_view(): iceberg.StringType(),
    pa.binary(): iceberg.BinaryType(),
    pa.large_binary(): iceberg.BinaryType(),
    pa.binary_view(): iceberg.BinaryType(),
    pa.null(): iceberg.UnknownType(),
}


def schema_from_arrow(
    arrow: pa.Schema,
    *,
    nanoseconds: bool = False,
    known: Schema | None = None,
    last_id: int = 0,
) -> IcebergSchema:
    """Return an Iceberg schema for data in this Arrow schema.

    Columns of the same path as in `known` keep their ids, others get fresh ones above `last_id`.
    Nanosecond timestamps become microseconds unless `nanoseconds` (they need format version 3).
    """
    ids = {path: field_id(found) for path, found in known.walk()} if known else {}
    builder = _Builder(nanoseconds, ids, last_id)
    fields = [builder.field(found, ()) for found in arrow]
    schema_id = known.schema_id + 1 if known else 0
    return IcebergSchema(*fields, schema_id=schema_id)


def schema_from_json(schema: Mapping[str, Any]) -> IcebergSchema:
    """Return the schema of the spec's JSON form (Appendix C)."""
    try:
        return IcebergSchema.model_validate(schema)
    except RecursionError as error:
        raise SchemaMismatchError(
            f"This schema is nested too deep: {MAX_NESTING} levels are allowed."
        ) from error
    except ValueError as error:
        raise SchemaMismatchError(f"This is no schema that Iceberg can hold: {error}") from error


def type_from_json(found: Any) -> iceberg.IcebergType:
    """Return the type of the spec's JSON form (Appendix C)."""
    wrapped = {"id": 1, "name": "value", "required": False, "type": found}
    schema = schema_from_json({"type": "struct", "fields": [wrapped]})
    return schema.fields[0].field_type


def check_schema(schema: IcebergSchema, format_version: int) -> None:
    """Refuse types and defaults that a format version does not have."""
    if format_version < FIRST_WITH_DEFAULTS:
        for field in index_by_id(schema).values():
            if field.initial_default is not None or field.write_default is not None:
                raise SchemaMismatchError(
                    f"Column {field.name} has a default, and tables of format version "
                    f"{format_version} have none. Create the table with the property "
                    "'format-version' = '3'."
                )
    try:
        schema.check_format_version_compatibility(format_version)
    except ValueError as error:
        raise SchemaMismatchError(
            f"{error}. Create the table with the property 'format-version' = '3'."
        ) from error


class _Builder:
    """Gives ids to the fields of one schema, parents before children."""

    def __init__(
        self, nanoseconds: bool, ids: Mapping[tuple[str, ...], int | None], last_id: int
    ) -> None:
        self.ids = ids
        self.last_id = last_id
        self.nanoseconds = nanoseconds

    def id_for(self, path: tuple[str, ...]) -> int:
        known = self.ids.get(path)
        if known is not None:
            return known
        self.last_id += 1
        return self.last_id

    def field(self, found: pa.Field, path: tuple[str, ...]) -> iceberg.NestedField:
        path = (*path, found.name)
        if len(path) > MAX_NESTING + 1:
            raise too_deep(path)
        identity = self.id_for(path)
        metadata = found.metadata or {}
        doc = metadata.get(DOC) or metadata.get(b"comment")
        built = self.type_of(found, path)
        return iceberg.NestedField(
            field_id=identity,
            name=found.name,
            field_type=built,
            required=not found.nullable,
            doc=doc.decode() if doc else None,
            initial_default=_default(metadata, INITIAL_DEFAULT, built),
            write_default=_default(metadata, WRITE_DEFAULT, built),
        )

    def type_of(self, found: pa.Field, path: tuple[str, ...]) -> iceberg.IcebergType:
        arrow = found.type
        if isinstance(arrow, pa.BaseExtensionType):
            if arrow.extension_name == "arrow.uuid":
                return iceberg.UUIDType()
            arrow = arrow.storage_type
        if pa.types.is_dictionary(arrow):
            arrow = arrow.value_type
        if type_name(found) == "uuid":
            return iceberg.UUIDType()
        nested = self.nested(arrow, path)
        return nested if nested is not None else self.primitive(arrow, path)

    def nested(self, arrow: pa.DataType, path: tuple[str, ...]) -> iceberg.IcebergType | None:
        if pa.types.is_struct(arrow):
            return iceberg.StructType(*[self.field(child, path) for child in arrow])
        if pa.types.is_map(arrow):
            key = self.field(arrow.key_field, path)
            value = self.field(arrow.item_field, path)
            return iceberg.MapType(
                key_id=key.field_id,
                key_type=key.field_type,
                value_id=value.field_id,
                value_type=value.field_type,
                value_required=value.required,
            )
        if (
            pa.types.is_list(arrow)
            or pa.types.is_large_list(arrow)
            or pa.types.is_fixed_size_list(arrow)
        ):
            element = self.field(arrow.value_field, path)
            return iceberg.ListType(
                element_id=element.field_id,
                element_type=element.field_type,
                element_required=element.required,
            )
        return None

    def primitive(self, arrow: pa.DataType, path: tuple[str, ...]) -> iceberg.IcebergType:
        if arrow in _PLAIN:
            return _PLAIN[arrow]
        if pa.types.is_timestamp(arrow):
            return self.timestamp(arrow)
        if pa.types.is_time(arrow):
            return iceberg.TimeType()
        if pa.types.is_decimal(arrow):
            return iceberg.DecimalType(arrow.precision, arrow.scale)
        if pa.types.is_fixed_size_binary(arrow):
            return iceberg.FixedType(arrow.byte_width)
        name = ".".join(path)
        raise SchemaMismatchError(
            f"Column {name} has the type {arrow}, which Iceberg tables cannot hold. "
            "Cast it before writing.",
            column=name,
        )

    def timestamp(self, arrow: Any) -> iceberg.IcebergType:
        if arrow.unit == "ns" and self.nanoseconds:
            return iceberg.TimestamptzNanoType() if arrow.tz else iceberg.TimestampNanoType()
        return iceberg.TimestamptzType() if arrow.tz else iceberg.TimestampType()
