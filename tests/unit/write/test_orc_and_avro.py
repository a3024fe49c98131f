from __future__ import annotations

import datetime as dt
import json
import uuid

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc

from tests.unit.write.test_parquet_files import FIELDS, ROWS, UUIDS, rows_of_all_types
from tests.write_helpers import column, context_of, view_of, write

NAMES = [each.name for each in FIELDS if each.name != "nothing"]


def written_as(file_format: str, folder, **properties: str) -> dict[str, object]:
    properties = {"write.format.default": file_format, **properties}
    written = write(context_of(view_of(folder, FIELDS, properties=properties)), rows_of_all_types())
    (row,) = written.to_pylist()
    assert row["file_format"] == file_format.upper()
    assert row["location"].endswith(f".{file_format}")
    assert row["record_count"] == 3
    return row


def test_all_types_come_back_from_orc(tmp_path):
    row = written_as("orc", tmp_path)
    # pyarrow reads ORC's timestamps as nanoseconds, which the year 1 overflows.
    names = [name for name in NAMES if name not in ("local", "instant")]
    table = orc.ORCFile(row["location"]).read(columns=names)
    nested = [{"x": 1, "ids": [uuid.UUID(int=5).bytes, None]}, None, {"x": 2, "ids": None}]
    for name in names:
        found = table[name]
        if name == "clock":
            found = found.cast(pa.time64("us"))
        elif name.startswith("nanos"):
            found = found.cast(pa.int64())
        expected = nested if name == "nested" else ROWS[name]
        assert found.to_pylist() == expected, name


def test_orc_timestamps_are_kept(tmp_path):
    fields = [column("local", pa.timestamp("us"), 1), column("at", pa.timestamp("us", "UTC"), 2)]
    times = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), None, dt.datetime(2024, 2, 29)]
    rows = pa.table([pa.array(times, each.type) for each in fields], schema=pa.schema(fields))
    view = view_of(tmp_path, fields, properties={"write.format.default": "orc"})
    written = write(context_of(view), rows)
    table = orc.ORCFile(written["location"][0].as_py()).read()
    assert table["local"].cast(pa.timestamp("us")).to_pylist() == times
    assert table["at"].cast(pa.timestamp("us", "UTC")).equals(rows["at"])


def test_orc_columns_carry_icebergs_attributes(tmp_path):
    schema = orc.ORCFile(written_as("orc", tmp_path)["location"]).schema
    attributes = {each.name: each.metadata for each in schema}
    assert attributes["small"] == {b"iceberg.id": b"2", b"iceberg.required": b"true"}
    assert attributes["big"][b"iceberg.long-type"] == b"LONG"
    assert attributes["clock"][b"iceberg.long-type"] == b"TIME"
    assert attributes["local"][b"iceberg.timestamp-unit"] == b"MICROS"
    assert attributes["nanos"][b"iceberg.timestamp-unit"] == b"NANOS"
    assert attributes["id"][b"iceberg.binary-type"] == b"UUID"
    assert attributes["fixed"][b"iceberg.length"] == b"3"
    nested = schema.field("nested").type
    assert nested.field("x").metadata[b"iceberg.id"] == b"21"
    assert nested.field("ids").type.value_field.metadata[b"iceberg.id"] == b"23"
    assert schema.field("map").type.item_field.metadata[b"iceberg.id"] == b"26"


@pytest.mark.parametrize("codec", ["gzip", "uncompressed"])
def test_all_types_come_back_from_avro(tmp_path, codec):
    row = written_as("avro", tmp_path, **{"write.avro.compression-codec": codec})
    with open(row["location"], "rb") as stream:  # noqa: PTH123
        records = list(fastavro.reader(stream))
    assert len(records) == 3
    for name in NAMES:
        found = [record[avro_name(name)] for record in records]
        if name in ("local", "instant") or name.startswith("nanos"):
            found = [None if each is None else as_number(each) for each in found]
            values = pa.array(ROWS[name], dict(zip(NAMES, kinds(), strict=True))[name])
            expected = values.cast(pa.int64()).to_pylist()
        elif name == "id":
            found = [None if each is None else as_uuid(each) for each in found]
            expected = UUIDS
        elif name == "nested":
            found = [None if each is None else each["x"] for each in found]
            expected = [1, None, 2]
        elif name == "map":
            found = [
                None if each is None else [(entry["key"], entry["value"]) for entry in each]
                for each in found
            ]
            expected = ROWS[name]
        else:
            expected = ROWS[name]
        assert found == expected, name


def kinds() -> list[pa.DataType]:
    return [each.type for each in FIELDS if each.name != "nothing"]


def avro_name(name: str) -> str:
    return name.replace(" ", "_x20")


def as_number(found: object) -> object:
    if not isinstance(found, dt.datetime):
        return found
    since = dt.datetime(1970, 1, 1, tzinfo=found.tzinfo)
    return (found - since) // dt.timedelta(microseconds=1)


def as_uuid(found: object) -> uuid.UUID:
    return found if isinstance(found, uuid.UUID) else uuid.UUID(bytes=found)


def test_avro_schemas_carry_field_ids(tmp_path):
    row = written_as("avro", tmp_path)
    with open(row["location"], "rb") as stream:  # noqa: PTH123
        schema = json.loads(fastavro.reader(stream).metadata["avro.schema"])
    by_name = {each["name"]: each for each in schema["fields"]}
    assert by_name["small"] == {"name": "small", "type": "int", "field-id": 2}
    assert by_name["flag"]["type"] == ["null", "boolean"]
    assert by_name["nanos_x20tz"]["iceberg-field-name"] == "nanos tz"
    assert by_name["instant"]["type"][1]["adjust-to-utc"] is True
    nested = by_name["nested"]["type"][1]
    assert nested["name"] == "r20"
    assert nested["fields"][1]["type"][1]["element-id"] == 23
    entries = by_name["map"]["type"][1]
    assert entries["logicalType"] == "map"
    assert [each["field-id"] for each in entries["items"]["fields"]] == [25, 26]
