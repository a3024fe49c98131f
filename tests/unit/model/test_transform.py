"""The partition transforms against the spec's vectors and plain-Python oracles."""

import datetime as dt
import uuid
from decimal import Decimal

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.human import human_text
from rowlake.model.partition import PartitionField, PartitionSpec
from rowlake.model.schema import Schema, field_id
from rowlake.model.transform import (
    apply_transform,
    parse_transform,
    partition_path,
    partition_type,
    result_type,
)
from rowlake.model.values import encode

N = 2**31 - 1
EPOCH = dt.datetime(1970, 1, 1)


def transformed(transform, values, arrow_type):
    result = apply_transform(transform, pa.array(values, arrow_type))
    assert result.type == result_type(transform, arrow_type)
    return result.to_pylist()


def bucket_of(hashed: int, count: int = N) -> int:
    return (hashed & 0x7FFFFFFF) % count


@pytest.mark.spec("Appendix B: 32-bit hash requirements")
@pytest.mark.parametrize(
    ("arrow_type", "value", "hashed"),
    [
        (pa.int32(), 34, 2017239379),
        (pa.int64(), 34, 2017239379),
        (pa.decimal128(9, 2), Decimal("14.20"), -500754589),
        (pa.date32(), dt.date(2017, 11, 16), -653330422),
        (pa.time64("us"), dt.time(22, 31, 8), -662762989),
        (pa.timestamp("us"), dt.datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        (pa.timestamp("us"), dt.datetime(2017, 11, 16, 22, 31, 8, 1), -1207196810),
        (pa.timestamp("us", "UTC"), dt.datetime(2017, 11, 16, 22, 31, 8, 1), -1207196810),
        (pa.timestamp("ns"), dt.datetime(2017, 11, 16, 22, 31, 8, 1), -1207196810),
        (pa.timestamp("ns", "UTC"), dt.datetime(2017, 11, 16, 22, 31, 8, 1), -1207196810),
        (pa.string(), "iceberg", 1210000089),
        (pa.large_string(), "iceberg", 1210000089),
        (pa.string_view(), "iceberg", 1210000089),
        (pa.binary(16), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        (pa.binary(4), b"\x00\x01\x02\x03", -188683207),
        (pa.binary(), b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_bucket_hashes_as_the_spec_says(arrow_type, value, hashed):
    assert transformed(f"bucket[{N}]", [value, None], arrow_type) == [bucket_of(hashed), None]


@pytest.mark.spec("Appendix B: timestamp_ns is hashed as microseconds")
def test_bucket_of_nanoseconds_rounds_down_to_microseconds():
    nanos, micros = pa.array([-1, -1001, 1999]), pa.array([-1, -2, 1])
    assert apply_transform("bucket[97]", nanos.cast(pa.timestamp("ns"))).equals(
        apply_transform("bucket[97]", micros.cast(pa.timestamp("us")))
    )


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, N))
def test_bucket_of_longs_is_murmur3(values, count):
    expected = [bucket_of(mmh3.hash(v.to_bytes(8, "little", signed=True)), count) for v in values]
    assert transformed(f"bucket[{count}]", values, pa.int64()) == expected


@given(
    st.lists(
        st.none() | st.decimals(allow_nan=False, places=4, min_value=-(10**20), max_value=10**20)
    )
)
def test_bucket_of_decimals_hashes_the_shortest_unscaled_bytes(values):
    def expected(value):
        unscaled = int(value.scaleb(4))
        length = (unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()) // 8 + 1
        return bucket_of(mmh3.hash(unscaled.to_bytes(length, "big", signed=True)), 16)

    wanted = [None if value is None else expected(value) for value in values]
    assert transformed("bucket[16]", values, pa.decimal128(38, 4)) == wanted


def test_bucket_crosses_hash_blocks_and_chunks():
    values = np.arange(-50_000, 50_000)
    whole = apply_transform("bucket[11]", pa.array(values))
    assert apply_transform("bucket[11]", pa.chunked_array([values[:7], values[7:]])).equals(whole)
    assert whole[99_999].as_py() == bucket_of(mmh3.hash((49_999).to_bytes(8, "little")), 11)
    assert apply_transform("bucket[11]", pa.chunked_array([], pa.int64())).equals(
        pa.array([], pa.int32())
    )


def test_dictionary_values_come_out_plain():
    encoded = pa.array(["iceberg", None, "ice", "iceberg"]).dictionary_encode()
    assert apply_transform("truncate[3]", encoded).to_pylist() == ["ice", None, "ice", "ice"]


def test_a_slice_of_an_array_is_read_from_its_offset():
    values = pa.array([5, None, -5, None, 17])[2:]
    assert apply_transform("truncate[10]", values).to_pylist() == [-10, None, 10]


@pytest.mark.spec("Truncate Transform Details: negative values are rounded down")
@given(st.lists(st.none() | st.integers(-(2**62), 2**62)), st.integers(1, N))
def test_truncate_of_longs_rounds_down(values, width):
    wanted = [None if value is None else value - value % width for value in values]
    assert transformed(f"truncate[{width}]", values, pa.int64()) == wanted


@pytest.mark.spec("Truncate Transform Details: int, decimal, string and binary")
def test_truncate_of_other_types():
    assert transformed("truncate[10]", [1, -1], pa.int32()) == [0, -10]
    cents = [Decimal("10.65"), Decimal("-0.05"), Decimal("-10.50"), None]
    wanted = [Decimal("10.50"), Decimal("-0.50"), Decimal("-10.50"), None]
    assert transformed("truncate[50]", cents, pa.decimal128(9, 2)) == wanted
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        assert transformed("truncate[3]", ["iceberg", "a😀bc", "é", None], text) == [
            "ice",
            "a😀b",
            "é",
            None,
        ]
    for binary in (pa.binary(), pa.large_binary(), pa.binary_view()):
        assert transformed("truncate[2]", [b"\x00\xff\x01", b"", None], binary) == [
            b"\x00\xff",
            b"",
            None,
        ]


@pytest.mark.spec("Partition Transforms: year, month, day, hour")
@given(st.lists(st.none() | st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2200, 1, 1))))
def test_dates_and_times_are_counted_from_1970_rounded_down(values):
    def expected(change):
        return [None if value is None else change(value) for value in values]

    for unit in ("us", "ns"):
        if unit == "ns":
            values = [v for v in values if v is None or v.year > 1680]
        for zone in (None, "UTC"):
            times = pa.timestamp(unit, zone)
            assert transformed("year", values, times) == expected(lambda v: v.year - 1970)
            assert transformed("month", values, times) == expected(
                lambda v: (v.year - 1970) * 12 + v.month - 1
            )
            assert transformed("day", values, times) == expected(lambda v: v.date())
            assert transformed("hour", values, times) == expected(
                lambda v: (v - EPOCH) // dt.timedelta(hours=1)
            )
    dates = [None if value is None else value.date() for value in values]
    assert transformed("year", dates, pa.date32()) == expected(lambda v: v.year - 1970)
    assert transformed("day", dates, pa.date32()) == dates


def test_identity_and_void():
    assert transformed("identity", [1.5, None], pa.float64()) == [1.5, None]
    assert transformed("void", ["a", None], pa.string()) == [None, None]


@pytest.mark.parametrize("text", ["zorder", "bucket", "bucket[0]", "bucket[-1]", "day[3]", ""])
def test_unknown_transforms_are_refused(text):
    with pytest.raises(UnsupportedFeatureError, match="Unknown partition transform"):
        parse_transform(text)


@pytest.mark.parametrize(
    ("transform", "arrow_type"),
    [
        ("hour", pa.date32()),
        ("year", pa.int64()),
        ("bucket[4]", pa.float64()),
        ("bucket[4]", pa.bool_()),
        ("truncate[4]", pa.date32()),
        ("identity", pa.list_(pa.int32())),
    ],
)
def test_types_that_a_transform_does_not_take_are_refused(transform, arrow_type):
    with pytest.raises(InvalidStatementError, match="Cannot partition by"):
        result_type(transform, arrow_type)


def column(name, arrow_type, number, **metadata):
    tags = {"PARQUET:field_id": str(number)} | {f"rowlake:{k}": v for k, v in metadata.items()}
    return pa.field(name, arrow_type, metadata=tags)


def test_partition_type_carries_ids_and_survives_dropped_columns():
    schema = Schema(pa.schema([column("u", pa.binary(16), 1, type="uuid")]))
    old = Schema(pa.schema([column("gone", pa.string(), 2)]))
    spec = PartitionSpec(
        0,
        (
            PartitionField(1, 1000, "identity", "u"),
            PartitionField(2, 1001, "identity", "gone"),
            PartitionField(2, 1002, "bucket[4]", "gone_bucket"),
            PartitionField(3, 1003, "identity", "lost"),
            PartitionField(1, 1004, "zorder", "future"),
        ),
    )
    found = partition_type(spec, schema, [old])
    assert [part.type for part in found] == [
        pa.binary(16),
        pa.string(),
        pa.int32(),
        pa.null(),
        pa.string(),
    ]
    assert [field_id(part) for part in found] == [1000, 1001, 1002, 1003, 1004]
    assert found[0].metadata[b"rowlake:type"] == b"uuid"


@pytest.mark.parametrize(
    ("transform", "arrow_type", "value", "text"),
    [
        ("year", pa.int32(), 54, "2024"),
        ("month", pa.int32(), -1, "1969-12"),
        ("day", pa.date32(), dt.date(2024, 1, 1), "2024-01-01"),
        ("hour", pa.int32(), -1, "1969-12-31-23"),
        ("bucket[4]", pa.int32(), 3, "3"),
        ("identity", pa.date32(), dt.date(1969, 2, 3), "1969-02-03"),
        (
            "identity",
            pa.timestamp("us"),
            dt.datetime(2017, 12, 1, 10, 12, 55, 38000),
            "2017-12-01T10:12:55.038",
        ),
        (
            "identity",
            pa.timestamp("us", "UTC"),
            dt.datetime(2017, 12, 1, 10, 0),
            "2017-12-01T10:00:00+00:00",
        ),
        ("identity", pa.timestamp("ns"), 1, "1970-01-01T00:00:00.000000001"),
        ("identity", pa.time64("us"), dt.time(10, 12), "10:12"),
        ("identity", pa.time64("us"), dt.time(10, 12, 55, 38000), "10:12:55.038"),
        ("identity", pa.time64("us"), dt.time(0, 0, 0, 1), "00:00:00.000001"),
        ("identity", pa.decimal128(9, 2), Decimal("-1.20"), "-1.20"),
        ("identity", pa.bool_(), True, "true"),
        ("identity", pa.float64(), 1e10, "1.0E10"),
        ("identity", pa.float64(), 1.5, "1.5"),
        ("identity", pa.float32(), 0.1, "0.1"),
        ("identity", pa.float64(), float("nan"), "NaN"),
        ("identity", pa.binary(), b"\x01\x02\x03", "AQID"),
        ("truncate[2]", pa.string(), "ab", "ab"),
        ("identity", pa.string(), None, "null"),
        ("void", pa.int64(), None, "null"),
    ],
)
def test_partition_values_read_as_java_writes_them(transform, arrow_type, value, text):
    assert human_text(transform, pa.array([value], arrow_type)[0]) == text


def path_of(schema, *parts):
    """Return the partition path of (transform, source id, value) parts."""
    fields = tuple(
        PartitionField(source, 1000 + at, transform, f"p {at}~")
        for at, (transform, source, _) in enumerate(parts)
    )
    spec = PartitionSpec(0, fields)
    kinds = partition_type(spec, schema)
    values = tuple(
        encode(pa.array([value], kind.type))[0].as_py()
        for kind, (_, _, value) in zip(kinds, parts, strict=True)
    )
    return partition_path(spec, schema, values)


def test_partition_paths_are_escaped_as_java_escapes():
    schema = Schema(
        pa.schema(
            [
                column("s", pa.string(), 1),
                column("t", pa.timestamp("us", "UTC"), 2),
                column("u", pa.binary(16), 3, type="uuid"),
            ]
        )
    )
    path = path_of(schema, ("identity", 1, "a/b=é *~"), ("day", 2, dt.date(1969, 12, 31)))
    assert path == "p+0%7E=a%2Fb%3D%C3%A9+*%7E/p+1%7E=1969-12-31"
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    assert path_of(schema, ("identity", 2, moment)) == "p+0%7E=2024-01-01T00%3A00%3A00%2B00%3A00"
    assert path_of(schema, ("identity", 3, uuid.UUID(int=7).bytes)) == f"p+0%7E={uuid.UUID(int=7)}"
    assert path_of(schema, ("bucket[4]", 1, None), ("void", 1, None)) == "p+0%7E=null/p+1%7E=null"
    assert path_of(schema) == ""


@pytest.mark.parametrize("transform", ["bucket[7]", "truncate[4]"])
def test_decimals_may_lie_anywhere_in_memory(transform):
    """Batches that Spark sends are aligned to 8 bytes, Arrow's own arrays to 64."""
    plain = pa.array([None, *range(-50, 50)], pa.decimal128(9, 2))
    validity, data = plain.buffers()
    shifted = pa.allocate_buffer(data.size + 16)
    start = 8 + (-shifted.address % 16)
    memoryview(shifted)[start : start + data.size] = memoryview(data)
    moved = pa.Array.from_buffers(
        plain.type, len(plain), [validity, shifted.slice(start, data.size)]
    )
    assert moved.buffers()[1].address % 16 == 8
    assert apply_transform(transform, moved).equals(apply_transform(transform, plain))
    part = apply_transform(transform, moved.slice(3, 20))
    assert part.equals(apply_transform(transform, plain.slice(3, 20)))
