"""What users give as the schema of a new table -> an Arrow, PyIceberg or JSON schema.

Taken as it is: a pyarrow schema, a PyIceberg schema, the spec's JSON. Read here: the schema of
another table, a Spark StructType, frames (Spark, pandas, polars, pyarrow), a dict of names and
types, the columns of a CREATE TABLE. Types are told apart by what they offer, so that none of these
libraries is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.table_schema import FieldType, TableField, TableSchema
from rowlake.sqltext.cursor import Cursor
from rowlake.sqltext.default_values import literal_defaults
from rowlake.sqltext.schema_json import schema_json
from rowlake.sqltext.spark_types import columns_of
from rowlake.sqltext.types import Field, parse_type, take_field_rest


def schema_of(given: Any) -> Any:
    """Return a schema as a table definition takes it; what is none passes, to be refused there."""
    if isinstance(given, str):
        columns = _columns_in(given)
        return schema_json(columns, literal_defaults(columns))
    if isinstance(given, Mapping):
        return given if _is_json(given) else _of_names(given)
    if isinstance(given, TableSchema):
        return _of_table(given)
    if isinstance(given, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return given.schema
    if hasattr(given, "jsonValue"):
        return schema_json(_of_struct_type(given.jsonValue()))
    if hasattr(given, "mapInArrow"):  # a DataFrame of Spark, whose columns may all be null
        return schema_json(columns_of(given.schema.jsonValue()))
    if hasattr(given, "iloc"):
        return pa.Schema.from_pandas(given, preserve_index=False).remove_metadata()
    if hasattr(given, "to_arrow"):
        return schema_of(given.to_arrow())
    return given


def _is_json(given: Mapping[str, Any]) -> bool:
    return given.get("type") == "struct" and isinstance(given.get("fields"), (list, tuple))


def _of_table(given: TableSchema) -> dict[str, Any]:
    """Return the schema of a table as the spec's JSON ("Schemas and Data Types")."""
    return {
        "type": "struct",
        "identifier-field-ids": list(given.identifier_field_ids),
        "fields": [_field_json(one) for one in given.fields],
    }


def _field_json(one: TableField) -> dict[str, Any]:
    doc = {"doc": one.doc} if one.doc else {}
    kind = _type_json(one.field_type)
    return {"id": one.field_id, "name": one.name, "required": one.required, "type": kind, **doc}


def _type_json(kind: FieldType) -> Any:
    if kind.name == "struct":
        return {"type": "struct", "fields": [_field_json(one) for one in kind.fields]}
    if not kind.fields:
        return kind.name
    names = ("key", "value") if kind.name == "map" else ("element",)
    found: dict[str, Any] = {"type": kind.name}
    for name, one in zip(names, kind.fields, strict=True):
        found |= {f"{name}-id": one.field_id, name: _type_json(one.field_type)}
        if name != "key":
            found[f"{name}-required"] = one.required
    return found


def _columns_in(text: str) -> tuple[Field, ...]:
    """Read `id BIGINT NOT NULL, name STRING`, the columns of a CREATE TABLE."""
    cursor = Cursor(text)
    bracketed = cursor.accept_symbol("(")
    columns = [take_field_rest(cursor, cursor.name("the name of a column"))]
    while cursor.accept_symbol(","):
        columns.append(take_field_rest(cursor, cursor.name("the name of a column")))
    if bracketed:
        cursor.expect_symbol(")")
    cursor.expect_end()
    return tuple(columns)


def _of_names(given: Mapping[str, Any]) -> Any:
    kinds = list(given.values())
    if kinds and all(isinstance(kind, pa.DataType) for kind in kinds):
        return pa.schema(list(given.items()))
    if not kinds or not all(isinstance(kind, str) for kind in kinds):
        raise InvalidStatementError(
            "A schema as a dict has the names of the columns and their types, as SQL texts or as "
            "pyarrow types: {'id': 'bigint', 'name': 'string'}."
        )
    return schema_json(tuple(Field(str(name), parse_type(kind)) for name, kind in given.items()))


def _of_struct_type(found: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the columns of a StructType; those that it says are never null are required."""
    nullable = [each.get("nullable", True) for each in found["fields"]]
    columns = columns_of(dict(found))
    return tuple(
        replace(column, required=not may_be_null)
        for column, may_be_null in zip(columns, nullable, strict=True)
    )
