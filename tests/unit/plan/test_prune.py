"""What pruning finds, file by file: each op against files of known shapes."""

import datetime as dt
import math
import uuid

import pyarrow as pa
import pytest

from rowlake.errors import InternalError
from rowlake.model.files import BOUNDS, MANIFESTS, Content
from rowlake.model.predicate import FALSE, TRUE, Leaf, Op, conjunction, disjunction
from rowlake.prune.bind import bind
from rowlake.prune.match import deletes_may_match, manifests_may_match, may_match, must_match
from tests.plan_kit import column, encoded, entries_of, manifests_of, schema_of, spec_of

NAN = math.nan


def found(entries, predicate, spec, schema, names):
    """Return (may, must) as the names of the files."""
    bound = bind(predicate, schema)
    masks = (match(entries, bound, spec, schema) for match in (may_match, must_match))
    return tuple(
        "".join(name for name, hit in zip(names, mask.to_pylist(), strict=True) if hit)
        for mask in masks
    )


def leaf(op, *values, name="x"):
    return Leaf((name,), op, values)


# a: 1-5; b: 10-20; c: only 5; d: 1-5 and nulls; e: only nulls; f: nothing recorded; g: no rows
SHAPES = [[1, 5], [10, 20], [5, 5], [1, None, 5], [None], [7], []]
WHOLE = schema_of(column("x", pa.int64(), 1))


def whole_files():
    table = entries_of([[{"x": value} for value in held] for held in SHAPES], WHOLE)
    rows = table.to_pylist()
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        rows[5][name] = None
    return pa.Table.from_pylist(rows, schema=table.schema)


@pytest.mark.parametrize(
    ("op", "values", "may", "must"),
    [
        (Op.EQ, (5,), "acdf", "cg"),
        (Op.EQ, (7,), "f", "g"),
        (Op.NE, (5,), "abdf", "bg"),
        (Op.LT, (1,), "f", "g"),
        (Op.LT, (6,), "acdf", "acg"),
        (Op.LE, (1,), "adf", "g"),
        (Op.GT, (5,), "bf", "bg"),
        (Op.GE, (5,), "abcdf", "bcg"),
        (Op.IN, (5, 6), "acdf", "cg"),
        (Op.IN, tuple(range(30, 40)), "f", "g"),
        (Op.IN, tuple(range(5, 15)), "abcdf", "cg"),
        (Op.NOT_IN, (5, 6), "abdf", "bg"),
        (Op.NOT_IN, (6, 7), "abcdf", "abcg"),
        (Op.IS_NULL, (), "def", "eg"),
        (Op.NOT_NULL, (), "abcdf", "abcg"),
    ],
)
def test_each_op_by_metrics(op, values, may, must):
    assert found(whole_files(), leaf(op, *values), spec_of(), WHOLE, "abcdefg") == (may, must)


def test_conjunctions_and_disjunctions_combine():
    table = whole_files()
    both = conjunction(leaf(Op.GT, 4), leaf(Op.LT, 6))
    assert found(table, both, spec_of(), WHOLE, "abcdefg") == ("acdf", "cg")
    either = disjunction(leaf(Op.GT, 9), leaf(Op.IS_NULL))
    assert found(table, either, spec_of(), WHOLE, "abcdefg") == ("bdef", "beg")
    assert found(table, TRUE, spec_of(), WHOLE, "abcdefg") == ("abcdefg", "abcdefg")
    assert found(table, FALSE, spec_of(), WHOLE, "abcdefg") == ("", "")


def test_unbound_predicates_are_our_own_mistake():
    with pytest.raises(InternalError, match="not bound"):
        may_match(whole_files(), leaf(Op.IS_NULL), spec_of(), WHOLE)


FLOATS = schema_of(column("x", pa.float64(), 1))


@pytest.mark.spec("Manifests: bounds leave NaN out")
@pytest.mark.parametrize(
    ("op", "values", "may", "must"),
    [
        # a: 1-5; b: 1-5 and NaN; c: only NaN; d: 1-5, NaN counts missing; e: NaN and null
        (Op.GT, (5.0,), "bcde", "c"),
        (Op.GT, (0.5,), "abcde", "abcd"),
        (Op.LT, (6.0,), "abd", "a"),
        (Op.EQ, (9.0,), "", ""),
        (Op.NE, (9.0,), "abcde", "abcd"),
        (Op.EQ, (NAN,), "bcde", "c"),
        (Op.LT, (NAN,), "abd", "a"),
        (Op.LE, (NAN,), "abcde", "abcd"),
        (Op.IS_NAN, (), "bcde", "c"),
        (Op.NOT_NAN, (), "abde", "a"),
        (Op.IS_NULL, (), "e", ""),
    ],
)
def test_nan_is_above_every_number_and_outside_of_bounds(op, values, may, must):
    shapes = [[1.0, 5.0], [1.0, NAN, 5.0], [NAN], [1.0, 5.0], [NAN, None]]
    table = entries_of([[{"x": value} for value in held] for held in shapes], FLOATS)
    rows = table.to_pylist()
    rows[3]["nan_value_counts"] = []
    table = pa.Table.from_pylist(rows, schema=table.schema)
    assert found(table, leaf(op, *values), spec_of(), FLOATS, "abcde") == (may, must)


def test_bounds_that_are_nan_are_not_trusted():
    bounds = [[(1, encoded(NAN, pa.float64()))], [(1, encoded(1.0, pa.float64()))]]
    table = entries_of([[{"x": 9.0}], [{"x": 9.0}]], FLOATS, lower_bounds=bounds)
    upper = [[(1, encoded(5.0, pa.float64()))], [(1, encoded(5.0, pa.float64()))]]
    index = table.schema.get_field_index("upper_bounds")
    table = table.set_column(index, table.schema.field(index), pa.array(upper, BOUNDS))
    assert found(table, leaf(Op.GT, 6.0), spec_of(), FLOATS, "ab") == ("a", "")


def test_minus_zero_is_zero():
    table = entries_of([[{"x": -0.0}], [{"x": 0.0}]], FLOATS)
    assert found(table, leaf(Op.EQ, 0.0), spec_of(), FLOATS, "ab") == ("ab", "ab")
    assert found(table, leaf(Op.LT, 0.0), spec_of(), FLOATS, "ab") == ("", "")


TEXT = schema_of(column("x", pa.string(), 1))


@pytest.mark.parametrize(
    ("op", "value", "may", "must"),
    [
        # a: abc-abd; b: ab…; c: b
        (Op.STARTS_WITH, "ab", "ab", "ab"),
        (Op.STARTS_WITH, "abc", "a", ""),
        (Op.STARTS_WITH, "b", "c", "c"),
        (Op.NOT_STARTS_WITH, "ab", "c", "c"),
        (Op.NOT_STARTS_WITH, "abd", "abc", "bc"),
        (Op.LT, "ac", "ab", "ab"),
        (Op.GT, "abz", "bc", "bc"),
    ],
)
def test_text(op, value, may, must):
    table = entries_of([[{"x": "abc"}, {"x": "abd"}], [{"x": "ab\uffff"}], [{"x": "b"}]], TEXT)
    assert found(table, leaf(op, value), spec_of(), TEXT, "abc") == (may, must)


def test_cut_bounds_are_bounds_still():
    table = entries_of([[{"x": "abcdef"}]], TEXT, truncate=2)
    assert found(table, leaf(Op.EQ, "abcdef"), spec_of(), TEXT, "a") == ("a", "")
    assert found(table, leaf(Op.EQ, "ac"), spec_of(), TEXT, "a") == ("a", "")
    assert found(table, leaf(Op.EQ, "ad"), spec_of(), TEXT, "a") == ("", "")


NESTED = schema_of(
    column("s", pa.struct([column("x", pa.int32(), 2)]), 1),
    column("l", pa.list_(column("element", pa.int32(), 4)), 3),
    column("v", pa.binary(), 5, type="variant"),
)


def nested_entries():
    low, high = encoded(1, pa.int32()), encoded(5, pa.int32())
    return entries_of(
        [[{"s": None, "l": None, "v": None}]],
        NESTED,
        drop={(name, n) for name in ("null_value_counts", "value_counts") for n in (1, 3, 5)},
        null_value_counts=[[(2, 0), (4, 0)]],
        value_counts=[[(2, 9), (4, 9)]],
        lower_bounds=[[(2, low), (4, low), (5, b"a")]],
        upper_bounds=[[(2, high), (4, high), (5, b"b")]],
    )


def test_fields_of_structs_have_metrics_but_their_nulls_are_not_trusted():
    entries, inside = nested_entries(), Leaf(("s", "x"), Op.GT, (5,))
    assert found(entries, inside, spec_of(), NESTED, "a") == ("", "")
    assert found(entries, Leaf(("s", "x"), Op.LT, (9,)), spec_of(), NESTED, "a") == ("a", "")
    assert found(entries, Leaf(("s", "x"), Op.IS_NULL), spec_of(), NESTED, "a") == ("a", "")


def test_lists_and_variants_are_not_pruned_by_what_is_inside():
    entries = nested_entries()
    assert found(entries, leaf(Op.IS_NULL, name="l"), spec_of(), NESTED, "a") == ("a", "")
    assert found(entries, leaf(Op.EQ, b"zzz", name="v"), spec_of(), NESTED, "a") == ("a", "")


def test_uuid_bounds_hold_in_both_orders_of_writers():
    schema = schema_of(column("x", pa.binary(16), 1, type="uuid"))
    low, high = uuid.UUID(int=1 << 127), uuid.UUID(int=5)  # ordered as signed numbers
    table = entries_of(
        [[{"x": low.bytes}]],
        schema,
        lower_bounds=[[(1, low.bytes)]],
        upper_bounds=[[(1, high.bytes)]],
    )
    inside = uuid.UUID(int=(1 << 127) + 9)
    assert found(table, leaf(Op.EQ, inside), spec_of(), schema, "a") == ("a", "")
    same = entries_of([[{"x": low.bytes}]], schema)
    assert found(same, leaf(Op.EQ, low), spec_of(), schema, "a") == ("a", "a")
    assert found(same, leaf(Op.EQ, high), spec_of(), schema, "a") == ("", "")


TIMES = schema_of(column("x", pa.timestamp("us"), 1))


@pytest.mark.spec("Partition Transforms: values of old writers before 1970")
@pytest.mark.parametrize(
    ("day", "may", "must"),
    [
        (dt.date(2024, 1, 1), "a", "a"),
        (dt.date(2024, 1, 2), "", ""),
        (dt.date(1970, 1, 1), "b", ""),
        (dt.date(1969, 12, 31), "b", ""),
        (dt.date(1969, 12, 30), "", ""),
    ],
)
def test_days_not_after_1970_may_hold_the_day_before(day, may, must):
    spec = spec_of((1, "day"))
    rows = [[{"x": dt.datetime(2024, 1, 1, 12)}], [{"x": dt.datetime(1970, 1, 1, 12)}]]
    drop = {(name, 1) for name in ("lower_bounds", "upper_bounds")}
    table = entries_of(rows, TIMES, spec, drop=drop)
    start = dt.datetime.combine(day, dt.time())
    whole_day = conjunction(leaf(Op.GE, start), leaf(Op.LT, start + dt.timedelta(days=1)))
    assert found(table, whole_day, spec, TIMES, "ab") == (may, must)


@pytest.mark.spec("Scan Planning: unknown transforms are ignored in filters")
def test_unknown_and_void_transforms_say_nothing():
    for transform in ("zorder", "void"):
        table = entries_of([[{"x": 5}]], WHOLE, spec_of((1, "void")), drop={("lower_bounds", 1)})
        assert found(table, leaf(Op.EQ, 4), spec_of((1, transform)), WHOLE, "a") == ("a", "")


def test_buckets_prune_equality_only():
    spec = spec_of((1, "bucket[16]"))
    drop = {(name, 1) for name in ("lower_bounds", "upper_bounds")}
    table = entries_of([[{"x": 34}], [{"x": 35}], [{"x": None}]], WHOLE, spec, drop=drop)
    assert found(table, leaf(Op.EQ, 34), spec, WHOLE, "abc") == ("a", "")
    assert found(table, leaf(Op.NE, 34), spec, WHOLE, "abc") == ("ab", "b")
    assert found(table, leaf(Op.LT, 34), spec, WHOLE, "abc") == ("ab", "")
    assert found(table, leaf(Op.IS_NULL), spec, WHOLE, "abc") == ("c", "c")


def test_manifests_are_pruned_by_their_summaries():
    spec = spec_of((1, "identity"))
    groups = [[[{"x": 1}], [{"x": 5}]], [[{"x": 7}], [{"x": None}]], [[{"x": None}]]]
    manifests = manifests_of(groups, WHOLE, spec)
    unknown = pa.Table.from_pylist([{"partition_spec_id": 0}], schema=MANIFESTS)
    other = pa.Table.from_pylist([{"partition_spec_id": 3}], schema=MANIFESTS)
    specs = {0: spec, 3: spec_of(spec_id=3)}
    listed = pa.concat_tables([manifests, unknown, other])

    def kept(predicate):
        mask = manifests_may_match(listed, bind(predicate, WHOLE), specs, WHOLE)
        return "".join(name for name, hit in zip("abcde", mask.to_pylist(), strict=True) if hit)

    assert kept(leaf(Op.EQ, 3)) == "ade"
    assert kept(leaf(Op.GT, 5)) == "bde"
    assert kept(leaf(Op.IS_NULL)) == "bcde"
    assert kept(leaf(Op.NOT_NULL)) == "abde"


@pytest.mark.spec("Scan Planning: delete files may be ignored by their metrics")
def test_delete_files_are_pruned_by_equality_columns_only():
    schema = schema_of(column("x", pa.int64(), 1), column("y", pa.int64(), 2))
    rows = [[{"x": 5, "y": 5}]] * 3
    table = entries_of(
        rows,
        schema,
        content=[Content.EQUALITY_DELETES, Content.EQUALITY_DELETES, Content.POSITION_DELETES],
        equality_ids=[[1], [1, 2], None],
    )

    def kept(predicate):
        return deletes_may_match(table, bind(predicate, schema), spec_of(), schema).to_pylist()

    assert kept(leaf(Op.EQ, 6)) == [False, False, True]
    assert kept(leaf(Op.EQ, 6, name="y")) == [True, False, True]
    assert kept(leaf(Op.IS_NULL, name="y")) == [True, False, True]
