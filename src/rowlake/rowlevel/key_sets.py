"""A predicate of key equality -> the keys that equality deletes list.

Comes in: a bound predicate of `=`, IN, IS NULL, AND and OR. Goes out: key sets, each some columns
and the tuples of values to delete; a row goes where any set has its values. Null in a tuple means
IS NULL: null equals null in an equality delete (spec, "Equality Delete Files"). Anything else in
the predicate is refused: such rows cannot be named without reading the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import Leaf, Op, Or
from rowlake.write.equality_deletes import validate_key_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema

MOST_KEYS = 1_000_000

# The keys of some columns (ascending ids), each a tuple of values in that order.
_Found = dict[tuple[int, ...], set[tuple[Any, ...]]]


@dataclass(frozen=True)
class KeySet:
    """Columns by field id, and their values: one array each, all of one length."""

    field_ids: tuple[int, ...]
    columns: dict[int, pa.Array]


def key_sets(predicate: Predicate, schema: Schema) -> list[KeySet]:
    """Return the keys of a predicate; none where no row can match."""
    found = _keys_of(predicate, schema)
    return [_key_set(ids, rows, schema) for ids, rows in found.items() if rows]


def _keys_of(predicate: Predicate, schema: Schema) -> _Found:
    if isinstance(predicate, Leaf):
        return _of_leaf(predicate, schema)
    parts = [_keys_of(part, schema) for part in predicate.parts]
    if isinstance(predicate, Or):
        return _united(parts)
    return _joined(parts)


def _of_leaf(leaf: Leaf, schema: Schema) -> _Found:
    is_key = leaf.op in (Op.EQ, Op.IN, Op.IS_NULL) and leaf.transform is None
    if not is_key or leaf.field_id is None:
        raise InvalidStatementError(
            f"Cannot delete with deletes='equality': {'.'.join(leaf.path)} {leaf.op.value} … needs "
            "a look at the rows. Equality deletes take =, IN, IS NULL, AND and OR alone; leave "
            "deletes out for any other condition."
        )
    validate_key_column(schema, leaf.field_id)
    if leaf.op is not Op.IS_NULL:
        return {(leaf.field_id,): {(value,) for value in leaf.values}}
    may_be_null = schema.by_id[leaf.field_id].nullable or len(schema.paths[leaf.field_id]) > 1
    return {(leaf.field_id,): {(None,)} if may_be_null else set()}


def _united(parts: Iterable[_Found]) -> _Found:
    united: _Found = {}
    for part in parts:
        for ids, rows in part.items():
            united.setdefault(ids, set()).update(rows)
    return _bounded(united)


def _joined(parts: Iterable[_Found]) -> _Found:
    """Return the keys that every part has, over the columns of all parts together."""
    joined: _Found | None = None
    for part in parts:
        joined = part if joined is None else _both(joined, part)
    if joined is None:
        raise InvalidStatementError(
            "Cannot delete every row with deletes='equality': truncate() removes all rows."
        )
    return joined


def _both(left: _Found, right: _Found) -> _Found:
    both: _Found = {}
    for (ids, rows), (other_ids, others) in product(left.items(), right.items()):
        if ids == other_ids:
            both.setdefault(ids, set()).update(rows & others)
            continue
        _validate_count(len(rows) * len(others))
        wanted = tuple(sorted({*ids, *other_ids}))
        shared = set(ids) & set(other_ids)
        for row, other in product(rows, others):
            first, second = (
                dict(zip(ids, row, strict=True)),
                dict(zip(other_ids, other, strict=True)),
            )
            if all(first[each] == second[each] for each in shared):
                values = first | second
                both.setdefault(wanted, set()).add(tuple(values[each] for each in wanted))
    return _bounded(both)


def _bounded(found: _Found) -> _Found:
    _validate_count(sum(map(len, found.values())))
    return found


def _validate_count(count: int) -> None:
    if count > MOST_KEYS:
        raise InvalidStatementError(
            f"Cannot delete with deletes='equality': the condition names {count:,} keys, more than "
            f"{MOST_KEYS:,}. Use fewer values, or leave deletes out."
        )


def _key_set(ids: tuple[int, ...], rows: set[tuple[Any, ...]], schema: Schema) -> KeySet:
    columns = {
        each: pa.array(list(values), schema.by_id[each].type)
        for each, values in zip(ids, zip(*rows, strict=True), strict=True)
    }
    return KeySet(ids, columns)
