"""Defaults that are SQL expressions -> values, once for each write.

Plain literals are read here. Anything else that is constant (`current_date()`, …) is evaluated by
Spark, all columns in one query. The values go into the schema of the view that rows are written by,
where defaults of every format are found.
"""

from __future__ import annotations

import decimal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.conditions.target_columns import target_columns
from rowlake.errors import InvalidStatementError
from rowlake.model.column_rules import DEFAULT_TEXT, default_text
from rowlake.model.schema import WRITE_DEFAULT, Schema
from rowlake.model.values import to_json
from rowlake.sqltext.lexer import Lexer, quote
from rowlake.sqltext.literals import Literal, literal_of
from rowlake.write.conform import conform

if TYPE_CHECKING:
    from collections.abc import Collection

    from rowlake.engine.spark import Engine
    from rowlake.model.view import TableView


def with_default_values(view: TableView, engine: Engine, given: Collection[str]) -> TableView:
    """Return a view whose columns have values for defaults, but for those that rows give."""
    wanted = [
        found
        for found in view.schema.arrow
        if found.name not in given and default_text(found) is not None
    ]
    if not wanted:
        return view
    values = _values(wanted, engine)
    fields = [
        _resolved(found, values[found.name]) if found.name in values else found
        for found in view.schema.arrow
    ]
    schema = Schema(pa.schema(fields), view.schema.schema_id, view.schema.identifier_field_ids)
    return replace(view, schema=schema)


def _resolved(found: pa.Field, value: pa.Scalar) -> pa.Field:
    carried = {key: one for key, one in found.metadata.items() if key != DEFAULT_TEXT}
    carried[WRITE_DEFAULT] = to_json(value, found).encode() if value.is_valid else b"null"
    return found.with_metadata(carried)


def _values(fields: list[pa.Field], engine: Engine) -> dict[str, pa.Scalar]:
    plain = {found.name: _literal(found) for found in fields}
    values = {name: value for name, value in plain.items() if value is not None}
    rest = [found for found in fields if found.name not in values]
    return values | (_evaluated(rest, engine) if rest else {})


def _literal(found: pa.Field) -> pa.Scalar | None:
    """Return the value of a literal of the column's own kind; None for what Spark must read."""
    literal = literal_of(Lexer(default_text(found) or "").all()[:-1], {})
    if literal is None or not (literal.kind == "null" or _is_of(literal, found.type)):
        return None
    value: Any = literal.value
    if pa.types.is_decimal(found.type):
        value = decimal.Decimal(str(value))
    try:
        return pa.scalar(value, found.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None


def _is_of(literal: Literal, kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_integer(kind):
        return literal.kind == "integer"
    if types.is_decimal(kind):
        return literal.kind in ("integer", "decimal")
    if types.is_floating(kind):
        return literal.kind in ("integer", "float", "double")
    expected = {
        "string": types.is_string,
        "boolean": types.is_boolean,
        "date": types.is_date32,
        "binary": types.is_binary,
    }
    return literal.kind in expected and bool(expected[literal.kind](kind))


def _evaluated(fields: list[pa.Field], engine: Engine) -> dict[str, pa.Scalar]:
    schema = Schema(pa.schema([found.remove_metadata() for found in fields]))
    columns = target_columns(engine, Schema(pa.schema(fields)))
    listed = [f"CAST({one.default} AS {one.type}) AS {quote(one.name)}" for one in columns]
    try:
        rows = engine.spark.sql(f"SELECT {', '.join(listed)}").toArrow()
    except Exception as error:
        raise InvalidStatementError(
            f"Cannot evaluate the default of {', '.join(one.name for one in columns)} "
            f"({', '.join(str(one.default) for one in columns)}): {error}"
        ) from error
    batch = conform(rows.combine_chunks().to_batches()[0], schema)
    return {name: column[0] for name, column in zip(schema.arrow.names, batch.columns, strict=True)}
