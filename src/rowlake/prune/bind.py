"""Predicates bound to a schema: names become field ids, literals become values of the column.

Comes in: a predicate as a statement or a caller wrote it. Goes out: one that selects the same
rows, with field ids, literals of exactly the column's type, and neither NaN nor null literals.
Nothing is rounded: a literal between two values of the column becomes the nearer of them with
the comparison adjusted, one outside of its range makes the test always or never true.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError, shown
from rowlake.model.predicate import (
    FALSE,
    MAX_NESTING,
    TRUE,
    Leaf,
    Op,
    Predicate,
    conjunction,
    disjunction,
    map_leaves,
    nesting,
)
from rowlake.model.schema import Schema, field_id
from rowlake.prune.fact_sources import fields_outside_lists
from rowlake.prune.literals import Placed, place, place_all
from rowlake.prune.transformed import projected

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNARY = (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN)
_PREFIX = (Op.STARTS_WITH, Op.NOT_STARTS_WITH)


def bind(predicate: Predicate, schema: Schema, *, case_sensitive: bool = False) -> Predicate:
    """Return the predicate with field ids and literals of the columns' types.

    Raises `InvalidStatementError` for an unknown or ambiguous column, for a literal that cannot be
    compared exactly with its column, and where ANDs and ORs are nested too deep.
    """
    if nesting(predicate) > MAX_NESTING:
        raise InvalidStatementError(
            f"Cannot filter by a condition with more than {MAX_NESTING} ANDs and ORs inside one "
            "another. Write it with fewer brackets, or put its values into a table and join it."
        )
    testable = fields_outside_lists(schema)

    def bound(leaf: Leaf) -> Predicate:
        column = _column(leaf, schema, case_sensitive)
        if field_id(column) not in testable:
            raise InvalidStatementError(
                f"Cannot filter by {_dotted(leaf.path)}: it is inside a list or a map."
            )
        found = replace(leaf, field_id=field_id(column))
        return _bound_parts(projected(found, column), column)

    return map_leaves(predicate, bound)


def _bound_parts(predicate: Predicate, column: pa.Field) -> Predicate:
    """Bind the tests of one column; those of a transform have literals of its type already."""
    return map_leaves(
        predicate, lambda leaf: leaf if leaf.transform is not None else _bound(leaf, column)
    )


def resolve(path: tuple[str, ...], schema: Schema, *, case_sensitive: bool = False) -> pa.Field:
    """Return the field that a path of names means; an exact match wins over others.

    Raises `InvalidStatementError` where there is none, or several that differ only in case.
    """
    exact = schema.find(path, case_sensitive=True)
    if exact is not None:
        return exact
    wanted = _lowered(path)
    alike = [found for found, _ in schema.walk() if _lowered(found) == wanted]
    if case_sensitive or not alike:
        raise _unknown(path, schema)
    if len(alike) > 1:
        names = shown(_dotted(found) for found in alike)
        raise InvalidStatementError(f"Column {_dotted(path)} is ambiguous: it may be {names}.")
    return schema.find(alike[0], case_sensitive=True)


def _lowered(path: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in path)


def _dotted(path: Iterable[str]) -> str:
    return ".".join(path)


def _unknown(path: tuple[str, ...], schema: Schema) -> InvalidStatementError:
    names = {_dotted(found).lower(): _dotted(found) for found, _ in schema.walk()}
    near = difflib.get_close_matches(_dotted(path).lower(), names, n=3, cutoff=0.5)
    hint = f"Did you mean {shown(names[name] for name in near)}?" if near else ""
    columns = hint or f"The columns are {shown(schema.arrow.names)}."
    return InvalidStatementError(f"There is no column {_dotted(path)}. {columns}")


def _column(leaf: Leaf, schema: Schema, case_sensitive: bool) -> pa.Field:
    """Return the leaf's column, by its id where it is bound already."""
    if leaf.field_id in schema.by_id:
        return schema.by_id[leaf.field_id]
    return resolve(leaf.path, schema, case_sensitive=case_sensitive)


def _bound(leaf: Leaf, column: pa.Field) -> Predicate:
    if leaf.op in (Op.IS_NAN, Op.NOT_NAN) and not pa.types.is_floating(column.type):
        return FALSE if leaf.op is Op.IS_NAN else TRUE
    if leaf.op in _UNARY:
        return leaf
    if pa.types.is_nested(column.type):
        raise InvalidStatementError(
            f"Cannot compare column {_dotted(leaf.path)} of type {column.type} with a value."
        )
    if leaf.op in _PREFIX:
        return _bound_prefix(leaf, column)
    if leaf.op in (Op.IN, Op.NOT_IN):
        return _bound_set(leaf, column)
    return FALSE if leaf.value is None else _bound_comparison(leaf, column)


def _bound_prefix(leaf: Leaf, column: pa.Field) -> Predicate:
    text = leaf.value
    if text is None:
        return FALSE
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InvalidStatementError(
            f"Cannot test the start of column {_dotted(leaf.path)} of type {column.type}: "
            f"it is not text."
        )
    return replace(leaf, values=(place(text, column).value,))


def _bound_set(leaf: Leaf, column: pa.Field) -> Predicate:
    """Keep the values that the column can hold; NaN becomes a test of its own."""
    if leaf.op is Op.NOT_IN and None in leaf.values:
        return FALSE
    if not leaf.values:
        return FALSE if leaf.op is Op.IN else TRUE
    exact, has_nan = place_all([value for value in leaf.values if value is not None], column)
    if leaf.op is Op.IN:
        parts = [_one_of(leaf, exact)] if exact else []
        parts += [replace(leaf, op=Op.IS_NAN, values=())] if has_nan else []
        return disjunction(*parts)
    parts = [_one_of(leaf, exact)] if exact else []
    parts += [_is_number(leaf)] if has_nan else []
    return conjunction(*parts) if parts else replace(leaf, op=Op.NOT_NULL, values=())


def _one_of(leaf: Leaf, values: tuple[Any, ...]) -> Leaf:
    if len(values) > 1:
        return replace(leaf, values=values)
    return replace(leaf, op=Op.EQ if leaf.op is Op.IN else Op.NE, values=values)


def _bound_comparison(leaf: Leaf, column: pa.Field) -> Predicate:
    placed = place(leaf.value, column)
    if placed.is_nan:
        return _compared_with_nan(leaf)
    if placed.is_exact:
        return replace(leaf, values=(placed.value,))
    return _compared_between(leaf, placed)


def _compared_with_nan(leaf: Leaf) -> Predicate:
    """NaN equals NaN and is above all else, as in Spark."""
    if leaf.op is Op.GT:
        return FALSE
    if leaf.op is Op.LE:
        return replace(leaf, op=Op.NOT_NULL, values=())
    if leaf.op in (Op.EQ, Op.GE):
        return replace(leaf, op=Op.IS_NAN, values=())
    return _is_number(leaf)


def _is_number(leaf: Leaf) -> Leaf:
    """Return a test that only nulls and NaNs fail."""
    return replace(leaf, op=Op.LE, values=(math.inf,))


def _compared_between(leaf: Leaf, placed: Placed) -> Predicate:
    """Compare with the column's values on both sides of a literal that it cannot hold."""
    if leaf.op is Op.EQ:
        return FALSE
    if leaf.op in (Op.LT, Op.LE):
        if placed.below is None:
            return FALSE
        return replace(leaf, op=Op.LE, values=(placed.below,))
    if leaf.op in (Op.GT, Op.GE):
        if placed.above is None:
            return FALSE
        return replace(leaf, op=Op.GE, values=(placed.above,))
    return replace(leaf, op=Op.NOT_NULL, values=())
