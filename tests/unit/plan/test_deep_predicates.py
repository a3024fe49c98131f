"""Predicates that callers build one by one: long chains are planned, absurd nesting is refused."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import (
    FALSE,
    MAX_NESTING,
    TRUE,
    And,
    Leaf,
    Op,
    Or,
    Predicate,
    leaves,
    map_leaves,
    negation,
    nesting,
)
from rowlake.model.predicate_text import predicate_text
from rowlake.model.schema import Schema
from rowlake.prune.bind import bind
from rowlake.scan.filter import mask

SCHEMA = Schema(pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})]))
BATCH = pa.record_batch([pa.array(range(10), pa.int64())], schema=SCHEMA.arrow)
LONG = 20_000


def equal(number: int) -> Leaf:
    return Leaf(("id",), Op.EQ, (number,))


def chain(kind: type[And] | type[Or], count: int) -> Predicate:
    """Return (((a or b) or c) or …), as a loop builds it."""
    found: Predicate = equal(0)
    for number in range(1, count):
        found = kind((found, equal(number)))
    return found


def alternating(levels: int) -> Predicate:
    found: Predicate = equal(0)
    for level in range(levels):
        found = (And, Or)[level % 2]((equal(level), found))
    return found


@pytest.mark.parametrize("kind", [And, Or])
def test_a_long_chain_is_bound_flat(kind: type[And] | type[Or]) -> None:
    bound = bind(chain(kind, LONG), SCHEMA)
    assert isinstance(bound, kind)
    assert [part.value for part in bound.parts] == list(range(LONG))  # type: ignore[union-attr]
    assert nesting(bound) == 1


def test_leaves_and_negations_of_a_long_chain_keep_their_order() -> None:
    made = chain(Or, LONG)
    assert [leaf.value for leaf in leaves(made)] == list(range(LONG))
    negated = negation(made)
    assert isinstance(negated, And)
    assert {leaf.op for leaf in leaves(negated)} == {Op.NE}
    assert [leaf.value for leaf in leaves(negated)] == list(range(LONG))


def test_a_chain_still_selects_its_rows() -> None:
    bound = bind(chain(Or, 6), SCHEMA)
    assert mask(BATCH, bound).to_pylist() == [True] * 6 + [False] * 4
    assert predicate_text(bound).count(" or ") == 5


def test_nesting_that_cannot_be_planned_is_refused() -> None:
    for levels in (MAX_NESTING + 1, LONG):
        with pytest.raises(InvalidStatementError, match="inside one another"):
            bind(alternating(levels), SCHEMA)


def test_the_deepest_nesting_is_planned_read_and_sent_to_tasks() -> None:
    bound = bind(alternating(MAX_NESTING), SCHEMA)
    assert nesting(bound) == MAX_NESTING
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert len(mask(BATCH, bound)) == 10
    assert predicate_text(bound)


def test_what_is_always_or_never_true_stays_so() -> None:
    assert map_leaves(TRUE, lambda leaf: leaf) == TRUE
    assert map_leaves(FALSE, lambda leaf: leaf) == FALSE
    assert negation(TRUE) == FALSE
    assert negation(FALSE) == TRUE
    assert (nesting(equal(1)), nesting(TRUE), nesting(And((equal(1), And(()))))) == (0, 1, 1)
    assert map_leaves(And((equal(1), Or((equal(2), FALSE)))), lambda leaf: leaf) == And(
        (equal(1), equal(2))
    )


def test_a_list_of_many_values_is_bound_whole() -> None:
    bound = bind(Leaf(("id",), Op.IN, tuple(range(100_000))), SCHEMA)
    assert isinstance(bound, Leaf)
    assert len(bound.values) == 100_000
