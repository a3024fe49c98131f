"""A table's columns in Spark's types, as store assignment fits values to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rowlake.conditions.store_assignment import TargetColumn
from rowlake.model.column_rules import default_text, generated_as, identity_of
from rowlake.model.schema import WRITE_DEFAULT
from rowlake.sqltext.lexer import string_literal
from rowlake.sqltext.spark_types import type_text

if TYPE_CHECKING:
    import pyarrow as pa

    from rowlake.engine.spark import Engine
    from rowlake.model.schema import Schema


def target_columns(engine: Engine, schema: Schema) -> list[TargetColumn]:
    """Return a table's columns in Spark's types."""
    fields = _spark_fields(engine, schema.arrow)
    return [
        TargetColumn(
            field.name,
            type_text(field.dataType, field.name),
            not field.nullable,
            _default(column),
            generated_as(column) is not None or identity_of(column) is not None,
        )
        for field, column in zip(fields, schema.arrow, strict=True)
    ]


def _default(column: Any) -> str | None:
    """Return the SQL text of a column's write default."""
    expression = default_text(column)
    if expression is not None:
        return f"({expression})"
    text = (column.metadata or {}).get(WRITE_DEFAULT)
    if text is None:
        return None
    value = json.loads(text)
    if value is None:
        return None
    if isinstance(value, str):
        binary = "binary" in str(column.type)
        return f"X{string_literal(value)}" if binary else string_literal(value)
    return str(value)


def spark_types_of(engine: Engine, schema: pa.Schema) -> dict[str, str]:
    """Return Spark's type of each column."""
    fields = _spark_fields(engine, schema)
    return {field.name: type_text(field.dataType, field.name) for field in fields}


def _spark_fields(engine: Engine, schema: pa.Schema) -> Any:
    # Imports pyspark: a session exists by now.
    from rowlake.engine.types import spark_schema

    return spark_schema(schema, has_time=engine.has_time).fields
