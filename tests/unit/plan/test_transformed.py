"""Conditions on transforms of columns: pruned by partitions and metrics, and evaluated exactly."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.conditions.pushed import pushed_condition
from rowlake.model.predicate import Leaf, Op, leaves
from rowlake.model.predicate_text import predicate_text
from rowlake.model.schema import FIELD_ID, TYPE_NAME, Schema
from rowlake.model.transform import apply_transform
from rowlake.prune.bind import bind
from rowlake.scan.filter import mask
from tests.lakes import make_lake


def field(name: str, kind: pa.DataType, number: int, **more: bytes) -> pa.Field:
    return pa.field(name, kind, metadata={FIELD_ID: str(number).encode(), **more})


FIELDS = [
    field("id", pa.int64(), 1),
    field("small", pa.int32(), 2),
    field("text", pa.string(), 3),
    field("raw", pa.binary(), 4),
    field("day", pa.date32(), 5),
    field("at", pa.timestamp("us", "UTC"), 6),
    field("local", pa.timestamp("us"), 7),
    field("price", pa.decimal128(9, 2), 8),
    pa.field("key", pa.binary(16), metadata={FIELD_ID: b"9", TYPE_NAME: b"uuid"}),
    field("ratio", pa.float64(), 10),
]
SCHEMA = Schema(pa.schema(FIELDS))
UTC = dt.timezone.utc
MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29, 12, 30),
    dt.datetime(2024, 12, 31, 23),
    None,
]


def batch() -> pa.RecordBatch:
    columns = {
        "id": [-(2**63), -1, 34, 2**63 - 1, None],
        "small": [-(2**31), -7, 0, 2**31 - 1, None],
        "text": ["", "abc", "iceberg", "äöü€", None],
        "raw": [b"", b"\x00", b"abcd", b"\xff\xff", None],
        "day": [each and each.date() for each in MOMENTS],
        "at": [each and each.replace(tzinfo=UTC) for each in MOMENTS],
        "local": MOMENTS,
        "price": [Decimal("-0.01"), Decimal("14.20"), Decimal(0), Decimal("9999999.99"), None],
        "key": [bytes(16)] * 4 + [None],
        "ratio": [0.0, 1.5, -2.5, 9.0, None],
    }
    arrays = [pa.array(columns[one.name], one.type) for one in FIELDS]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.arrow)


TRANSFORMS = {
    "id": ["bucket[16]", "truncate[10]"],
    "small": ["bucket[3]", "truncate[7]"],
    "text": ["bucket[5]", "truncate[2]"],
    "raw": ["bucket[5]", "truncate[2]"],
    "day": ["bucket[4]", "year", "month", "day"],
    "at": ["bucket[4]", "year", "month", "day", "hour"],
    "local": ["bucket[4]", "year", "month", "day", "hour"],
    "price": ["bucket[4]", "truncate[50]"],
}
CALLS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
CASES = [(column, transform) for column, found in TRANSFORMS.items() for transform in found]
COMPARED = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


@pytest.mark.parametrize(("column", "transform"), CASES)
def test_every_comparison_is_that_of_the_transformed_values(column, transform):
    rows = batch()
    values = apply_transform(transform, rows.column(column))
    for value in values.drop_null().unique().to_pylist():
        for op, compare in COMPARED.items():
            predicate = bind(Leaf((column,), op, (value,), transform=transform), SCHEMA)
            expected = compare(values, pa.scalar(value, values.type)).fill_null(False)
            assert mask(rows, predicate).to_pylist() == expected.to_pylist(), (op, value)
        for op in (Op.IN, Op.NOT_IN):
            predicate = bind(Leaf((column,), op, (value, value), transform=transform), SCHEMA)
            found = pc.is_in(values, value_set=pa.array([value], values.type))
            expected = pc.and_(values.is_valid(), found if op is Op.IN else pc.invert(found))
            assert mask(rows, predicate).to_pylist() == expected.to_pylist(), (op, value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("system.bucket(16, id) = 3", "bucket[16](id) = 3"),
        ("lake.system.bucket(16, id) IN (1, 2)", "bucket[16](id) in (1, 2)"),
        ("NOT system.bucket(4, text) <> 1", "bucket[4](text) = 1"),
        ("system.truncate(2, text) = 'ab'", "truncate[2](text) = 'ab'"),
        ("SYSTEM.days(at) >= DATE '2024-02-29'", "day(at) >= 2024-02-29"),
        ("54 < system.years(local)", "year(local) > 54"),
        ("system.hours(at) BETWEEN 1 AND 2", "(hour(at) >= 1) and (hour(at) <= 2)"),
        ("system.bucket(16, id) IS NULL", "bucket[16](id) is null"),
    ],
)
def test_calls_of_transforms_are_read_whole(text, shown):
    found = pushed_condition(text, SCHEMA)
    assert found.exact
    assert predicate_text(found.predicate).replace("(", "").replace(")", "") == shown.replace(
        "(", ""
    ).replace(")", "")


@pytest.mark.parametrize(
    "text",
    [
        "system.bucket(0, id) = 3",
        "system.bucket(id, 16) = 3",
        "system.bucket(16, ratio) = 3",
        "system.bucket(16, key) = 3",
        "system.hours(day) = 3",
        "system.days(id) = DATE '2024-01-01'",
        "other.bucket(16, id) = 3",
        "system.bucket(4, system.bucket(16, id)) = 1",
    ],
)
def test_what_the_functions_mean_otherwise_is_left_to_spark(text):
    assert not pushed_condition(text, SCHEMA).exact


def test_times_become_ranges_of_the_column():
    bound = bind(pushed_condition("system.months(at) = 648", SCHEMA).predicate, SCHEMA)
    assert [(leaf.op, leaf.transform) for leaf in leaves(bound)] == [(Op.GE, None), (Op.LT, None)]
    far = bind(pushed_condition("system.years(at) = 2000000", SCHEMA).predicate, SCHEMA)
    assert [leaf.transform for leaf in leaves(far)] == ["year"]


@settings(max_examples=60, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 100), st.integers(-300, 300))
def test_truncated_integers_are_ranges(value, width, near):
    schema = Schema(pa.schema([field("id", pa.int64(), 1)]))
    rows = pa.RecordBatch.from_arrays([pa.array([value, None], pa.int64())], schema=schema.arrow)
    cut = apply_transform(f"truncate[{width}]", rows.column(0))[0].as_py()
    for wanted in (cut, max(min(cut + near, 2**63 - 1), -(2**63))):
        leaf = Leaf(("id",), Op.EQ, (wanted,), transform=f"truncate[{width}]")
        assert mask(rows, bind(leaf, schema)).to_pylist() == [cut == wanted, False]


@pytest.fixture
def table(tmp_path):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("db", if_not_exists=True)
        schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
        made = lake.create_table("db.t", schema, partition_by=["bucket(4, id)", "days(at)"])
        first = dt.datetime(2024, 1, 1)
        times = [first + dt.timedelta(days=number % 3) for number in range(40)]
        made.append(pa.table({"id": range(40), "at": times}, schema=schema))
        yield made


def test_a_bucket_prunes_files_by_partition_values(table):
    wanted = Leaf(("id",), Op.EQ, (3,), transform="bucket[4]")
    buckets = apply_transform("bucket[4]", pa.array(range(40), pa.int64())).to_pylist()
    expected = [number for number in range(40) if buckets[number] == 3]
    assert sorted(table.arrow(where=wanted)["id"].to_pylist()) == expected
    result = table.delete(wanted)
    assert result.rows_deleted == len(expected)
    assert result.data_files_added == 0
    assert (result.files_considered, result.files_pruned) == (12, 9)
    other = Leaf(("id",), Op.EQ, (3,), transform="bucket[8]")
    eighths = apply_transform("bucket[8]", pa.array(range(40), pa.int64())).to_pylist()
    left = [number for number in range(40) if buckets[number] != 3 and eighths[number] == 3]
    assert sorted(table.arrow(where=other)["id"].to_pylist()) == left


def test_days_prune_by_partition_values_and_months_too(table):
    result = table.delete(Leaf(("at",), Op.EQ, (dt.date(2024, 1, 2),), transform="day"))
    assert (result.files_considered, result.files_pruned, result.data_files_added) == (12, 8, 0)
    assert table.arrow(where=Leaf(("at",), Op.LT, (648,), transform="month")).num_rows == 0
    assert table.arrow(where=Leaf(("at",), Op.EQ, (54,), transform="year")).num_rows == 27


def test_procedures_filter_by_transforms(table):
    report = table.rewrite_data_files(
        where="system.bucket(4, id) = 3 AND system.days(at) < DATE '2024-01-02'",
        options={"rewrite-all": "true"},
    )
    assert report.rewritten_data_files_count == 1
