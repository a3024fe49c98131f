"""Columns: schemas, field ids, names in files, partition values."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.delta.metadata import metadata_of
from rowlake.delta.schema import columns_of
from rowlake.errors import CorruptTableError
from rowlake.model.predicate import Leaf, Op
from rowlake.model.schema import FIELD_ID, Schema
from tests.delta_logs import HandMade, column, metadata, people


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


def mapped(name, kind, number, physical):
    return column(
        name,
        kind,
        **{
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": physical,
        },
    )


def mapping(mode, *fields, **more):
    action = metadata(fields, **more)
    action["metaData"]["configuration"]["delta.columnMapping.mode"] = mode
    return action


def columns(action):
    return columns_of(metadata_of(action["metaData"], "here"), "here")


NESTED = [
    column("a", "integer", comment="an a"),
    column(
        "s",
        {
            "type": "struct",
            "fields": [
                column("l", {"type": "array", "elementType": "string", "containsNull": False}),
                column("b", "byte", nullable=False),
            ],
        },
    ),
    column(
        "m",
        {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
    ),
]


def test_fields_without_ids_are_numbered_and_inner_ones_come_after_them():
    schema = columns(metadata(NESTED)).schema
    assert {".".join(path): number for number, path in schema.paths.items()} == {
        "a": 1,
        "s": 2,
        "s.l": 3,
        "s.b": 4,
        "m": 5,
        "s.l.element": 6,
        "m.key": 7,
        "m.value": 8,
    }
    assert schema.by_id[4].type == pa.int8() and not schema.by_id[4].nullable
    assert not schema.by_id[6].nullable and schema.by_id[8].nullable


def test_mapped_columns_have_their_own_ids_and_physical_names():
    inner = {"type": "struct", "fields": [mapped("y", "long", 9, "col-9")]}
    found = columns(mapping("name", mapped("x", inner, 4, "col-4")))
    assert found.physical == {4: ("col-4",), 9: ("col-4", "col-9")}
    assert found.name_mapping.over_ids
    assert json.loads(found.name_mapping.text) == [
        {"field-id": 4, "names": ["col-4"], "fields": [{"field-id": 9, "names": ["col-9"]}]}
    ]
    assert not columns(mapping("id", mapped("x", "long", 4, "c"))).name_mapping.over_ids


@pytest.mark.parametrize(
    "fields",
    [
        [column("x", "long")],
        [mapped("x", "long", -1, "c")],
        [mapped("x", "long", 1, "c"), mapped("y", "long", 1, "d")],
    ],
)
def test_mapped_columns_need_ids_of_their_own(fields):
    with pytest.raises(CorruptTableError, match="schema is damaged"):
        columns(mapping("name", *fields))


def with_ids(rows, *numbers):
    fields = [
        field.with_metadata({FIELD_ID: str(number).encode()})
        for field, number in zip(rows.schema, numbers, strict=True)
    ]
    return rows.cast(pa.schema(fields))


def test_ids_in_files_mean_nothing_where_columns_go_by_name(lake, tmp_path):
    made = HandMade(tmp_path / "t").create()
    made.commit(made.add("f.parquet", with_ids(people(1), 2, 1)))
    assert lake.table(made.name).arrow().to_pylist() == [{"id": 1, "name": "n1"}]


def test_columns_by_name_are_found_by_their_physical_names(lake, tmp_path):
    fields = [mapped("now", "long", 1, "id"), mapped("called", "string", 2, "name")]
    made = HandMade(tmp_path / "t").create(mapping("name", *fields))
    made.commit(made.add("f.parquet", with_ids(people(1), 7, 8)))
    assert lake.table(made.name).arrow().to_pylist() == [{"now": 1, "called": "n1"}]


def test_columns_by_id_are_found_by_the_ids_of_files(lake, tmp_path):
    fields = [mapped("now", "long", 7, "x"), mapped("called", "string", 8, "y")]
    made = HandMade(tmp_path / "t").create(mapping("id", *fields))
    made.commit(made.add("f.parquet", with_ids(people(1), 7, 8)))
    assert lake.table(made.name).arrow().to_pylist() == [{"now": 1, "called": "n1"}]


PARTITIONS = [
    ("string", "a b", "a b"),
    ("string", "", ""),
    ("binary", "", b""),
    ("string", "__HIVE_DEFAULT_PARTITION__", None),
    ("integer", "", None),
    ("integer", "-7", -7),
    ("byte", "7", 7),
    ("long", None, None),
    ("long", "__HIVE_DEFAULT_PARTITION__", None),
    ("boolean", "true", True),
    ("double", "1.5", 1.5),
    ("decimal(9,2)", "1.5", Decimal("1.50")),
    ("date", "2024-02-29", datetime.date(2024, 2, 29)),
    ("binary", "\u0001\u0002", b"\x01\x02"),
    ("timestamp_ntz", "2024-02-29 01:02:03.5", datetime.datetime(2024, 2, 29, 1, 2, 3, 500000)),
    ("timestamp_ntz", "2024-02-29 00:00:00", datetime.datetime(2024, 2, 29)),
]


@pytest.mark.parametrize(("kind", "text", "value"), PARTITIONS)
def test_partition_values_are_constants_of_their_types(lake, tmp_path, kind, text, value):
    made = HandMade(tmp_path / "t").create(
        metadata([column("id", "long"), column("p", kind)], partition_by=("p",))
    )
    rows = people(1).select(["id"])
    made.commit(made.add("f.parquet", rows, partitionValues={"p": text}))
    found = lake.table(made.name)
    assert found.arrow().to_pylist() == [{"id": 1, "p": value}]
    if value is not None:
        assert found.arrow(where=Leaf(("p",), Op.EQ, (value,))).num_rows == 1


@pytest.mark.parametrize(
    "text",
    ["2024-02-29 01:02:03.5", "2024-02-29T01:02:03.500000Z", "2024-02-28T18:02:03.5-07:00"],
)
def test_partition_times_without_a_zone_are_utc(lake, tmp_path, text):
    fields = [column("id", "long"), column("p", "timestamp")]
    made = HandMade(tmp_path / "t").create(metadata(fields, partition_by=("p",)))
    add = made.add("f.parquet", people(1).select(["id"]), partitionValues={"p": text})
    made.commit(add)
    (row,) = lake.table(made.name).arrow().to_pylist()
    zone = datetime.timezone.utc
    assert row["p"] == datetime.datetime(2024, 2, 29, 1, 2, 3, 500000, tzinfo=zone)


def test_a_partition_value_of_another_type_is_an_error(lake, tmp_path):
    fields = [column("id", "long"), column("p", "integer")]
    made = HandMade(tmp_path / "t").create(metadata(fields, partition_by=("p",)))
    made.commit(made.add("f.parquet", people(1).select(["id"]), partitionValues={"p": "x"}))
    with pytest.raises(CorruptTableError, match="partition value of column p"):
        lake.table(made.name).arrow()


def test_partition_values_win_over_columns_of_the_file(lake, tmp_path):
    made = HandMade(tmp_path / "t").create(metadata(partition_by=("name",)))
    made.commit(made.add("f.parquet", people(1), partitionValues={"name": "from the log"}))
    assert lake.table(made.name).arrow()["name"].to_pylist() == ["from the log"]


def test_a_partition_column_must_be_a_column(lake, tmp_path):
    made = HandMade(tmp_path / "t").create(metadata(partition_by=("other",)))
    with pytest.raises(CorruptTableError, match="partition column other"):
        lake.table(made.name).arrow()


def test_void_columns_are_null_and_comments_are_kept(lake, tmp_path):
    fields = [column("id", "long", comment="the id"), column("nothing", "void")]
    made = HandMade(tmp_path / "t").create(metadata(fields))
    made.commit(made.add("f.parquet", people(1)))
    found = lake.table(made.name)
    assert found.arrow().to_pylist() == [{"id": 1, "nothing": None}]
    assert found.schema.find_field("id").doc == "the id"
    assert str(found.schema.find_type("nothing")) == "unknown"


def test_schemas_are_the_model_s(lake, tmp_path):
    made = HandMade(tmp_path / "t").create(metadata(NESTED))
    found = lake.table(made.name)
    assert isinstance(found.handle.view().schema, Schema)
    assert str(found.schema.find_type("a")) == "int"
    assert str(found.schema.find_type("s.b")) == "byte"
