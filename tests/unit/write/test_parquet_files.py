from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.write_helpers import column, context_of, view_of, write

UUIDS = [uuid.UUID(int=1), None, uuid.UUID(int=2**127)]
FIELDS = [
    column("flag", pa.bool_(), 1),
    column("small", pa.int32(), 2, required=True),
    column("big", pa.int64(), 3),
    column("single", pa.float32(), 4),
    column("double", pa.float64(), 5),
    column("dec9", pa.decimal128(9, 2), 6),
    column("dec18", pa.decimal128(18, 0), 7),
    column("dec38", pa.decimal128(38, 10), 8),
    column("day", pa.date32(), 9),
    column("clock", pa.time64("us"), 10),
    column("local", pa.timestamp("us"), 11),
    column("instant", pa.timestamp("us", "UTC"), 12),
    column("nanos", pa.timestamp("ns"), 13),
    column("nanos tz", pa.timestamp("ns", "UTC"), 14),
    column("text", pa.string(), 15),
    column("bytes", pa.binary(), 16),
    column("fixed", pa.binary(3), 17),
    column("id", pa.binary(16), 18, type="uuid"),
    column("nothing", pa.null(), 19, type="unknown"),
    column(
        "nested",
        pa.struct(
            [
                column("x", pa.int32(), 21, required=True),
                column("ids", pa.list_(column("element", pa.binary(16), 23, type="uuid")), 22),
            ]
        ),
        20,
    ),
    column(
        "map",
        pa.map_(
            column("key", pa.string(), 25, required=True),
            column("value", pa.struct([column("y", pa.float64(), 27)]), 26),
        ),
        24,
    ),
]
ROWS = {
    "flag": [True, None, False],
    "small": [1, -(2**31), 2**31 - 1],
    "big": [None, -(2**63), 2**63 - 1],
    "single": [1.5, float("inf"), None],
    "double": [-0.0, None, 1e300],
    "dec9": [Decimal("1234567.89"), None, Decimal("-0.01")],
    "dec18": [Decimal(10**18 - 1), Decimal(-(10**18) + 1), None],
    "dec38": [Decimal("-1.0000000001"), Decimal(10**27), None],
    "day": [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)],
    "clock": [dt.time(0), dt.time(23, 59, 59, 999_999), None],
    "local": [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4), None],
    "instant": [None, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.timezone.utc), None],
    "nanos": [1, -1, None],
    "nanos tz": [2**62, None, -(2**62)],
    "text": ["", None, "žluťoučký 🐎"],
    "bytes": [b"", None, b"\xff\x00"],
    "fixed": [b"abc", None, b"\xff\xff\xff"],
    "id": [None if each is None else each.bytes for each in UUIDS],
    "nothing": [None, None, None],
    "nested": [
        {"x": 1, "ids": [uuid.UUID(int=5).bytes, None]},
        None,
        {"x": 2, "ids": None},
    ],
    "map": [[("a", {"y": 1.0}), ("b", None)], None, []],
}


def rows_of_all_types() -> pa.Table:
    return pa.table(
        [pa.array(ROWS[each.name], each.type) for each in FIELDS], schema=pa.schema(FIELDS)
    )


def storage_of(table: pa.Table) -> list[dict[str, object]]:
    return table.to_pylist()


def test_all_types_come_back_from_parquet(tmp_path):
    written = write(context_of(view_of(tmp_path, FIELDS)), rows_of_all_types())
    (location,) = written["location"].to_pylist()
    table = pq.read_table(location)
    expected = dict(ROWS)
    expected.pop("nothing")
    expected["id"] = UUIDS
    expected["nested"] = [
        {"x": 1, "ids": [uuid.UUID(int=5), None]},
        None,
        {"x": 2, "ids": None},
    ]
    for name, values in expected.items():
        found = table[name]
        if name.startswith("nanos"):
            found = found.cast(pa.int64())
        assert found.to_pylist() == values, name


def test_every_parquet_column_carries_its_field_id_and_type(tmp_path):
    written = write(context_of(view_of(tmp_path, FIELDS)), rows_of_all_types())
    shown = str(pq.read_metadata(written["location"][0].as_py()).schema)
    for expected in [
        "required int32 field_id=2 small",
        "optional int32 field_id=6 dec9 (Decimal(precision=9, scale=2))",
        "optional int64 field_id=7 dec18 (Decimal(precision=18, scale=0))",
        "optional fixed_len_byte_array(16) field_id=8 dec38 (Decimal(precision=38, scale=10))",
        "optional int64 field_id=11 local (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
        "optional int64 field_id=12 instant (Timestamp(isAdjustedToUTC=true, timeUnit=microsec",
        "optional int64 field_id=13 nanos (Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds",
        "optional fixed_len_byte_array(16) field_id=18 id (UUID)",
        "required int32 field_id=21 x",
        "optional group field_id=22 ids (List)",
        "optional fixed_len_byte_array(16) field_id=23 element (UUID)",
        "required binary field_id=25 key (String)",
        "optional group field_id=26 value",
        "optional double field_id=27 y",
    ]:
        assert expected in shown
    assert "nothing" not in shown


def test_written_files_say_what_they_are(tmp_path):
    written = write(context_of(view_of(tmp_path, FIELDS)), rows_of_all_types())
    (row,) = written.to_pylist()
    assert (row["content"], row["file_format"], row["spec_id"]) == (0, "PARQUET", 0)
    assert (row["partition"], row["record_count"], row["sort_order_id"]) == ([], 3, 0)
    footer = pq.read_metadata(row["location"])
    assert (
        row["file_size_in_bytes"]
        == (tmp_path / "data").rglob("*.parquet").__next__().stat().st_size
    )
    assert row["split_offsets"] == [4]
    assert footer.num_row_groups == 1
    assert row["location"].startswith(f"{tmp_path}/data/00000-")


def test_no_rows_make_no_file(tmp_path):
    empty = rows_of_all_types().slice(0, 0)
    assert len(write(context_of(view_of(tmp_path, FIELDS)), empty)) == 0
    assert not list(tmp_path.rglob("*.parquet"))


def test_parquet_properties_are_obeyed(tmp_path):
    properties = {
        "write.parquet.compression-codec": "gzip",
        "write.parquet.bloom-filter-enabled.column.big": "true",
        "write.parquet.bloom-filter-enabled.column.nested.x": "true",
        "write.parquet.dict-encoding-enabled.column.text": "false",
        "write.parquet.dict-encoding-enabled.column.big": "true",
        "write.parquet.page-version": "v2",
        "write.parquet.stats-enabled.column.text": "false",
    }
    view = view_of(tmp_path, FIELDS, properties=properties)
    written = write(context_of(view), rows_of_all_types())
    group = pq.read_metadata(written["location"][0].as_py()).row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert columns["big"].compression == "GZIP"
    assert "RLE_DICTIONARY" in columns["big"].encodings
    assert "RLE_DICTIONARY" not in columns["text"].encodings
    assert columns["big"].bloom_filter_offset is not None
    assert columns["nested.x"].bloom_filter_offset is not None
    assert columns["text"].bloom_filter_offset is None
    assert columns["text"].statistics is None
    assert 15 not in dict(written["value_counts"][0].as_py())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.compression-codec", "rar"),
        ("write.parquet.row-group-size-bytes", "many"),
        ("write.target-file-size-bytes", "0"),
        ("write.metadata.metrics.default", "some"),
        ("write.object-storage.enabled", "perhaps"),
        ("write.format.default", "csv"),
        ("write.parquet.bloom-filter-enabled.column.big", "x"),
    ],
)
def test_a_property_value_that_makes_no_sense_is_refused(tmp_path, name, value):
    with pytest.raises(InvalidStatementError, match=f"{name}={value}"):
        context_of(view_of(tmp_path, FIELDS, properties={name: value}))


def test_variants_are_refused_before_anything_is_written(tmp_path):
    fields = [column("v", pa.binary(), 1, type="variant")]
    with pytest.raises(UnsupportedFeatureError, match="column v"):
        context_of(view_of(tmp_path, fields))


def test_whole_numbers_get_delta_encoding_and_repeated_values_a_dictionary(tmp_path):
    rows = 50_000
    fields = [
        column("sorted", pa.int64(), 1),
        column("few", pa.int32(), 2),
        column("word", pa.string(), 3),
        column("noise", pa.string(), 4),
        column("price", pa.decimal128(9, 2), 5),
    ]
    table = pa.table(
        [
            pa.array(range(rows), pa.int64()),
            pa.array([(i * 7919) % 50 * 1_000_003 for i in range(rows)], pa.int32()),
            pa.array([f"word {i % 10}" for i in range(rows)]),
            pa.array([f"{i * 2654435761 % 2**32:x}" for i in range(rows)]),
            pa.array([Decimal(i * 7919 % 1_000_003) / 100 for i in range(rows)], fields[4].type),
        ],
        schema=pa.schema(fields),
    )
    written = write(context_of(view_of(tmp_path, fields)), table)
    location = written["location"][0].as_py()
    group = pq.read_metadata(location).row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(5)}
    assert "DELTA_BINARY_PACKED" in encodings["sorted"]
    assert "RLE_DICTIONARY" in encodings["few"]
    assert "RLE_DICTIONARY" in encodings["word"]
    assert "RLE_DICTIONARY" not in encodings["noise"]
    assert "DELTA_BINARY_PACKED" in encodings["price"]
    assert pq.read_table(location).equals(table)


def test_row_lineage_columns_ride_along_where_asked(tmp_path):
    fields = [column("a", pa.int32(), 1)]
    view = view_of(tmp_path, fields, format_version=3)
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "_row_id": pa.array([7, None], pa.int64())})
    written = write(context_of(view, row_lineage=True), rows)
    table = pq.read_table(written["location"][0].as_py())
    assert table.to_pydict() == {
        "a": [1, 2],
        "_row_id": [7, None],
        "_last_updated_sequence_number": [None, None],
    }
    assert table.schema.field("_row_id").metadata[b"PARQUET:field_id"] == b"2147483540"


def test_row_lineage_needs_format_version_3(tmp_path):
    with pytest.raises(UnsupportedFeatureError, match="format version 2"):
        context_of(view_of(tmp_path, [column("a", pa.int32(), 1)]), row_lineage=True)
