"""Pruning against a plain reading of the rows: never a matching row lost, never one too many."""

import datetime as dt
import math
import os
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.model.predicate import Leaf, Op, conjunction, disjunction, negation
from rowlake.prune.bind import bind
from rowlake.prune.match import manifests_may_match, matching_files, may_match, must_match
from tests.plan_kit import (
    by_partition,
    column,
    entries_of,
    holds,
    manifests_of,
    schema_of,
    spec_of,
)

EXAMPLES = int(os.environ.get("ROWLAKE_EXAMPLES", "12"))
UTC = dt.timezone.utc
COMPARISONS = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]
SETS = [Op.IN, Op.NOT_IN]
UNARY = [Op.IS_NULL, Op.NOT_NULL]
NAN = [Op.IS_NAN, Op.NOT_NAN]
PREFIX = [Op.STARTS_WITH, Op.NOT_STARTS_WITH]
TEXT = st.text(alphabet="ab\x7fé\ud7ff\uffff😀\U0010ffff", max_size=5)
NAIVE = st.datetimes(dt.datetime(1968, 11, 1), dt.datetime(1971, 2, 1))

TYPES = {
    "int": (pa.int32(), st.integers(-5, 5) | st.sampled_from([-(2**31), 2**31 - 1])),
    "long": (pa.int64(), st.integers(-30, 30) | st.sampled_from([-(2**63), 2**63 - 1])),
    "double": (
        pa.float64(),
        st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.5, 2.5, math.inf, math.nan]),
    ),
    "float": (pa.float32(), st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.5, math.nan])),
    "decimal": (
        pa.decimal128(6, 2),
        st.decimals(-3, 3, places=2, allow_nan=False, allow_infinity=False)
        | st.sampled_from([Decimal("9999.99"), Decimal("-9999.98")]),
    ),
    "string": (pa.string(), TEXT),
    "binary": (pa.binary(), st.binary(max_size=4) | st.just(b"\xff\xff\xff\xff")),
    "fixed": (pa.binary(2), st.binary(min_size=2, max_size=2)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates(dt.date(1968, 11, 1), dt.date(1971, 2, 1))),
    "time": (pa.time64("us"), st.times()),
    "timestamp": (pa.timestamp("us"), NAIVE),
    "timestamptz": (pa.timestamp("us", "UTC"), NAIVE.map(lambda v: v.replace(tzinfo=UTC))),
    "timestamp_ns": (pa.timestamp("ns"), NAIVE),
}
TRANSFORMS = {
    "identity": list(TYPES),
    "bucket[3]": ["int", "long", "decimal", "string", "binary", "fixed", "date", "timestamptz"],
    "truncate[2]": ["int", "long", "decimal", "string", "binary"],
    "truncate[7]": ["int", "long", "decimal"],
    "year": ["date", "timestamp", "timestamptz", "timestamp_ns"],
    "month": ["date", "timestamp", "timestamptz", "timestamp_ns"],
    "day": ["date", "timestamp", "timestamptz", "timestamp_ns"],
    "hour": ["timestamp", "timestamptz", "timestamp_ns"],
    "void": ["int", "string"],
}
METRICS = ["value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]


def leaf_of(kind, values):
    ops = COMPARISONS + SETS + UNARY
    ops += NAN if kind in ("double", "float") else []
    ops += PREFIX if kind == "string" else []

    def make(op):
        if op in UNARY + NAN:
            return st.just(Leaf(("x",), op))
        if op in SETS:
            few = st.lists(values, min_size=1, max_size=3)
            many = st.lists(values, min_size=9, max_size=12)
            return (few | many).map(lambda held: Leaf(("x",), op, tuple(held)))
        return values.map(lambda value: Leaf(("x",), op, (value,)))

    return st.sampled_from(ops).flatmap(make)


def predicate_of(kind, values):
    return st.recursive(
        leaf_of(kind, values),
        lambda below: st.one_of(
            st.lists(below, max_size=3).map(lambda parts: conjunction(*parts)),
            st.lists(below, max_size=3).map(lambda parts: disjunction(*parts)),
            below.map(negation),
        ),
        max_leaves=4,
    )


def check(files, predicate, schema, spec, **metrics):
    entries = entries_of(files, schema, spec, **metrics)
    bound = bind(predicate, schema)
    may = may_match(entries, bound, spec, schema).to_pylist()
    must = must_match(entries, bound, spec, schema).to_pylist()
    kept = matching_files(entries, bound, spec, schema)
    assert kept["location"].equals(entries["location"].filter(pa.array(may, pa.bool_())))
    for rows, some, every in zip(files, may, must, strict=True):
        matching = [holds(predicate, row, schema) for row in rows]
        assert some or not any(matching)
        assert all(matching) or not every


@pytest.mark.parametrize("kind", list(TYPES))
@given(data=st.data())
@settings(max_examples=2 * EXAMPLES, deadline=None)
def test_metrics_never_lose_a_row_nor_add_one(kind, data):
    arrow_type, values = TYPES[kind]
    schema = schema_of(column("y", pa.int32(), 1), column("x", arrow_type, 2))
    row = st.fixed_dictionaries({"y": st.none(), "x": st.none() | values})
    files = data.draw(st.lists(st.lists(row, max_size=3), min_size=1, max_size=4))
    predicate = data.draw(predicate_of(kind, values))
    drop = data.draw(st.sets(st.tuples(st.sampled_from(METRICS), st.just(2)), max_size=2))
    truncate = data.draw(st.sampled_from([None, 1, 2, 3]))
    check(files, predicate, schema, spec_of(), truncate=truncate, drop=drop)


@pytest.mark.spec("Scan Planning: inclusive and strict projection")
@pytest.mark.parametrize(
    ("transform", "kind"),
    [(transform, kind) for transform, kinds in TRANSFORMS.items() for kind in kinds],
)
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_partitions_never_lose_a_row_nor_add_one(transform, kind, data):
    arrow_type, values = TYPES[kind]
    schema, spec = schema_of(column("x", arrow_type, 2)), spec_of((2, transform))
    rows = data.draw(st.lists(st.fixed_dictionaries({"x": st.none() | values}), min_size=1))
    predicate = data.draw(predicate_of(kind, values))
    drop = {(name, 2) for name in METRICS} if data.draw(st.booleans()) else ()
    check(by_partition(rows, spec, schema), predicate, schema, spec, drop=drop)


@pytest.mark.spec("Manifest Lists: field_summary bounds partition values that are not null or NaN")
@pytest.mark.parametrize(
    ("transform", "kind"),
    [(transform, kind) for transform, kinds in TRANSFORMS.items() for kind in kinds],
)
@given(data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_manifests_with_a_matching_row_are_kept(transform, kind, data):
    arrow_type, values = TYPES[kind]
    schema, spec = schema_of(column("x", arrow_type, 2)), spec_of((2, transform))
    row = st.fixed_dictionaries({"x": st.none() | values})
    rows = data.draw(st.lists(st.lists(row, min_size=1, max_size=3), min_size=1, max_size=3))
    predicate = data.draw(predicate_of(kind, values))
    manifests = manifests_of([by_partition(held, spec, schema) for held in rows], schema, spec)
    kept = manifests_may_match(manifests, bind(predicate, schema), {0: spec}, schema).to_pylist()
    for held, some in zip(rows, kept, strict=True):
        assert some or not any(holds(predicate, each, schema) for each in held)
