"""Columns, values and conditions of random tables, with SQL's meaning in plain Python.

A row maps the test's own numbers of columns to values, so that it outlives renamed columns; a
column that was added later has its default in rows that lack it.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.model.predicate import And, Leaf, Op, Or, negation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from rowlake.model.predicate import Predicate

Row = dict[int, Any]

FLOATS = (0.0, -0.0, 1.5, -2.25, math.nan, math.inf)
DAYS = (dt.date(1969, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 1, 2))
STRUCT = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])
KINDS: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "int": (pa.int32(), (0, 1, 2, 3, 4, -1, 2**31 - 1)),
    "long": (pa.int64(), (0, 1, 2, 3, 4, -1, 2**40)),
    "float": (pa.float32(), FLOATS),
    "double": (pa.float64(), (*FLOATS, 0.1)),
    "string": (pa.string(), ("", "a", "b", "ab", "ä", "it's", "a\U0001f600")),
    "date": (pa.date32(), DAYS),
    "decimal": (pa.decimal128(9, 2), tuple(map(Decimal, ("0.00", "1.50", "-2.25", "9999999.99")))),
    "wide decimal": (pa.decimal128(12, 2), tuple(map(Decimal, ("0.00", "1.50", "9999999999.99")))),
    "boolean": (pa.bool_(), (True, False)),
    "struct": (STRUCT, ({"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": None, "b": None})),
    "list": (pa.list_(pa.int32()), ([], [1], [1, None])),
}
NESTED = ("struct", "list")
INEXACT = ("float", "double")
KEYS = ("int", "long", "string", "date", "decimal", "wide decimal", "boolean")
PROMOTED = {"int": "long", "float": "double", "decimal": "wide decimal"}

COMPARED = (Op.EQ, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN, Op.NOT_IN)
UNARY = (Op.IS_NULL, Op.NOT_NULL)


@dataclass(frozen=True)
class Column:
    """A column: the test's number of it, and what it is called now."""

    key: int
    name: str
    kind: str
    default: Any = None

    @property
    def arrow(self) -> pa.DataType:
        return KINDS[self.kind][0]

    def of(self, row: Row) -> Any:
        return row.get(self.key, self.default)

    def draw(self, random: Random, nulls: float = 0.15) -> Any:
        return None if random.random() < nulls else random.choice(KINDS[self.kind][1])


def draw_row(random: Random, columns: Sequence[Column], nulls: float = 0.15) -> Row:
    return {column.key: column.draw(random, nulls) for column in columns}


def as_arrow(rows: Sequence[Row], columns: Sequence[Column]) -> pa.Table:
    return pa.table(
        [pa.array([c.of(row) for row in rows], c.arrow) for c in columns],
        names=[column.name for column in columns],
    )


def as_tuples(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """Return rows as sorted texts; NaN is the same as NaN there, and -0.0 is not 0.0."""
    return sorted(repr(tuple(column.of(row) for column in columns)) for row in rows)


def read_tuples(found: pa.Table) -> list[str]:
    columns = [column.to_pylist() for column in found.columns]
    return sorted(map(repr, zip(*columns, strict=True)))


# --- conditions


def draw_condition(
    random: Random,
    columns: Sequence[Column],
    *,
    ops: Callable[[Column], Sequence[Op]] | None = None,
    depth: int = 2,
) -> Predicate:
    """Return a random condition on columns that are one value each."""
    if depth and random.random() < 0.45:
        parts = [
            draw_condition(random, columns, ops=ops, depth=depth - 1)
            for _ in range(random.choice((2, 2, 3)))
        ]
        return random.choice((And, Or))(tuple(parts))
    column = random.choice(columns)
    leaf = _leaf(random, column, random.choice((ops or ops_of)(column)))
    return negation(leaf) if ops is None and random.random() < 0.2 else leaf


def ops_of(column: Column) -> Sequence[Op]:
    if column.kind in INEXACT:
        return (*COMPARED, *UNARY, Op.IS_NAN)
    if column.kind == "string":
        return (*COMPARED, *UNARY, Op.STARTS_WITH)
    return (Op.EQ, Op.NE, *UNARY) if column.kind == "boolean" else (*COMPARED, *UNARY)


def key_ops(column: Column) -> Sequence[Op]:
    """Return the tests that equality deletes can make."""
    return (Op.EQ, Op.EQ, Op.IN, Op.IS_NULL)


def _leaf(random: Random, column: Column, op: Op) -> Leaf:
    pool = KINDS[column.kind][1]
    if op in (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN):
        return Leaf((column.name,), op)
    if op in (Op.IN, Op.NOT_IN):
        return Leaf((column.name,), op, tuple(random.sample(pool, min(len(pool), 2))))
    return Leaf((column.name,), op, (random.choice(pool),))


def holds(predicate: Predicate | None, values: Mapping[str, Any]) -> bool:
    """Tell whether a condition is TRUE for a row (names to values)."""
    return predicate is None or _truth(predicate, values) is True


def _truth(predicate: Predicate, values: Mapping[str, Any]) -> bool | None:
    if isinstance(predicate, Leaf):
        return _leaf_truth(predicate, values[predicate.path[0]])
    parts = [_truth(part, values) for part in predicate.parts]
    final = isinstance(predicate, Or)
    if final in parts:
        return final
    return None if None in parts else not final


def _leaf_truth(leaf: Leaf, value: Any) -> bool | None:
    op = leaf.op
    if op in UNARY:
        return (value is None) == (op is Op.IS_NULL)
    if op in (Op.IS_NAN, Op.NOT_NAN):
        return (value is not None and math.isnan(value)) == (op is Op.IS_NAN)
    if value is None:
        return None
    own, others = ordered(value), [ordered(each) for each in leaf.values]
    tests = {
        Op.EQ: lambda: own == others[0],
        Op.NE: lambda: own != others[0],
        Op.LT: lambda: own < others[0],
        Op.LE: lambda: own <= others[0],
        Op.GT: lambda: own > others[0],
        Op.GE: lambda: own >= others[0],
        Op.IN: lambda: own in others,
        Op.NOT_IN: lambda: own not in others,
        Op.STARTS_WITH: lambda: value.startswith(leaf.value),
        Op.NOT_STARTS_WITH: lambda: not value.startswith(leaf.value),
    }
    return tests[op]()


def ordered(value: Any) -> Any:
    """Return what stands for a value in comparisons: NaN is one value, larger than any other."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same, nulls and NaN included."""
    if one is None or other is None:
        return one is other
    return ordered(one) == ordered(other)


# --- as texts of SQL


def sql_name(name: str) -> str:
    return f"`{name}`"


def sql_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, dt.date):
        return f"DATE'{value}'"
    if isinstance(value, float):
        return f"double('{value}')"
    if isinstance(value, Decimal):
        return f"{value}BD"
    return f"{value}L" if isinstance(value, int) and abs(value) >= 2**31 else str(value)


def sql_condition(predicate: Predicate, qualifier: str = "") -> str:
    if isinstance(predicate, Leaf):
        return _sql_leaf(predicate, f"{qualifier}{sql_name(predicate.path[0])}")
    word = " AND " if isinstance(predicate, And) else " OR "
    return "(" + word.join(sql_condition(part, qualifier) for part in predicate.parts) + ")"


def _sql_leaf(leaf: Leaf, name: str) -> str:
    if leaf.op in UNARY:
        return f"{name} {leaf.op.value.upper()}"
    if leaf.op in (Op.IS_NAN, Op.NOT_NAN):
        return f"{'NOT ' if leaf.op is Op.NOT_NAN else ''}isnan({name})"
    if leaf.op in (Op.IN, Op.NOT_IN):
        return f"{name} {leaf.op.value.upper()} ({', '.join(map(sql_value, leaf.values))})"
    if leaf.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        negated = "NOT " if leaf.op is Op.NOT_STARTS_WITH else ""
        return f"{negated}startswith({name}, {sql_value(leaf.value)})"
    return f"{name} {leaf.op.value} {sql_value(leaf.value)}"
