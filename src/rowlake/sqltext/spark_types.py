"""Spark's types, in the JSON form that a DataFrame's schema gives, as the tree of statements."""

from __future__ import annotations

from typing import Any

from rowlake.errors import InvalidStatementError, SchemaMismatchError
from rowlake.sqltext.types import Field, List, Map, Struct, Type, ddl_text, parse_type


def columns_of(schema: dict[str, Any]) -> tuple[Field, ...]:
    """Return the columns of a `StructType.jsonValue()`, all nullable, as CTAS makes them."""
    return tuple(_field(found) for found in schema["fields"])


def _field(found: dict[str, Any]) -> Field:
    comment = (found.get("metadata") or {}).get("comment")
    return Field(found["name"], spark_type(found["type"], found["name"]), comment=comment)


def type_text(data_type: Any, name: str) -> str:
    """Return the text of a DataFrame's type that Spark reads back, odd field names too."""
    text = str(data_type.simpleString())
    return text if "<" not in text else ddl_text(spark_type(data_type.jsonValue(), name))


def spark_type(found: Any, name: str) -> Type:
    """Return the tree of one type."""
    if isinstance(found, str):
        try:
            return parse_type(found)
        except InvalidStatementError as unknown:
            raise SchemaMismatchError(
                f"Iceberg has no type for column {name}, which is {found}. Cast it in the query.",
                column=name,
            ) from unknown
    kind = found["type"]
    if kind == "struct":
        return Struct(columns_of(found))
    if kind == "array":
        return List(spark_type(found["elementType"], name))
    if kind == "map":
        return Map(spark_type(found["keyType"], name), spark_type(found["valueType"], name))
    raise SchemaMismatchError(f"Iceberg has no type for column {name}.", column=name)
