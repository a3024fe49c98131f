from __future__ import annotations

import datetime
import decimal
import uuid

import pyarrow as pa
import pytest

from rowlake.engine.present import Presenter, present, presented_schema

UUIDS = [uuid.UUID(int=number * 0x1234567890ABCDEF1234567) for number in range(5)]
AS_UUID = {"rowlake:type": "uuid"}


def uuid_field(name: str) -> pa.Field:
    return pa.field(name, pa.binary(16), metadata=AS_UUID)


def shown(array: pa.Array, field: pa.Field, **options: bool) -> pa.Array:
    schema = pa.schema([field])
    return present(pa.RecordBatch.from_arrays([array], schema=schema), schema, **options).column(0)


def test_uuids_become_canonical_text():
    array = pa.array([one.bytes for one in UUIDS] + [None], pa.binary(16))
    assert shown(array, uuid_field("u")).to_pylist() == [*map(str, UUIDS), None]


def test_a_slice_of_uuids_starts_where_the_slice_does():
    array = pa.array([None, *(one.bytes for one in UUIDS), None], pa.binary(16))
    for start in range(len(array)):
        text = shown(array.slice(start, 3), uuid_field("u"))
        text.validate(full=True)
        assert text.to_pylist() == [None, *map(str, UUIDS), None][start : start + 3]


def test_no_uuids_are_no_text():
    assert shown(pa.array([], pa.binary(16)), uuid_field("u")).to_pylist() == []


def test_the_extension_type_of_arrow_is_a_uuid_too():
    storage = pa.array([UUIDS[1].bytes, None], pa.binary(16))
    array = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    assert shown(array, pa.field("u", pa.uuid())).to_pylist() == [str(UUIDS[1]), None]


def test_nanoseconds_are_rounded_down_also_before_1970():
    array = pa.array([1999, -1, -1001, None], pa.timestamp("ns"))
    out = shown(array, pa.field("t", pa.timestamp("ns")))
    assert out.type == pa.timestamp("us")
    assert out.cast(pa.int64()).to_pylist() == [1, -1, -2, None]


def test_nanoseconds_with_zone_keep_the_instant():
    array = pa.array([1_500, -1], pa.timestamp("ns", "UTC"))
    out = shown(array, pa.field("t", array.type))
    assert out.type == pa.timestamp("us", "UTC")
    assert out.cast(pa.int64()).to_pylist() == [1, -1]


def test_time_is_time_where_spark_has_it_and_text_elsewhere():
    array = pa.array([datetime.time(1, 2, 3, 4), None], pa.time64("us"))
    field = pa.field("t", pa.time64("us"))
    assert shown(array, field).type == pa.time64("ns")
    assert shown(array, field).to_pylist() == array.to_pylist()
    assert shown(array, field, has_time=False).to_pylist() == ["01:02:03.000004", None]


def test_fixed_binary_is_binary():
    out = shown(pa.array([b"abc", None], pa.binary(3)), pa.field("f", pa.binary(3)))
    assert out.type == pa.binary()
    assert out.to_pylist() == [b"abc", None]


NESTED = pa.schema(
    [
        pa.field("s", pa.struct([uuid_field("u"), pa.field("n", pa.int32())])),
        pa.field("l", pa.list_(uuid_field("element"))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", pa.timestamp("ns")))),
        pa.field("deep", pa.list_(pa.struct([pa.field("f", pa.binary(2))]))),
    ]
)
NESTED_ROWS = [
    {
        "s": {"u": UUIDS[1].bytes, "n": 1},
        "l": [UUIDS[2].bytes, None],
        "m": [("a", datetime.datetime(2020, 1, 1))],
        "deep": [{"f": b"ab"}, None],
    },
    {"s": None, "l": None, "m": None, "deep": None},
    {"s": {"u": None, "n": 2}, "l": [], "m": [], "deep": [{"f": None}]},
]
NESTED_SHOWN = [
    {
        "s": {"u": str(UUIDS[1]), "n": 1},
        "l": [str(UUIDS[2]), None],
        "m": [("a", datetime.datetime(2020, 1, 1))],
        "deep": [{"f": b"ab"}, None],
    },
    {"s": None, "l": None, "m": None, "deep": None},
    {"s": {"u": None, "n": 2}, "l": [], "m": [], "deep": [{"f": None}]},
]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_nested_columns_are_converted_inside(start):
    batch = pa.RecordBatch.from_pylist(NESTED_ROWS, NESTED).slice(start)
    out = present(batch, NESTED)
    out.validate(full=True)
    assert out.schema == presented_schema(NESTED)
    assert out.to_pylist() == NESTED_SHOWN[start:]


def test_a_batch_in_spark_types_is_passed_on_untouched():
    schema = pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.string())]))])
    batch = pa.RecordBatch.from_pylist([{"a": 1, "s": {"x": "y"}}], schema)
    assert Presenter(schema)(batch) is batch


@pytest.mark.parametrize(
    ("array", "plain"),
    [
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
        (pa.array(["a", None], pa.large_string()), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array([b"a", None], pa.large_binary()), pa.binary()),
        (pa.array([[1], None, []], pa.large_list(pa.int64())), pa.list_(pa.int64())),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), pa.list_(pa.int64())),
        (pa.array([decimal.Decimal("1.20")], pa.decimal32(9, 2)), pa.decimal128(9, 2)),
        (pa.array([2**63, None], pa.uint64()), pa.decimal128(20, 0)),
        (pa.array([0, None], pa.timestamp("ms", "Europe/Paris")), pa.timestamp("us", "UTC")),
    ],
)
def test_types_that_spark_does_not_know_are_made_plain(array, plain):
    out = shown(array, pa.field("c", array.type))
    out.validate(full=True)
    assert out.type == plain
    assert out.to_pylist() == array.to_pylist()


def test_names_nullability_and_metadata_are_kept():
    field = pa.field("u", pa.binary(16), nullable=False, metadata={**AS_UUID, "rowlake:doc": "id"})
    (kept,) = presented_schema(pa.schema([field]))
    assert (kept.name, kept.nullable, kept.type) == ("u", False, pa.string())
    assert kept.metadata == field.metadata
