"""Values that Spark evaluates for row-level statements: their types, and the constant ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.dml.assigned_columns import stored_text
from rowlake.model.schema import Schema
from rowlake.query.run import run_query
from rowlake.sqltext.lexer import Lexer, quote
from rowlake.sqltext.literals import Literal, literal_of
from rowlake.sqltext.spark_types import type_text
from rowlake.write.conform import conform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlake.dml.assigned_columns import Assigned
    from rowlake.dml.join_sides import Sides
    from rowlake.dml.target import RowTarget


def spark_types(texts: Sequence[str], run: Callable[[list[str]], Any]) -> dict[str, str]:
    """Return Spark's type of each text; `run` makes the DataFrame of a SELECT list."""
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    frame = run([f"{text} AS {quote(f'__{at}')}" for at, text in enumerate(distinct)])
    return {
        text: type_text(field.dataType, text)
        for text, field in zip(distinct, frame.schema.fields, strict=True)
    }


def constants_of(
    target: RowTarget, found: Sequence[Assigned], sides: Sides
) -> dict[str, pa.Array] | None:
    """Return the value that each column gets in all rows, as an array of one value.

    None where a value is not constant. Spark's errors pass through; they are errors only where some
    row gets the value (`is_sparks`).
    """
    if not all(each.plain is not None and sides.is_constant(each.plain) for each in found):
        return None
    if not found:
        return {}
    literals = None if target.engine.has_session else _literals(target, found)
    return _evaluated(target, found) if literals is None else literals


def _literals(target: RowTarget, found: Sequence[Assigned]) -> dict[str, pa.Array] | None:
    """Return values that need no Spark: literals of the columns' own types, and null.

    None where one is anything else: what Spark's rules of assignment say is left to Spark.
    """
    values: dict[str, pa.Array] = {}
    for each in found:
        field = target.view.schema.arrow.field(each.column.name)
        literal = literal_of(Lexer(each.plain or "").all()[:-1], {})
        if literal is None or not _is_of_type(literal, field):
            return None
        values[each.column.name] = pa.array([literal.value], field.type)
    return values


def _is_of_type(literal: Literal, field: pa.Field) -> bool:
    kind = field.type
    if literal.kind == "null":
        return bool(field.nullable)
    if literal.kind == "string":
        return bool(kind in (pa.string(), pa.large_string()))
    if literal.kind == "integer":
        bits = {pa.int32(): 31, pa.int64(): 63}.get(kind, 0)
        return bool(-(2**bits) <= literal.value < 2**bits) if bits else False
    wanted = {"boolean": pa.bool_(), "date": pa.date32()}.get(literal.kind)
    return bool(wanted is not None and kind == wanted)


def is_sparks(error: Exception) -> bool:
    """Return whether an error came of Spark's evaluating a value."""
    return type(error).__module__.startswith("pyspark.errors")


def _evaluated(target: RowTarget, found: Sequence[Assigned]) -> dict[str, pa.Array]:

    def run(listed: list[str]) -> Any:
        return run_query(target.lookup, f"SELECT {', '.join(listed)}")

    types = spark_types([text for each in found for text in each.texts], run)
    texts = [f"{stored_text(each, types, target)} AS {quote(each.column.name)}" for each in found]
    fields = [target.view.schema.arrow.field(each.column.name) for each in found]
    rows = run(texts).toArrow().combine_chunks().to_batches()[0]
    batch = conform(rows, Schema(pa.schema(fields)))
    return dict(zip(batch.schema.names, batch.columns, strict=True))
