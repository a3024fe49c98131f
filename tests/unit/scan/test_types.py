"""Every type through every format, and Parquet's odd encodings of them."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import CorruptTableError, UnsupportedFeatureError
from rowlake.scan import avro as avro_module
from tests.scanning import (
    field,
    file_task,
    scan,
    scanned,
    schema,
    table_of,
    write_avro,
    write_orc,
    write_parquet,
)

UTC = dt.timezone.utc
U = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes

TABLE = schema(
    field("b", pa.bool_(), 1),
    field("i", pa.int32(), 2),
    field("l", pa.int64(), 3),
    field("f", pa.float32(), 4),
    field("d", pa.float64(), 5),
    field("small", pa.decimal128(7, 2), 6),
    field("mid", pa.decimal128(18, 4), 7),
    field("big", pa.decimal128(38, 10), 8),
    field("date", pa.date32(), 9),
    field("time", pa.time64("us"), 10),
    field("ts", pa.timestamp("us"), 11),
    field("tz", pa.timestamp("us", tz="UTC"), 12),
    field("ns", pa.timestamp("ns"), 13),
    field("s", pa.string(), 14),
    field("u", pa.binary(16), 15, type_name="uuid"),
    field("fixed", pa.binary(3), 16),
    field("bin", pa.binary(), 17),
    field("list", pa.list_(field("element", pa.int64(), 19)), 18),
    field(
        "map",
        pa.map_(field("key", pa.string(), 21, required=True), field("value", pa.int32(), 22)),
        20,
    ),
    field("struct", pa.struct([field("x", pa.decimal128(7, 2), 24)]), 23),
)
ROWS = [
    {
        "b": True,
        "i": -1,
        "l": 1 << 40,
        "f": 0.5,
        "d": -2.25,
        "small": Decimal("-1.10"),
        "mid": Decimal("12345678901234.5678"),
        "big": Decimal("1234567890123456789012345678.0123456789"),
        "date": dt.date(1969, 12, 31),
        "time": dt.time(23, 59, 59, 999999),
        "ts": dt.datetime(1900, 1, 1, 0, 0, 0, 1),
        "tz": dt.datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        "ns": dt.datetime(2020, 1, 1),
        "s": "ä€😀",
        "u": U,
        "fixed": b"\x00\xff\x01",
        "bin": b"\xff\x00",
        "list": [1, None],
        "map": [("k", 1), ("l", None)],
        "struct": {"x": Decimal("0.01")},
    },
    dict.fromkeys(TABLE.arrow.names),
]


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("store_schema", [True, False])
def test_parquet(tmp_path, as_integer, store_schema) -> None:
    path = write_parquet(
        tmp_path / "f.parquet",
        table_of(TABLE, ROWS),
        store_decimal_as_integer=as_integer,
        store_schema=store_schema,
    )
    found = scanned(TABLE, path)
    assert found.schema.equals(TABLE.arrow)
    assert found.to_pylist() == ROWS


def test_orc(tmp_path) -> None:
    path = write_orc(tmp_path / "f.orc", table_of(TABLE, ROWS))
    found = scanned(TABLE, file_task(path, "ORC"))
    assert found.schema.equals(TABLE.arrow)
    assert found.to_pylist() == ROWS


def test_orc_timestamps_beyond_nanoseconds_are_refused_not_wrong(tmp_path) -> None:
    table = schema(field("ts", pa.timestamp("us"), 1))
    path = write_orc(tmp_path / "f.orc", table_of(table, [{"ts": dt.datetime(9999, 1, 1)}]))
    with pytest.raises(UnsupportedFeatureError, match="1678 to 2261"):
        scan(table, file_task(path, "ORC"))


def test_orc_without_ids_goes_by_name(tmp_path) -> None:
    path = write_orc(tmp_path / "f.orc", pa.table({"x": [1], "i": [2]}))
    table = schema(field("i", pa.int64(), 7), field("missing", pa.int32(), 8))
    assert scan(table, file_task(path, "ORC")) == [{"i": 2, "missing": None}]


def logical(kind: str, name: str, **more: object) -> dict[str, object]:
    return {"type": kind, "logicalType": name, **more}


def optional(avro: object) -> list[object]:
    return ["null", avro]


AVRO = {
    "type": "record",
    "name": "table",
    "fields": [
        {"name": name, "field-id": key, "type": optional(kind), "default": None}
        for name, key, kind in [
            ("b", 1, "boolean"),
            ("i", 2, "int"),
            ("l", 3, "long"),
            ("f", 4, "float"),
            ("d", 5, "double"),
            (
                "small",
                6,
                {**logical("fixed", "decimal", precision=7, scale=2), "size": 4, "name": "d7"},
            ),
            (
                "big",
                8,
                {**logical("fixed", "decimal", precision=38, scale=10), "size": 16, "name": "d38"},
            ),
            ("date", 9, logical("int", "date")),
            ("time", 10, logical("long", "time-micros")),
            ("ts", 11, {**logical("long", "timestamp-micros"), "adjust-to-utc": False}),
            ("tz", 12, {**logical("long", "timestamp-micros"), "adjust-to-utc": True}),
            ("s", 14, "string"),
            ("u", 15, {"type": "fixed", "size": 16, "name": "uuid_fixed"}),
            ("fixed", 16, {"type": "fixed", "size": 3, "name": "fixed_3"}),
            ("bin", 17, "bytes"),
            ("list", 18, {"type": "array", "items": optional("long"), "element-id": 19}),
            (
                "map",
                20,
                {"type": "map", "values": optional("int"), "key-id": 21, "value-id": 22},
            ),
            (
                "struct",
                23,
                {
                    "type": "record",
                    "name": "r23",
                    "fields": [{"name": "x", "field-id": 24, "type": optional("d7")}],
                },
            ),
        ]
    ],
}


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro(tmp_path, codec) -> None:
    kept = [one["name"] for one in AVRO["fields"]]
    rows = [{name: row[name] for name in kept} for row in ROWS]
    written = [
        {
            **row,
            "map": None if row["map"] is None else dict(row["map"]),
            "ts": row["ts"] and row["ts"].replace(tzinfo=UTC),
        }
        for row in rows
    ]
    path = write_avro(tmp_path / "f.avro", AVRO, written, codec=codec)
    table = schema(*(one for one in TABLE.arrow if one.name in kept))
    found = scanned(table, file_task(path, "AVRO"))
    assert found.schema.equals(table.arrow)
    assert found.to_pylist() == rows


def test_avro_maps_without_text_keys_are_lists_of_pairs(tmp_path) -> None:
    pair = {
        "type": "record",
        "name": "k2_v3",
        "fields": [
            {"name": "key", "type": "int", "field-id": 2},
            {"name": "value", "type": ["null", "string"], "field-id": 3},
        ],
    }
    avro = {
        "type": "record",
        "name": "t",
        "fields": [
            {
                "name": "m",
                "field-id": 1,
                "type": {"type": "array", "logicalType": "map", "items": pair},
            }
        ],
    }
    rows = [{"m": [{"key": 1, "value": "a"}, {"key": 2, "value": None}]}, {"m": []}]
    path = write_avro(tmp_path / "f.avro", avro, rows)
    kind = pa.map_(field("key", pa.int64(), 2, required=True), field("value", pa.string(), 3))
    table = schema(field("m", kind, 1))
    assert scan(table, file_task(path, "AVRO")) == [{"m": [(1, "a"), (2, None)]}, {"m": []}]


def test_avro_without_ids_and_without_rows(tmp_path) -> None:
    avro = {"type": "record", "name": "t", "fields": [{"name": "a", "type": "int"}]}
    table = schema(field("a", pa.int64(), 5))
    full = write_avro(tmp_path / "f.avro", avro, [{"a": 1}])
    empty = write_avro(tmp_path / "e.avro", avro, [])
    tasks = [file_task(full, "AVRO"), file_task(empty, "AVRO")]
    assert scan(table, *tasks) == [{"a": 1}]


def test_int96_timestamps_of_old_spark_files(tmp_path) -> None:
    value = dt.datetime(2500, 1, 1, 12)
    table = pa.table(
        [pa.array([value], pa.timestamp("us"))],
        schema=pa.schema([field("t", pa.timestamp("us"), 1)]),
    )
    pq.write_table(table, tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    path = str(tmp_path / "f.parquet")
    aware = schema(field("t", pa.timestamp("us", tz="UTC"), 1))
    assert scan(aware, path) == [{"t": value.replace(tzinfo=UTC)}]
    assert scan(schema(field("t", pa.timestamp("us"), 1)), path) == [{"t": value}]


def test_nanoseconds_in_a_microsecond_column_are_cut_down(tmp_path) -> None:
    arrow = pa.schema([field("t", pa.timestamp("ns"), 1)])
    table = pa.table([pa.array([1999, -1], pa.timestamp("ns"))], schema=arrow)
    path = write_parquet(tmp_path / "f.parquet", table)
    found = scanned(schema(field("t", pa.timestamp("us"), 1)), path)
    assert found["t"].cast(pa.int64()).to_pylist() == [1, -1]


def test_unknown_columns_are_null(tmp_path) -> None:
    path = write_parquet(
        tmp_path / "f.parquet", table_of(schema(field("a", pa.int32(), 1)), [{"a": 1}])
    )
    table = schema(field("a", pa.int32(), 1), field("n", pa.null(), 2, type_name="unknown"))
    assert scan(table, path) == [{"a": 1, "n": None}]


def test_variants_are_refused(tmp_path) -> None:
    inner = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])
    path = write_parquet(
        tmp_path / "f.parquet",
        table_of(schema(field("v", inner, 1)), [{"v": {"metadata": b"", "value": b""}}]),
    )
    with pytest.raises(UnsupportedFeatureError, match="variant"):
        scan(schema(field("v", pa.binary(), 1, type_name="variant")), path)


def test_unknown_formats_are_refused(tmp_path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="CSV"):
        scan(TABLE, file_task(str(tmp_path / "f.csv"), "CSV"))


@pytest.mark.parametrize("file_format", ["PARQUET", "ORC", "AVRO"])
def test_files_that_are_missing_or_without_their_end_name_themselves(tmp_path, file_format) -> None:
    table = schema(field("i", pa.int32(), 2))
    rows = [{"i": index * 7919 % 1000} for index in range(5000)]
    path = tmp_path / "file"
    if file_format == "PARQUET":
        write_parquet(path, table_of(table, rows))
    elif file_format == "ORC":
        write_orc(path, table_of(table, rows))
    else:
        avro = {
            "type": "record",
            "name": "t",
            "fields": [{"name": "i", "type": "int", "field-id": 2}],
        }
        write_avro(path, avro, rows)
    whole = path.read_bytes()
    task = file_task(str(path), file_format)
    assert len(scan(table, task)) == 5000
    damaged = whole[:-20] + bytes(20)
    for data in (whole[: len(whole) // 2], whole[:3], b"", damaged, None):
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(CorruptTableError) as error:
            scan(table, task)
        assert error.value.location == str(path)
        path.touch()


def test_a_decoder_that_does_not_end_is_not_waited_for(tmp_path, monkeypatch) -> None:
    avro = {"type": "record", "name": "t", "fields": [{"name": "a", "type": "int"}]}
    path = write_avro(tmp_path / "f.avro", avro, [{"a": 1}])
    done = threading.Event()
    monkeypatch.setattr(avro_module, "_PATIENCE_IN_SECONDS", 0.2)
    monkeypatch.setattr(avro_module._Decoder, "_table", lambda self, path: done.wait(30))
    with pytest.raises(CorruptTableError, match="content is damaged"):
        scan(schema(field("a", pa.int32(), 1)), file_task(path, "AVRO"))
    done.set()


def test_an_avro_file_of_an_unknown_codec_names_itself(tmp_path) -> None:
    avro = {"type": "record", "name": "t", "fields": [{"name": "a", "type": "int"}]}
    path = write_avro(tmp_path / "f.avro", avro, [{"a": 1}], codec="deflate")
    data = (tmp_path / "f.avro").read_bytes()
    (tmp_path / "f.avro").write_bytes(data.replace(b"deflate", b"deflat!"))
    with pytest.raises(CorruptTableError, match=r"f\.avro"):
        scan(schema(field("a", pa.int32(), 1)), file_task(path, "AVRO"))
