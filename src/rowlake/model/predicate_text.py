"""Predicates as people read them, near to SQL: for plans and messages, never parsed back."""

from __future__ import annotations

from typing import Any

from rowlake.model.predicate import FALSE, TRUE, And, Leaf, Op, Predicate

_SHOWN_VALUES = 5


def predicate_text(predicate: Predicate) -> str:
    """Return a predicate as text."""
    if predicate in (TRUE, FALSE):
        return "true" if predicate == TRUE else "false"
    if isinstance(predicate, Leaf):
        return _leaf_text(predicate)
    word = " and " if isinstance(predicate, And) else " or "
    return word.join(
        predicate_text(part) if isinstance(part, Leaf) else f"({predicate_text(part)})"
        for part in predicate.parts
    )


def _leaf_text(leaf: Leaf) -> str:
    column = ".".join(leaf.path)
    if leaf.transform is not None:
        column = f"{leaf.transform}({column})"
    if not leaf.values:
        return f"{column} {leaf.op.value}"
    if leaf.op in (Op.IN, Op.NOT_IN):
        named = ", ".join(map(_value_text, leaf.values[:_SHOWN_VALUES]))
        rest = len(leaf.values) - _SHOWN_VALUES
        return f"{column} {leaf.op.value} ({named}{f', and {rest:,} more' if rest > 0 else ''})"
    return f"{column} {leaf.op.value} {_value_text(leaf.value)}"


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    return "'" + text.replace("'", "''") + "'" if isinstance(value, str) else text
