"""Binding: names, and literals that a column can or cannot hold."""

import datetime as dt
import math
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import FALSE, TRUE, And, Leaf, Op, Or, conjunction, leaves
from rowlake.prune.bind import bind, resolve
from tests.plan_kit import column, leaf_holds, schema_of

UTC = dt.timezone.utc
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
SCHEMA = schema_of(
    column("i", pa.int32(), 1),
    column("l", pa.int64(), 2),
    column("f", pa.float32(), 3),
    column("d", pa.float64(), 4),
    column("dec", pa.decimal128(5, 2), 5),
    column("wide", pa.decimal128(38, 2), 6),
    column("s", pa.string(), 7),
    column("date", pa.date32(), 8),
    column("ts", pa.timestamp("us"), 9),
    column("tz", pa.timestamp("us", "UTC"), 10),
    column("ns", pa.timestamp("ns"), 11),
    column("u", pa.binary(16), 12, type="uuid"),
    column("bin", pa.binary(), 13),
    column("flag", pa.bool_(), 14),
    column("time", pa.time64("us"), 15),
    column("n", pa.struct([column("x", pa.int32(), 17), column("y", pa.string(), 18)]), 16),
    column("list", pa.list_(column("element", pa.int32(), 20)), 19),
)


def bound(name, op, *values):
    return bind(Leaf(tuple(name.split(".")), op, values), SCHEMA)


def test_names_become_ids_whatever_their_case():
    assert bound("I", Op.EQ, 3) == Leaf(("I",), Op.EQ, (3,), 1)
    assert bound("n.X", Op.IS_NULL) == Leaf(("n", "X"), Op.IS_NULL, (), 17)


def test_binding_twice_changes_nothing():
    once = conjunction(bound("f", Op.GT, 0.1), bound("dec", Op.LT, 1.005), bound("ns", Op.NOT_NULL))
    assert bind(once, SCHEMA) == once


def test_a_bound_leaf_follows_its_column_through_a_rename():
    renamed = schema_of(column("renamed", pa.int32(), 1))
    assert next(leaves(bind(bound("i", Op.EQ, 3), renamed))).field_id == 1


def test_unknown_columns_are_named_with_near_ones():
    with pytest.raises(InvalidStatementError, match=r"no column dat\. Did you mean date"):
        bound("dat", Op.IS_NULL)
    with pytest.raises(InvalidStatementError, match="The columns are i, l, f and 14 more"):
        bound("zzzzzzzz", Op.IS_NULL)
    with pytest.raises(InvalidStatementError, match="no column I"):
        bind(Leaf(("I",), Op.IS_NULL), SCHEMA, case_sensitive=True)


def test_names_that_differ_only_in_case_are_ambiguous_unless_exact():
    schema = schema_of(column("aB", pa.int32(), 1), column("Ab", pa.int32(), 2))
    assert resolve(("Ab",), schema) == schema.by_id[2]
    with pytest.raises(InvalidStatementError, match="ambiguous: it may be aB, Ab"):
        resolve(("ab",), schema)


@pytest.mark.parametrize(
    ("name", "op", "value", "expected"),
    [
        ("i", Op.EQ, 5.0, (Op.EQ, 5)),
        ("i", Op.EQ, 5.5, FALSE),
        ("i", Op.NE, 5.5, (Op.NOT_NULL,)),
        ("i", Op.LT, 5.5, (Op.LE, 5)),
        ("i", Op.GE, Decimal("5.5"), (Op.GE, 6)),
        ("i", Op.GT, -5.5, (Op.GE, -5)),
        ("i", Op.EQ, INT_MAX + 1, FALSE),
        ("i", Op.LT, INT_MAX + 1, (Op.LE, INT_MAX)),
        ("i", Op.GT, INT_MAX + 1, FALSE),
        ("i", Op.GT, -(2**40), (Op.GE, -INT_MAX - 1)),
        ("i", Op.LT, math.nan, (Op.LE, INT_MAX)),
        ("i", Op.GE, math.inf, FALSE),
        ("l", Op.EQ, np.int32(4), (Op.EQ, 4)),
        ("l", Op.LE, 1e300, (Op.LE, LONG_MAX)),
        ("d", Op.EQ, 2**53 + 1, (Op.EQ, 2.0**53)),
        ("d", Op.EQ, Decimal("0.1"), (Op.EQ, 0.1)),
        ("d", Op.LT, 10**400, (Op.LT, math.inf)),
        ("d", Op.GE, math.nan, (Op.IS_NAN,)),
        ("d", Op.GT, math.nan, FALSE),
        ("d", Op.LE, math.nan, (Op.NOT_NULL,)),
        ("f", Op.EQ, 0.5, (Op.EQ, 0.5)),
        ("f", Op.EQ, 0.1, FALSE),
        ("f", Op.LT, 0.1, (Op.LE, float(np.nextafter(np.float32(0.1), np.float32(0))))),
        ("f", Op.GT, 0.1, (Op.GE, float(np.float32(0.1)))),
        ("f", Op.EQ, 16_777_217, (Op.EQ, 16_777_216.0)),
        ("f", Op.LT, 1e300, (Op.LE, float(np.finfo(np.float32).max))),
        ("dec", Op.EQ, 3, (Op.EQ, Decimal("3.00"))),
        ("dec", Op.EQ, Decimal("3.001"), FALSE),
        ("dec", Op.LT, Decimal("3.001"), (Op.LE, Decimal("3.00"))),
        ("dec", Op.GT, 1000, FALSE),
        ("dec", Op.LE, 1000, (Op.LE, Decimal("999.99"))),
        ("dec", Op.EQ, 0.1, (Op.EQ, Decimal("0.10"))),
        ("dec", Op.GT, 0.105, (Op.GE, Decimal("0.11"))),
        ("wide", Op.LT, 1e300, (Op.LE, Decimal("9" * 36 + ".99"))),
        ("date", Op.EQ, "2024-02-29", (Op.EQ, dt.date(2024, 2, 29))),
        ("ts", Op.EQ, dt.date(2024, 2, 29), (Op.EQ, dt.datetime(2024, 2, 29))),
        ("ts", Op.GT, np.datetime64(1, "ns"), (Op.GE, dt.datetime(1970, 1, 1, 0, 0, 0, 1))),
        ("tz", Op.EQ, "2024-01-01T01:00:00+01:00", (Op.EQ, dt.datetime(2024, 1, 1, tzinfo=UTC))),
        ("ns", Op.EQ, np.datetime64(1, "ns"), (Op.EQ, np.datetime64(1, "ns"))),
        ("ns", Op.GT, dt.datetime(3000, 1, 1), FALSE),
        ("u", Op.EQ, str(uuid.UUID(int=7)), (Op.EQ, uuid.UUID(int=7).bytes)),
        ("bin", Op.EQ, bytearray(b"x"), (Op.EQ, b"x")),
        ("s", Op.STARTS_WITH, "ab", (Op.STARTS_WITH, "ab")),
        ("i", Op.IS_NAN, None, FALSE),
        ("i", Op.NOT_NAN, None, TRUE),
    ],
)
def test_literals_take_the_columns_type_exactly(name, op, value, expected):
    values = () if op in (Op.IS_NAN, Op.NOT_NAN) else (value,)
    found = bound(name, op, *values)
    if isinstance(expected, tuple):
        assert isinstance(found, Leaf)
        assert (found.op, *found.values) == expected
    else:
        assert found == expected


def test_comparisons_with_nan_become_tests_for_nan():
    for op in (Op.LT, Op.NE, Op.NOT_IN):
        assert bound("d", op, math.nan) == bound("d", Op.LE, math.inf)
    assert [leaf.op for leaf in leaves(bound("d", Op.IN, 1, math.nan))] == [Op.EQ, Op.IS_NAN]


def test_lists_keep_what_the_column_can_hold():
    assert bound("i", Op.IN, 1, 2.0, 1, 2.5, 2**40, None).values == (1, 2)
    assert bound("i", Op.IN, 2.5, 2**40) == FALSE
    assert bound("i", Op.NOT_IN, 2.5).op is Op.NOT_NULL
    assert bound("i", Op.NOT_IN, 1, None) == FALSE
    assert bound("i", Op.IN) == FALSE
    assert bound("i", Op.NOT_IN) == TRUE
    assert bound("i", Op.EQ, None) == FALSE


@pytest.mark.parametrize(
    ("name", "op", "value"),
    [
        ("i", Op.EQ, "5"),
        ("i", Op.EQ, True),
        ("l", Op.EQ, 2.0**60),
        ("wide", Op.EQ, 0.1),
        ("s", Op.EQ, 5),
        ("date", Op.EQ, dt.datetime(2024, 1, 1)),
        ("date", Op.EQ, "yesterday"),
        ("ts", Op.EQ, dt.datetime(2024, 1, 1, tzinfo=UTC)),
        ("tz", Op.EQ, dt.datetime(2024, 1, 1)),
        ("u", Op.EQ, "not a uuid"),
        ("flag", Op.EQ, 1),
        ("i", Op.STARTS_WITH, "a"),
        ("n", Op.EQ, 1),
        ("list.element", Op.EQ, 1),
    ],
)
def test_literals_that_do_not_fit_are_refused(name, op, value):
    with pytest.raises(InvalidStatementError, match="Cannot"):
        bound(name, op, value)


NUMBERS = st.sampled_from(
    [0, 1, -1, 0.5, -0.5, 1e-9, 0.1, 1.005, math.inf, -math.inf, math.nan, 2**31, -(2**31) - 1]
) | st.decimals(-2, 2, places=3)
COMPARISONS = st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE])
HELD = {
    "i": st.integers(-2, 2) | st.sampled_from([INT_MAX, -INT_MAX - 1]),
    "dec": st.decimals(-2, 2, places=2) | st.just(Decimal("999.99")),
    "f": st.sampled_from([0.0, 0.5, -0.5, float(np.float32(0.1)), math.inf, math.nan]),
    "d": st.sampled_from([0.0, 0.5, 0.1, 1.005, math.inf, -math.inf, math.nan]),
}


def truth(predicate, value):
    if isinstance(predicate, And):
        return all(truth(part, value) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(truth(part, value) for part in predicate.parts)
    return leaf_holds(predicate, value)


def as_spark_compares(name, literal, value):
    """Return both sides as Spark casts them before it compares."""
    if isinstance(literal, float) or name in ("f", "d"):
        return float(literal), float(value)
    return literal, value


@pytest.mark.parametrize("name", list(HELD))
@given(data=st.data(), op=COMPARISONS, literal=NUMBERS)
def test_bound_comparisons_select_the_same_rows(name, data, op, literal):
    value = data.draw(st.none() | HELD[name])
    found = truth(bound(name, op, literal), value)
    if value is None:
        assert not found
        return
    other, mine = as_spark_compares(name, literal, value)
    assert found == leaf_holds(Leaf((name,), op, (other,)), mine)
