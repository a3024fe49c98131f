"""The Avro schema of a data file (spec, Appendix A), from the Arrow schema that it stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs import avro_schema as codec
from rowlake.codecs.avro_schema import Column, ListOf, MapOf, StructOf
from rowlake.errors import InternalError
from rowlake.model.schema import children, field_id
from rowlake.model.type_names import primitive_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.codecs.avro_schema import Type


def avro_schema(schema: pa.Schema, *, expanded: bool = False) -> dict[str, Any]:
    """Return the record of a data file's rows.

    Named types are defined once, as Avro wants; `expanded`: wherever they are used.
    """
    return codec.avro_schema("table", _struct(schema), data_file=True, expanded=expanded)


def _struct(fields: Iterable[pa.Field]) -> StructOf:
    return StructOf(
        tuple(
            Column(_id(field), field.name, _type(field), required=not field.nullable)
            for field in fields
        )
    )


def _type(field: pa.Field) -> Type:
    primitive = primitive_name(field)
    if primitive is not None:
        return primitive
    below = children(field.type)
    if pa.types.is_struct(field.type):
        return _struct(below)
    if pa.types.is_map(field.type):
        key, value = below
        required = not value.nullable
        return MapOf(_id(key), _id(value), _type(value), key=_type(key), required=required)
    (element,) = below
    return ListOf(_id(element), _type(element), required=not element.nullable)


def _id(field: pa.Field) -> int:
    found = field_id(field)
    if found is None:
        raise InternalError(f"column {field.name} of a data file has no field id")
    return found
