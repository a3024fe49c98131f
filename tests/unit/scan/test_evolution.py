"""Columns by id: renamed, reordered, added, dropped, promoted, at any depth."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.errors import CorruptTableError
from rowlake.model.partition import PartitionField, PartitionSpec
from rowlake.model.task import NameMapping
from tests.scanning import field, file_task, scan, scanned, schema, table_of, write_parquet

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()


@pytest.mark.spec("Column Projection: by field id, whatever the names")
def test_the_specs_own_example(tmp_path) -> None:
    old = schema(field("a", INT, 1), field("b", TEXT, 2), field("c", pa.float64(), 3))
    path = write_parquet(tmp_path / "f.parquet", table_of(old, [{"a": 1, "b": "x", "c": 2.5}]))
    new = schema(field("measurement", pa.float64(), 3), field("name", TEXT, 2), field("a", INT, 4))
    assert scan(new, path) == [{"measurement": 2.5, "name": "x", "a": None}]


def test_nested_fields_are_matched_by_id_at_every_level(tmp_path) -> None:
    old = schema(
        field(
            "m",
            pa.map_(
                field("key", TEXT, 2, required=True),
                field(
                    "value",
                    pa.list_(
                        field("element", pa.struct([field("x", INT, 5), field("y", TEXT, 6)]), 4)
                    ),
                    3,
                ),
            ),
            1,
        )
    )
    rows = [
        {"m": [("k", [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}]), ("l", None)]},
        {"m": None},
        {"m": []},
    ]
    path = write_parquet(tmp_path / "f.parquet", table_of(old, rows))
    element = pa.struct(
        [field("renamed", TEXT, 6), field("x", LONG, 5), field("added", INT, 7, default=9)]
    )
    new = schema(
        field(
            "renamed_map",
            pa.map_(
                field("key", TEXT, 2, required=True),
                field("value", pa.list_(field("element", element, 4)), 3),
            ),
            1,
        )
    )
    found = scanned(new, path)
    assert found.schema.equals(new.arrow)
    assert found.to_pylist() == [
        {
            "renamed_map": [
                (
                    "k",
                    [
                        {"renamed": "a", "x": 1, "added": 9},
                        None,
                        {"renamed": "b", "x": None, "added": 9},
                    ],
                ),
                ("l", None),
            ]
        },
        {"renamed_map": None},
        {"renamed_map": []},
    ]


def test_a_struct_of_only_new_fields_keeps_where_it_is_null(tmp_path) -> None:
    old = schema(field("s", pa.struct([field("gone", INT, 2), field("gone2", TEXT, 3)]), 1))
    rows = [{"s": {"gone": 1, "gone2": "x"}}, {"s": None}]
    path = write_parquet(tmp_path / "f.parquet", table_of(old, rows))
    new = schema(field("s", pa.struct([field("fresh", INT, 4, default=7)]), 1))
    assert scan(new, path) == [{"s": {"fresh": 7}}, {"s": None}]


def test_a_dropped_and_readded_name_is_another_column(tmp_path) -> None:
    old = schema(field("id", INT, 1), field("a", TEXT, 2))
    path = write_parquet(tmp_path / "f.parquet", table_of(old, [{"id": 1, "a": "old"}]))
    new = schema(field("id", INT, 1), field("a", TEXT, 3))
    assert scan(new, path) == [{"id": 1, "a": None}]


def test_names_with_dots_are_not_paths(tmp_path) -> None:
    inner = pa.struct([field("b", INT, 3), field("c", INT, 4)])
    table = schema(field("a.b", INT, 1), field("a", inner, 2))
    path = write_parquet(
        tmp_path / "f.parquet", table_of(table, [{"a.b": 1, "a": {"b": 2, "c": 3}}])
    )
    assert scan(schema(field("a.b", INT, 1)), path) == [{"a.b": 1}]
    only = schema(field("a", pa.struct([field("b", INT, 3)]), 2))
    assert scan(only, path) == [{"a": {"b": 2}}]


@pytest.mark.spec("Schema Evolution: type promotion")
@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (INT, LONG, 5, 5),
        (pa.int8(), INT, -5, -5),
        (pa.float32(), pa.float64(), 0.5, 0.5),
        (pa.decimal128(7, 2), pa.decimal128(20, 2), Decimal("1.10"), Decimal("1.10")),
        (pa.date32(), pa.timestamp("us"), dt.date(2020, 1, 2), dt.datetime(2020, 1, 2)),
        (pa.date32(), pa.timestamp("ns"), dt.date(2020, 1, 2), dt.datetime(2020, 1, 2)),
        (pa.large_string(), TEXT, "x", "x"),
        (pa.large_binary(), pa.binary(), b"x", b"x"),
        (pa.dictionary(pa.int32(), TEXT), TEXT, "x", "x"),
        (TEXT, pa.binary(), "x", b"x"),
        (pa.binary(16), pa.binary(16), b"0" * 16, b"0" * 16),
        (pa.timestamp("ms"), pa.timestamp("us"), dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 2)),
        (pa.time32("ms"), pa.time64("us"), dt.time(1, 2), dt.time(1, 2)),
    ],
)
def test_promotions(tmp_path, source, target, value, expected) -> None:
    inner = pa.struct([field("x", source, 2)])
    old = schema(field("a", source, 1), field("s", inner, 3))
    rows = [{"a": value, "s": {"x": value}}, {"a": None, "s": None}]
    path = write_parquet(tmp_path / "f.parquet", table_of(old, rows))
    new = schema(field("a", target, 1), field("s", pa.struct([field("x", target, 2)]), 3))
    found = scanned(new, path)
    assert found.schema.equals(new.arrow)
    assert found["a"].to_pylist() == [expected, None]
    assert found["s"].to_pylist() == [{"x": expected}, None]


@pytest.mark.parametrize(
    ("source", "target", "value"),
    [
        (LONG, INT, 5),
        (TEXT, INT, "5"),
        (pa.float64(), pa.float32(), 0.5),
        (pa.decimal128(7, 2), pa.decimal128(7, 3), Decimal("1.10")),
        (pa.date32(), pa.timestamp("us", tz="UTC"), dt.date(2020, 1, 2)),
        (INT, pa.struct([field("x", INT, 2)]), 1),
        (pa.date32(), pa.timestamp("ns"), dt.date(9999, 1, 1)),
    ],
)
def test_what_is_no_promotion_is_refused(tmp_path, source, target, value) -> None:
    path = write_parquet(
        tmp_path / "f.parquet", table_of(schema(field("a", source, 1)), [{"a": value}])
    )
    with pytest.raises(CorruptTableError) as error:
        scan(schema(field("a", target, 1)), path)
    assert error.value.location == path


@pytest.mark.spec("Default Values: a struct's default is made of its fields' defaults")
@pytest.mark.parametrize(
    ("outer", "missing", "expected"),
    [(None, True, None), ({}, True, {"x": 0, "y": 0}), (None, False, {"x": 3, "y": 0})],
)
def test_struct_defaults_are_made_of_field_defaults(tmp_path, outer, missing, expected) -> None:
    x, y = field("x", INT, 2, default=0), field("y", INT, 3, default=0)
    old = schema(field("k", INT, 9), field("point", pa.struct([x]), 8 if missing else 1))
    rows = [{"k": 1, "point": {"x": 3}}]
    path = write_parquet(tmp_path / "f.parquet", table_of(old, rows))
    new = schema(field("point", pa.struct([x, y]), 1, default=outer))
    assert scan(new, path) == [{"point": expected}]


def test_defaults_of_many_types(tmp_path) -> None:
    path = write_parquet(tmp_path / "f.parquet", table_of(schema(field("k", INT, 99)), [{"k": 1}]))
    new = schema(
        field("d", pa.decimal128(9, 2), 1, default="14.20", required=True),
        field("t", pa.timestamp("us", tz="UTC"), 2, default="2017-11-16T22:31:08.000001+00:00"),
        field(
            "u",
            pa.binary(16),
            3,
            default="f79c3e09-677c-4bbd-a479-3f349cb785e7",
            type_name="uuid",
        ),
        field("b", pa.bool_(), 4, default=True),
        field("l", pa.list_(field("element", INT, 6)), 5, default=[1, 2]),
    )
    (row,) = scan(new, path)
    assert row["d"] == Decimal("14.20")
    assert row["t"] == dt.datetime(2017, 11, 16, 22, 31, 8, 1, dt.timezone.utc)
    assert row["u"].hex() == "f79c3e09677c4bbda4793f349cb785e7"
    assert row["b"] is True
    assert row["l"] == [1, 2]


def test_a_required_column_without_default_must_be_there(tmp_path) -> None:
    path = write_parquet(tmp_path / "f.parquet", table_of(schema(field("k", INT, 9)), [{"k": 1}]))
    with pytest.raises(CorruptTableError, match="column a is required"):
        scan(schema(field("a", INT, 1, required=True)), path)


SPEC = PartitionSpec(
    3, (PartitionField(2, 1000, "identity", "p"), PartitionField(1, 1001, "bucket[4]", "b"))
)


@pytest.mark.spec("Column Projection: identity partition values")
def test_identity_partition_values_stand_in_for_missing_columns_only(tmp_path) -> None:
    has = write_parquet(
        tmp_path / "has.parquet",
        table_of(schema(field("k", INT, 1), field("p", TEXT, 2)), [{"k": 1, "p": "file"}]),
    )
    lacks = write_parquet(
        tmp_path / "lacks.parquet", table_of(schema(field("k", INT, 1)), [{"k": 2}])
    )
    table = schema(field("k", INT, 1), field("p", TEXT, 2, default="default"))
    tasks = [
        file_task(has, spec_id=3, partition={1000: "part", 1001: 0}),
        file_task(lacks, spec_id=3, partition={1000: "part", 1001: 0}),
        file_task(lacks, spec_id=3, partition={1000: None, 1001: 0}),
        file_task(lacks, spec_id=0, partition={}),
    ]
    found = scan(table, *tasks, specs={3: SPEC})
    assert [row["p"] for row in found] == ["file", "part", None, "default"]
    assert [row["k"] for row in found] == [1, 2, 2, 2]


MAPPING = json.dumps(
    [
        {"field-id": 1, "names": ["k", "key"]},
        {"field-id": 2, "names": ["p"]},
        {
            "field-id": 3,
            "names": ["s.t"],
            "fields": [{"field-id": 4, "names": ["x"]}, {"names": ["unknown"]}],
        },
        {
            "field-id": 5,
            "names": ["l"],
            "fields": [
                {
                    "field-id": 6,
                    "names": ["element"],
                    "fields": [{"field-id": 7, "names": ["z"]}],
                }
            ],
        },
        {
            "field-id": 8,
            "names": ["m"],
            "fields": [{"field-id": 9, "names": ["key"]}, {"field-id": 10, "names": ["value"]}],
        },
    ]
)


def plain_file(tmp_path) -> str:
    arrow = pa.schema(
        [
            ("key", INT),
            ("p", TEXT),
            ("s.t", pa.struct([("x", INT), ("unknown", INT)])),
            ("l", pa.list_(pa.struct([("z", INT)]))),
            ("m", pa.map_(TEXT, INT)),
        ]
    )
    row = {"key": 1, "p": "f", "s.t": {"x": 2, "unknown": 3}, "l": [{"z": 4}], "m": [("a", 5)]}
    return write_parquet(tmp_path / "plain.parquet", pa.Table.from_pylist([row], schema=arrow))


MAPPED = schema(
    field("id", INT, 1),
    field("p", TEXT, 2),
    field("s", pa.struct([field("renamed", LONG, 4), field("unknown", INT, 40)]), 3),
    field("l", pa.list_(field("element", pa.struct([field("zz", INT, 7)]), 6)), 5),
    field("m", pa.map_(field("key", TEXT, 9, required=True), field("value", LONG, 10)), 8),
)


@pytest.mark.spec("Column Projection: name mapping")
def test_files_without_ids_are_read_by_name_mapping(tmp_path) -> None:
    assert scan(MAPPED, plain_file(tmp_path), name_mapping=NameMapping(MAPPING)) == [
        {
            "id": 1,
            "p": "f",
            "s": {"renamed": 2, "unknown": None},
            "l": [{"zz": 4}],
            "m": [("a", 5)],
        }
    ]


@pytest.mark.spec("Column Projection: partition values before name mapping")
def test_partition_values_win_over_a_mapped_column(tmp_path) -> None:
    task = file_task(plain_file(tmp_path), spec_id=3, partition={1000: "part", 1001: 0})
    (row,) = scan(MAPPED, task, specs={3: SPEC}, name_mapping=NameMapping(MAPPING))
    assert row["p"] == "part"


def test_files_without_ids_and_mapping_go_by_position(tmp_path) -> None:
    table = schema(
        field("other", INT, 1),
        field("b", TEXT, 2),
        field("s", pa.struct([field("x", INT, 31), field("y", INT, 32)]), 3),
    )
    arrow = pa.schema([("q", INT), ("r", TEXT), ("w", pa.struct([("y", INT), ("x", INT)]))])
    rows = [{"q": 1, "r": "x", "w": {"y": 2, "x": 3}}]
    path = write_parquet(tmp_path / "f.parquet", pa.Table.from_pylist(rows, schema=arrow))
    assert scan(table, path) == [{"other": 1, "b": "x", "s": {"x": 3, "y": 2}}]


def test_a_mapping_that_is_none_is_refused(tmp_path) -> None:
    with pytest.raises(CorruptTableError, match="name-mapping"):
        scan(MAPPED, plain_file(tmp_path), name_mapping=NameMapping("{nope"))


def test_a_file_with_some_ids_does_not_use_the_mapping(tmp_path) -> None:
    arrow = pa.schema([field("a", INT, 1), pa.field("p", TEXT)])
    path = write_parquet(
        tmp_path / "f.parquet", pa.Table.from_pylist([{"a": 1, "p": "x"}], schema=arrow)
    )
    table = schema(field("id", INT, 1), field("p", TEXT, 2))
    assert scan(table, path, name_mapping=NameMapping(MAPPING)) == [{"id": 1, "p": None}]


def test_projection_may_prune_nested_fields(tmp_path) -> None:
    inner = pa.struct([field("x", INT, 2), field("y", TEXT, 3)])
    table = schema(field("s", inner, 1), field("k", INT, 4))
    path = write_parquet(
        tmp_path / "f.parquet", table_of(table, [{"s": {"x": 1, "y": "a"}, "k": 5}])
    )
    projection = schema(field("s", pa.struct([field("y", TEXT, 3)]), 1))
    assert scan(table, path, projection=projection) == [{"s": {"y": "a"}}]
