from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.errors import SchemaMismatchError
from rowlake.model.schema import Schema
from rowlake.write.conform import conform
from tests.write_helpers import column

UTC = dt.timezone.utc


def conformed(values: pa.Array, to: pa.Field) -> pa.Array:
    batch = pa.record_batch([values], names=[to.name])
    result = conform(batch, Schema(pa.schema([to])))
    result.validate(full=True)
    assert result.schema.equals(pa.schema([to]), check_metadata=True)
    return result.column(0)


@pytest.mark.parametrize(
    ("values", "to", "expected"),
    [
        (pa.array([1, None], pa.int8()), pa.int32(), [1, None]),
        (pa.array([1, None], pa.uint64()), pa.int64(), [1, None]),
        (pa.array([1.0, None], pa.float64()), pa.int32(), [1, None]),
        (pa.array([0.5, float("inf")], pa.float64()), pa.float32(), [0.5, float("inf")]),
        (pa.array([2**53], pa.int64()), pa.float64(), [2.0**53]),
        (pa.array(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (pa.array(["a", None], pa.string_view()), pa.string(), ["a", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
        (pa.array([b"a"], pa.binary_view()), pa.binary(), [b"a"]),
        (pa.array([b"ab", None], pa.binary()), pa.binary(2), [b"ab", None]),
        (pa.array([None, None], pa.null()), pa.int32(), [None, None]),
        (pa.array([dt.date(2024, 1, 1)], pa.date64()), pa.date32(), [dt.date(2024, 1, 1)]),
        (pa.array([dt.time(1)], pa.time32("s")), pa.time64("us"), [dt.time(1)]),
        (pa.array([dt.time(1, 2, 3, 4)], pa.time64("ns")), pa.time64("us"), [dt.time(1, 2, 3, 4)]),
        (
            pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns")),
            pa.timestamp("us"),
            [dt.datetime(2024, 1, 1)],
        ),
        (
            pa.array([dt.date(2024, 1, 1)]),
            pa.timestamp("us"),
            [dt.datetime(2024, 1, 1)],
        ),
        (
            pa.array([dt.datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo")),
            pa.timestamp("us", "UTC"),
            [dt.datetime(2024, 1, 1, tzinfo=UTC)],
        ),
        (pa.array([Decimal("1.50")]), pa.decimal128(9, 1), [Decimal("1.5")]),
        (pa.array([Decimal("1.5")], pa.decimal256(50, 1)), pa.decimal128(9, 2), [Decimal("1.50")]),
        (pa.array([17], pa.int64()), pa.decimal128(4, 2), [Decimal("17.00")]),
    ],
)
def test_values_survive_in_the_tables_type(values, to, expected):
    assert conformed(values, column("c", to, 1)).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "to", "sample"),
    [
        (pa.array([1, 2**31], pa.int64()), pa.int32(), "2147483648"),
        (pa.array([1, 1.5]), pa.int64(), "1.5"),
        (pa.array([0.5, 0.1]), pa.float32(), "0.1"),
        (pa.array([2**53 + 1], pa.int64()), pa.float64(), "9007199254740993"),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us"), "1970"),
        (pa.array([Decimal("1.55")]), pa.decimal128(9, 1), "1.55"),
        (pa.array([Decimal("1234567")]), pa.decimal128(9, 3), "1234567"),
        (pa.array([100], pa.int32()), pa.decimal128(4, 2), "100"),
        (pa.array([b"ab", b"abc"]), pa.binary(2), "abc"),
        (pa.array([2**64 - 1], pa.uint64()), pa.int64(), "18446744073709551615"),
    ],
)
def test_a_value_that_does_not_fit_is_shown(values, to, sample):
    with pytest.raises(SchemaMismatchError, match=sample) as caught:
        conformed(values, column("c", to, 1))
    assert caught.value.column == "c"


@pytest.mark.parametrize(
    ("values", "to"),
    [
        (pa.array([1]), pa.string()),
        (pa.array([b"a"]), pa.string()),
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([True]), pa.int32()),
        (pa.array([1]), pa.bool_()),
        (pa.array([[1]]), pa.int32()),
        (pa.array([1]), pa.list_(column("element", pa.int32(), 2))),
        (pa.array([1]), pa.date32()),
    ],
)
def test_other_kinds_of_values_are_refused(values, to):
    with pytest.raises(SchemaMismatchError, match="column c"):
        conformed(values, column("c", to, 1))


def test_uuids_come_as_text_bytes_or_arrow_uuids():
    ids = [uuid.UUID(int=2**127 + 5), None, uuid.UUID(int=255)]
    expected = [None if each is None else each.bytes for each in ids]
    to = column("u", pa.binary(16), 1, type="uuid")
    texts = [None if each is None else str(each).upper() for each in ids]
    assert conformed(pa.array(texts), to).to_pylist() == expected
    assert conformed(pa.array([*texts, texts[0]]).slice(1), to).to_pylist()[1:] == [
        expected[2],
        expected[0],
    ]
    assert conformed(pa.array(expected, pa.binary()), to).to_pylist() == expected
    assert conformed(pa.array(expected, pa.binary(16)).cast(pa.uuid()), to).to_pylist() == expected


@pytest.mark.parametrize(
    "values", [pa.array(["zz"]), pa.array([b"abc"]), pa.array([1]), pa.array(["0" * 36])]
)
def test_what_is_no_uuid_is_refused(values):
    with pytest.raises(SchemaMismatchError, match="column u"):
        conformed(values, column("u", pa.binary(16), 1, type="uuid"))


def test_columns_go_by_name_in_any_case_and_any_order():
    schema = Schema(pa.schema([column("Id", pa.int32(), 1), column("name", pa.string(), 2)]))
    batch = pa.record_batch({"NAME": pa.array(["a"]), "id": pa.array([1], pa.int32())})
    assert conform(batch, schema).to_pydict() == {"Id": [1], "name": ["a"]}


def test_an_unknown_column_is_refused():
    schema = Schema(pa.schema([column("a", pa.int32(), 1)]))
    with pytest.raises(SchemaMismatchError, match="no column b"):
        conform(pa.record_batch({"a": [1], "b": [1]}), schema)


def test_missing_columns_get_their_write_default_or_null():
    schema = Schema(
        pa.schema(
            [
                column("a", pa.int32(), 1),
                column("b", pa.int32(), 2, required=True, write_default="7"),
                column("c", pa.list_(column("element", pa.int32(), 4)), 3),
            ]
        )
    )
    batch = pa.record_batch({"a": pa.array([1, 2], pa.int32())})
    assert conform(batch, schema).to_pydict() == {"a": [1, 2], "b": [7, 7], "c": [None, None]}


def test_a_missing_required_column_is_refused():
    schema = Schema(
        pa.schema([column("a", pa.int32(), 1), column("b", pa.int32(), 2, required=True)])
    )
    with pytest.raises(SchemaMismatchError, match="column b: it is required") as caught:
        conform(pa.record_batch({"a": pa.array([1], pa.int32())}), schema)
    assert caught.value.column == "b"


NESTED = column(
    "s",
    pa.struct(
        [
            column("x", pa.int32(), 2, required=True),
            column("items", pa.list_(column("element", pa.int64(), 4, required=True)), 3),
            column(
                "m",
                pa.map_(
                    column("key", pa.string(), 6, required=True),
                    column("value", pa.int32(), 7, required=True),
                ),
                5,
            ),
        ]
    ),
    1,
)
GIVEN = pa.struct(
    [
        ("m", pa.map_(pa.large_string(), pa.int64())),
        ("X", pa.int64()),
        ("items", pa.large_list(pa.int32())),
    ]
)


def test_nested_values_are_conformed_at_every_depth():
    rows = [
        {"X": 1, "items": [1, 2], "m": [("a", 1)]},
        None,
        {"X": 3, "items": None, "m": None},
        {"X": 4, "items": [], "m": []},
    ]
    values = pa.array([rows[0], *rows], GIVEN).slice(1)
    assert conformed(values, NESTED).to_pylist() == [
        {"x": 1, "items": [1, 2], "m": [("a", 1)]},
        None,
        {"x": 3, "items": None, "m": None},
        {"x": 4, "items": [], "m": []},
    ]


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"X": None, "items": [], "m": []}, "s.x"),
        ({"X": 1, "items": [None], "m": []}, "s.items.element"),
        ({"X": 1, "items": [], "m": [("a", None)]}, "s.m.value"),
    ],
)
def test_a_null_in_a_required_nested_field_names_the_field(row, path):
    with pytest.raises(SchemaMismatchError, match="required") as caught:
        conformed(pa.array([row], GIVEN), NESTED)
    assert caught.value.column == path


def test_a_null_in_a_required_column_says_how_many():
    to = column("c", pa.int32(), 1, required=True)
    with pytest.raises(SchemaMismatchError, match="2 of 3 rows; first at row 1"):
        conformed(pa.array([1, None, None], pa.int32()), to)


def test_structs_with_other_names_go_by_place():
    to = column("s", pa.struct([column("a", pa.int32(), 2), column("b", pa.string(), 3)]), 1)
    given = pa.array([{"_1": 1, "_2": "x"}])
    assert conformed(given, to).to_pylist() == [{"a": 1, "b": "x"}]


def test_a_missing_nested_field_is_null_and_an_extra_one_refused():
    to = column("s", pa.struct([column("a", pa.int64(), 2), column("b", pa.string(), 3)]), 1)
    assert conformed(pa.array([{"a": 1}]), to).to_pylist() == [{"a": 1, "b": None}]
    with pytest.raises(SchemaMismatchError, match="no column c"):
        conformed(pa.array([{"a": 1, "c": 2}]), to)
