"""Default values: the text of an SQL expression to a Python value of a column's type, and to JSON.

Literals are read by `rowlake.sqltext.default_values`; any other constant expression is evaluated by
Spark once, as the statement that defines it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.query.refusals import told_plainly
from rowlake.sqltext.default_values import ZONED, coerced, json_value, literal_in, with_defaults
from rowlake.sqltext.literals import Literal
from rowlake.sqltext.types import Field, Primitive, Type, spark_text

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name

_TEXTUAL = ("uuid", "time", "timestamp_ns", "timestamptz_ns")


def defaults_of(lake: Lake, columns: tuple[Field, ...]) -> dict[Name, Any]:
    """Return the defaults of columns by path, in the spec's JSON single-value form (Appendix D)."""
    found = {}
    for path, field in with_defaults(columns):
        value = default_value(lake, field.default or "NULL", field.type)
        found[path] = None if value is None else json_value(value, field.type)
    return found


def default_value(lake: Lake, text: str, kind: Type) -> Any:
    """Return the value of an expression as a Python value of a type; None for NULL."""
    literal = literal_in(text, kind)
    if not isinstance(kind, Primitive) or (literal is not None and literal.kind == "null"):
        return None
    zone = "UTC" if literal is None else None
    if literal is None:
        spark_kind = spark_text(kind) if kind.name not in _TEXTUAL else "string"
        question = f"SELECT CAST(CAST({text} AS {spark_kind}) AS STRING)"
        with told_plainly(lake.workspace, question, moved=True):
            row = lake.spark.sql(question).collect()[0]
        if row[0] is None:
            return None
        literal = Literal("string", row[0])
        zone = lake.spark.conf.get("spark.sql.session.timeZone")
    elif kind.name in ZONED:
        zone = lake.spark.conf.get("spark.sql.session.timeZone")
    return coerced(literal, kind.name, text, zone)
