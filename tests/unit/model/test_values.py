"""The spec's single-value encodings: golden bytes, round trips, promotions."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.model.files import ENCODED_PARTITION
from rowlake.model.values import (
    decode,
    decode_partitions,
    encode,
    encode_partitions,
    from_json,
    to_json,
)

UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
UTC = dt.timezone.utc
MOMENT = dt.datetime(2017, 11, 16, 22, 31, 8, 123456)
MOMENT_BYTES = (1510871468123456).to_bytes(8, "little")

GOLDEN = [
    (pa.bool_(), True, b"\x01"),
    (pa.int32(), -34, (-34).to_bytes(4, "little", signed=True)),
    (pa.int64(), 34, (34).to_bytes(8, "little")),
    (pa.float32(), 1.0, b"\x00\x00\x80\x3f"),
    (pa.float64(), -4.5, b"\x00\x00\x00\x00\x00\x00\x12\xc0"),
    (pa.date32(), dt.date(1969, 12, 30), (-2).to_bytes(4, "little", signed=True)),
    (pa.time64("us"), dt.time(0, 0, 1), (1_000_000).to_bytes(8, "little")),
    (pa.timestamp("us"), MOMENT, MOMENT_BYTES),
    (pa.timestamp("us", "UTC"), MOMENT.replace(tzinfo=UTC), MOMENT_BYTES),
    (pa.timestamp("ns"), MOMENT, (1510871468123456000).to_bytes(8, "little")),
    (pa.string(), "iceberg é", "iceberg é".encode()),
    (pa.binary(16), UUID.bytes, UUID.bytes),
    (pa.binary(3), b"\x00\x01\xff", b"\x00\x01\xff"),
    (pa.binary(), b"", b""),
    (pa.decimal128(9, 2), Decimal("14.20"), b"\x05\x8c"),
    (pa.decimal128(9, 2), Decimal("-0.01"), b"\xff"),
    (pa.decimal128(9, 2), Decimal("1.28"), b"\x00\x80"),
    (pa.decimal128(9, 2), Decimal("-1.28"), b"\x80"),
    (pa.decimal128(9, 2), Decimal("0.00"), b"\x00"),
]


@pytest.mark.spec("Appendix D: binary single-value serialization")
@pytest.mark.parametrize(("of_type", "value", "encoded"), GOLDEN, ids=lambda item: str(item))
def test_values_have_the_bytes_of_the_spec(of_type, value, encoded):
    array = pa.array([None, value, value, None], of_type)
    assert encode(array).to_pylist() == [None, encoded, encoded, None]
    assert decode(encode(array), of_type).equals(array)
    assert decode(encode(array[2:]), of_type).equals(array[2:])
    assert decode(encode(array)[1:3], of_type).equals(array[1:3])
    assert decode(encode(array[:0]), of_type).equals(array[:0])


PROMOTIONS = [
    (pa.array([1, -2, None], pa.int32()), pa.array([1, -2, None], pa.int64())),
    (pa.array([1.5, None], pa.float32()), pa.array([1.5, None], pa.float64())),
    (
        pa.array([dt.date(2024, 1, 2), None]),
        pa.array([dt.datetime(2024, 1, 2), None], pa.timestamp("us")),
    ),
    (
        pa.array([dt.date(1960, 1, 2), None]),
        pa.array([dt.datetime(1960, 1, 2), None], pa.timestamp("ns")),
    ),
    (
        pa.array([Decimal("-1.50"), None], pa.decimal128(4, 2)),
        pa.array([Decimal("-1.50"), None], pa.decimal128(38, 2)),
    ),
]


@pytest.mark.spec("Schema Evolution: type promotion")
@pytest.mark.parametrize(("narrow", "wide"), PROMOTIONS, ids=lambda item: str(item.type))
def test_values_of_a_narrower_type_decode_to_the_promoted_one(narrow, wide):
    assert decode(encode(narrow), wide.type).equals(wide)
    mixed = pa.concat_arrays([encode(narrow), encode(wide)])
    assert decode(mixed, wide.type).equals(pa.concat_arrays([wide, wide]))


def test_decimals_with_more_bytes_than_needed_decode():
    assert decode(pa.array([b"\x00\x00\x05", b"\xff" * 16]), pa.decimal128(5, 0)).to_pylist() == [
        Decimal(5),
        Decimal(-1),
    ]


@pytest.mark.parametrize(
    ("encoded", "to"),
    [
        (b"\x01\x02", pa.int32()),
        (b"\x01\x02\x03", pa.int64()),
        (b"\x01" * 4, pa.time64("us")),
        (b"\x01" * 4, pa.timestamp("us", "UTC")),
        (b"", pa.decimal128(9, 2)),
        (b"\x01" * 17, pa.decimal128(38, 2)),
        (b"\xff", pa.string()),
        (b"\x01", pa.binary(2)),
        (b"", pa.bool_()),
    ],
    ids=str,
)
def test_damaged_encodings_are_named(encoded, to):
    with pytest.raises(CorruptTableError, match="a value of type"):
        decode(pa.array([encoded], pa.binary()), to)


def test_other_arrow_shapes_of_the_same_values_encode_alike():
    plain = encode(pa.array(["a", "b", "a"]))
    assert encode(pa.array(["a", "b", "a"]).dictionary_encode()).equals(plain)
    assert encode(pa.array(["a", "b", "a"], pa.large_string())).equals(plain)
    assert encode(pa.chunked_array([["a"], ["b", "a"]])).equals(plain)
    assert encode(pa.array([7], pa.int32()), "long").to_pylist() == [(7).to_bytes(8, "little")]
    assert encode(pa.nulls(2)).to_pylist() == [None, None]


def test_nested_values_have_no_binary_form():
    with pytest.raises(InvalidStatementError):
        encode(pa.array([[1]]))


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)))
@settings(max_examples=60, deadline=None)
def test_decimals_are_minimal_twos_complement(unscaled):
    array = pa.array([None if n is None else Decimal(n) for n in unscaled], pa.decimal128(38, 0))
    encoded = encode(array)
    expected = [
        None if n is None else n.to_bytes((n + (n < 0)).bit_length() // 8 + 1, "big", signed=True)
        for n in unscaled
    ]
    assert encoded.to_pylist() == expected
    assert decode(encoded, array.type).equals(array)


def test_partitions_encode_in_spec_order_and_come_back():
    native = pa.array(
        [{"d": dt.date(1970, 1, 2), "s": "x"}, {"d": None, "s": ""}, {"d": None, "s": None}],
        pa.struct([("d", pa.date32()), ("s", pa.string())]),
    )
    encoded = encode_partitions(native)
    assert encoded.type == ENCODED_PARTITION
    assert encoded.to_pylist() == [[b"\x01\0\0\0", b"x"], [None, b""], [None, None]]
    assert decode_partitions(encoded, native.type).equals(native)
    assert decode_partitions(encoded[1:], native.type).equals(native[1:])
    assert encode_partitions(native[2:]).to_pylist() == [[None, None]]


def test_empty_partitions_keep_their_count():
    native = pa.array([{}, {}], pa.struct([]))
    assert encode_partitions(native).to_pylist() == [[], []]
    assert decode_partitions(encode_partitions(native), native.type).equals(native)


def test_partitions_of_another_width_are_refused():
    with pytest.raises(InvalidStatementError):
        decode_partitions(pa.array([[b"x"]], ENCODED_PARTITION), pa.struct([]))


def _field(of_type, type_name=None, field_id=1):
    metadata = {"PARQUET:field_id": str(field_id)}
    if type_name:
        metadata["rowlake:type"] = type_name
    return pa.field("column", of_type, metadata=metadata)


JSON = [
    (_field(pa.bool_()), "true", True),
    (_field(pa.int32()), "34", 34),
    (_field(pa.int64()), "-34", -34),
    (_field(pa.float64()), "1.5", 1.5),
    (_field(pa.decimal128(9, 2)), '"14.20"', Decimal("14.20")),
    (_field(pa.date32()), '"2017-11-16"', dt.date(2017, 11, 16)),
    (_field(pa.time64("us")), '"22:31:08.123456"', MOMENT.time()),
    (_field(pa.timestamp("us")), '"2017-11-16T22:31:08.123456"', MOMENT),
    (
        _field(pa.timestamp("us", "UTC")),
        '"2017-11-16T22:31:08.123456+00:00"',
        MOMENT.replace(tzinfo=UTC),
    ),
    (_field(pa.string()), '"iceberg"', "iceberg"),
    (_field(pa.binary(16), "uuid"), f'"{UUID}"', UUID.bytes),
    (_field(pa.binary(4)), '"000102ff"', b"\x00\x01\x02\xff"),
    (_field(pa.binary()), '"000102ff"', b"\x00\x01\x02\xff"),
    (
        _field(pa.struct([_field(pa.int32(), field_id=2).with_name("a")])),
        '{"2": 7}',
        {"a": 7},
    ),
    (_field(pa.list_(pa.date32())), '["1970-01-02"]', [dt.date(1970, 1, 2)]),
    (
        _field(pa.map_(pa.string(), pa.int32())),
        '{"keys": ["a"], "values": [1]}',
        [("a", 1)],
    ),
    (_field(pa.string()), "null", None),
]


@pytest.mark.spec("Appendix D: JSON single-value serialization")
@pytest.mark.parametrize(("field", "text", "value"), JSON, ids=lambda item: str(item)[:40])
def test_defaults_are_read_and_written_as_json(field, text, value):
    scalar = from_json(text, field)
    assert scalar.as_py() == value
    assert scalar.type == field.type
    assert to_json(scalar, field) == text


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (_field(pa.int32()), '"x"'),
        (_field(pa.int32()), "3000000000"),
        (_field(pa.bool_()), "1"),
        (_field(pa.int64()), "true"),
        (_field(pa.date32()), '"2017-13-16"'),
        (_field(pa.binary(16), "uuid"), '"zz"'),
        (_field(pa.decimal128(3, 2)), '"x"'),
        (_field(pa.string()), "{"),
    ],
)
def test_json_of_another_type_is_refused(field, text):
    with pytest.raises(InvalidStatementError, match="column"):
        from_json(text, field)
