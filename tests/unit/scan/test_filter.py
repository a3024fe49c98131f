"""Filters with Spark's meaning, and row groups that they leave unread."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.model.predicate import FALSE, TRUE, And, Leaf, Op, Or, negation
from rowlake.scan import parquet as parquet_module
from rowlake.scan.filter import mask
from tests.scanning import field, scan, schema, table_of, write_parquet

NAN = math.nan


def selected(values: list[object], kind: pa.DataType, op: Op, *wanted: object) -> list[object]:
    batch = pa.record_batch([pa.array(values, kind)], schema=pa.schema([field("a", kind, 1)]))
    found = mask(batch, Leaf(("a",), op, wanted, 1))
    assert found.null_count == 0
    return [value for value, chosen in zip(values, found.to_pylist(), strict=True) if chosen]


FLOATS = [1.0, NAN, None, -0.0, 0.0, math.inf]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("op", "wanted", "expected"),
    [
        (Op.EQ, (NAN,), [NAN]),
        (Op.NE, (NAN,), [1.0, -0.0, 0.0, math.inf]),
        (Op.LT, (NAN,), [1.0, -0.0, 0.0, math.inf]),
        (Op.LE, (NAN,), [1.0, NAN, -0.0, 0.0, math.inf]),
        (Op.GT, (NAN,), []),
        (Op.GE, (NAN,), [NAN]),
        (Op.GT, (1.0,), [NAN, math.inf]),
        (Op.GE, (1.0,), [1.0, NAN, math.inf]),
        (Op.NE, (1.0,), [NAN, -0.0, 0.0, math.inf]),
        (Op.EQ, (0.0,), [-0.0, 0.0]),
        (Op.LT, (0.0,), []),
        (Op.IN, (-0.0, NAN), [NAN, -0.0, 0.0]),
        (Op.IN, (), []),
        (Op.NOT_IN, (0.0, NAN), [1.0, math.inf]),
        (Op.IS_NAN, (), [NAN]),
        (Op.NOT_NAN, (), [1.0, None, -0.0, 0.0, math.inf]),
        (Op.IS_NULL, (), [None]),
        (Op.NOT_NULL, (), [1.0, NAN, -0.0, 0.0, math.inf]),
    ],
)
def test_floats_compare_as_in_spark(kind, op, wanted, expected) -> None:
    assert repr(selected(FLOATS, kind, op, *wanted)) == repr(expected)


UTC = dt.timezone.utc
ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("kind", "values", "op", "wanted", "expected"),
    [
        (pa.string(), ["a", "ab", None, "é", "z"], Op.GT, ("z",), ["é"]),
        (pa.string(), ["a", "ab", None, "b"], Op.STARTS_WITH, ("a",), ["a", "ab"]),
        (pa.string(), ["a", "ab", None, "b"], Op.NOT_STARTS_WITH, ("a",), ["b"]),
        (pa.string(), ["a", None, "b"], Op.NOT_IN, ("a",), ["b"]),
        (pa.binary(), [b"\xff", b"\x00"], Op.GT, (b"\x7f",), [b"\xff"]),
        (pa.bool_(), [True, False, None], Op.EQ, (False,), [False]),
        (pa.binary(16), [ID.bytes], Op.EQ, (ID,), [ID.bytes]),
        (pa.binary(16), [ID.bytes], Op.IN, (str(ID),), [ID.bytes]),
        (pa.decimal128(7, 2), [Decimal("1.10")], Op.LT, (Decimal("1.101"),), [Decimal("1.10")]),
        (pa.decimal128(7, 2), [Decimal("1.10")], Op.IN, (Decimal("1.1"),), [Decimal("1.10")]),
        (pa.date32(), [dt.date(2020, 1, 1)], Op.GE, (dt.date(2020, 1, 1),), [dt.date(2020, 1, 1)]),
        (
            pa.timestamp("us", tz="UTC"),
            [dt.datetime(2020, 1, 1, tzinfo=UTC)],
            Op.IN,
            (dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),),
            [dt.datetime(2020, 1, 1, tzinfo=UTC)],
        ),
        (pa.time64("us"), [dt.time(1), dt.time(2)], Op.LT, (dt.time(2),), [dt.time(1)]),
        (pa.int32(), [1, None], Op.LT, (1 << 40,), [1]),
        (pa.int32(), [1, None], Op.IS_NAN, (), []),
    ],
)
def test_other_types(kind, values, op, wanted, expected) -> None:
    assert selected(values, kind, op, *wanted) == expected


def test_three_valued_logic() -> None:
    arrow = pa.schema([field("a", pa.int32(), 1), field("b", pa.int32(), 2)])
    batch = pa.record_batch([pa.array([1, 1, None]), pa.array([None, 2, None])], names=["a", "b"])
    batch = batch.cast(arrow)
    a, b = Leaf(("a",), Op.EQ, (1,), 1), Leaf(("b",), Op.EQ, (2,), 2)
    assert mask(batch, And((a, b))).to_pylist() == [False, True, False]
    assert mask(batch, Or((a, b))).to_pylist() == [True, True, False]
    assert mask(batch, negation(And((a, b)))).to_pylist() == [False, False, False]
    assert mask(batch, TRUE).to_pylist() == [True] * 3
    assert mask(batch, FALSE).to_pylist() == [False] * 3


INNER = pa.struct([field("x", pa.int64(), 3)])
TABLE = schema(
    field("k", pa.int64(), 1),
    field("s", INNER, 2),
    field("t", pa.string(), 4),
    field("d", pa.decimal128(9, 2), 5),
    field("f", pa.float64(), 6),
    field("ts", pa.timestamp("us"), 7),
    field("added", pa.int32(), 8, default=5),
)
OLD = schema(
    field("k", pa.int32(), 1), *(TABLE.arrow.field(name) for name in ("s", "t", "d", "f", "ts"))
)
DAY = dt.datetime(2020, 1, 1)
ROWS = [
    {
        "k": index,
        "s": None if index < 10 else {"x": index},
        "t": f"{index // 10:03d}x",
        "d": Decimal(index) / 4,
        "f": NAN if index == 95 else float(index),
        "ts": DAY + dt.timedelta(hours=index),
    }
    for index in range(100)
]


@pytest.fixture
def read_groups(monkeypatch) -> list[int]:
    groups: list[int] = []
    plain = parquet_module.ParquetSource.read

    def spy(self, unit, kept, batch_rows):
        groups.append(unit.index)
        return plain(self, unit, kept, batch_rows)

    monkeypatch.setattr(parquet_module.ParquetSource, "read", spy)
    return groups


@pytest.mark.parametrize(
    ("leaf", "groups", "rows"),
    [
        (Leaf(("k",), Op.EQ, (33,), 1), {3}, 1),
        (Leaf(("k",), Op.EQ, (1 << 40,), 1), set(), 0),
        (Leaf(("k",), Op.LT, (10,), 1), {0}, 10),
        (Leaf(("k",), Op.LE, (10,), 1), {0, 1}, 11),
        (Leaf(("k",), Op.GE, (89,), 1), {8, 9}, 11),
        (Leaf(("k",), Op.GT, (89,), 1), {9}, 10),
        (Leaf(("k",), Op.IN, (5, 95), 1), {0, 9}, 2),
        (Leaf(("k",), Op.IN, (*tuple(range(20, 220)), 15), 1), set(range(1, 10)), 81),
        (Leaf(("k",), Op.IN, (), 1), set(), 0),
        (Leaf(("k",), Op.NE, (5,), 1), set(range(10)), 99),
        (Leaf(("s", "x"), Op.IS_NULL, (), 3), {0}, 10),
        (Leaf(("s", "x"), Op.NOT_NULL, (), 3), set(range(1, 10)), 90),
        (Leaf(("s", "x"), Op.EQ, (55,), 3), {5}, 1),
        (Leaf(("t",), Op.STARTS_WITH, ("004",), 4), {4}, 10),
        (Leaf(("t",), Op.STARTS_WITH, ("00",), 4), set(range(10)), 100),
        (Leaf(("t",), Op.NOT_STARTS_WITH, ("004",), 4), set(range(10)) - {4}, 90),
        (Leaf(("t",), Op.NE, ("004x",), 4), set(range(10)) - {4}, 90),
        (Leaf(("t",), Op.NOT_IN, ("004x", "000x"), 4), set(range(1, 10)) - {4}, 80),
        (Leaf(("d",), Op.LT, (Decimal("2.5"),), 5), {0}, 10),
        (Leaf(("f",), Op.LT, (10.0,), 6), {0}, 10),
        (Leaf(("f",), Op.GT, (1000.0,), 6), set(range(10)), 1),
        (Leaf(("f",), Op.EQ, (NAN,), 6), set(range(10)), 1),
        (Leaf(("ts",), Op.LT, (DAY + dt.timedelta(hours=1),), 7), {0}, 1),
        (Leaf(("added",), Op.EQ, (5,), 8), set(), 100),
        (Leaf(("added",), Op.EQ, (6,), 8), set(), 0),
        (Leaf(("added",), Op.IS_NULL, (), 8), set(), 0),
        (FALSE, set(), 0),
    ],
)
@pytest.mark.parametrize("as_integer", [True, False])
def test_row_groups_that_cannot_match_are_not_read(
    tmp_path, read_groups, leaf, groups, rows, as_integer
) -> None:
    path = write_parquet(
        tmp_path / "f.parquet",
        table_of(OLD, ROWS),
        row_group_size=10,
        store_decimal_as_integer=as_integer,
    )
    # Only a constant column comes out, so what is read is what the filter needs.
    found = scan(TABLE, path, predicate=leaf, projection=schema(TABLE.arrow.field("added")))
    assert len(found) == rows
    assert set(read_groups) == groups


def test_columns_that_do_not_decide_are_read_only_where_rows_match(tmp_path, read_groups) -> None:
    rows = [{**row, "k": index * 37 % 100} for index, row in enumerate(ROWS)]
    path = write_parquet(tmp_path / "f.parquet", table_of(OLD, rows), row_group_size=10)
    wanted = Leaf(("k",), Op.EQ, (37,), 1)
    found = scan(TABLE, path, predicate=wanted, batch_rows=4)
    assert found == [{**rows[1], "added": 5}]
    assert read_groups.count(0) == 2
    assert len(read_groups) <= 11


def test_dense_filters_read_all_columns_at_once(tmp_path, read_groups) -> None:
    path = write_parquet(tmp_path / "f.parquet", table_of(OLD, ROWS), row_group_size=10)
    found = scan(TABLE, path, predicate=Leaf(("k",), Op.NE, (3,), 1))
    assert [row["k"] for row in found] == [index for index in range(100) if index != 3]
    assert len(read_groups) == 11


@pytest.mark.parametrize("column", ["k", "t", "d", "ts", "u"])
def test_bloom_filters_rule_out_row_groups(tmp_path, read_groups, column) -> None:
    table = schema(
        field("k", pa.int64(), 1),
        field("t", pa.string(), 2),
        field("d", pa.decimal128(9, 2), 3),
        field("ts", pa.timestamp("us"), 4),
        field("u", pa.binary(16), 5, type_name="uuid"),
    )
    numbers = np.random.default_rng(0).permutation(2000) * 2
    rows = [
        {
            "k": int(number),
            "t": f"name {number}",
            "d": Decimal(int(number)) / 4,
            "ts": DAY + dt.timedelta(seconds=int(number)),
            "u": uuid.UUID(int=int(number)).bytes,
        }
        for number in numbers
    ]
    path = tmp_path / "f.parquet"
    pq.write_table(
        table_of(table, rows),
        path,
        row_group_size=200,
        store_decimal_as_integer=True,
        bloom_filter_options={column: {"ndv": 200, "fpp": 0.001}},
    )
    key = table.arrow.names.index(column) + 1
    present, absent = (
        rows[1234][column],
        {
            "k": 1001,
            "t": "name 1001",
            "d": Decimal("100.25"),
            "ts": DAY + dt.timedelta(seconds=1001),
            "u": uuid.UUID(int=1001),
        }[column],
    )
    only = schema(table.arrow.field(column))
    found = scan(
        table, str(path), predicate=Leaf((column,), Op.EQ, (present,), key), projection=only
    )
    assert len(found) == 1
    assert 6 in read_groups and len(read_groups) <= 3
    read_groups.clear()
    assert scan(table, str(path), predicate=Leaf((column,), Op.IN, (absent,), key)) == []
    assert len(read_groups) <= 2
