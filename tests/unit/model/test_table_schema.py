"""What `Table.schema` and `Table.spec` say, held against PyIceberg's own words."""

from __future__ import annotations

import pytest
from pyiceberg import types
from pyiceberg.schema import Schema as IcebergSchema

from rowlake.errors import InvalidStatementError
from rowlake.iceberg.schema import schema_from_iceberg
from rowlake.model.table_schema import table_schema
from tests.lakes import SALES, make_lake

FIELDS = [
    types.NestedField(1, "id", types.LongType(), required=True, doc="the key"),
    types.NestedField(2, "flag", types.BooleanType()),
    types.NestedField(3, "price", types.DecimalType(7, 2)),
    types.NestedField(4, "at", types.TimestamptzType()),
    types.NestedField(5, "local", types.TimestampType()),
    types.NestedField(6, "day", types.DateType()),
    types.NestedField(7, "who", types.UUIDType()),
    types.NestedField(8, "code", types.FixedType(4)),
    types.NestedField(9, "raw", types.BinaryType()),
    types.NestedField(
        10,
        "place",
        types.StructType(
            types.NestedField(11, "x", types.DoubleType(), required=True),
            types.NestedField(12, "y", types.FloatType()),
        ),
    ),
    types.NestedField(13, "tags", types.ListType(14, types.StringType(), element_required=False)),
    types.NestedField(
        15, "counts", types.MapType(16, types.StringType(), 17, types.IntegerType(), False)
    ),
    types.NestedField(18, "moment", types.TimeType()),
]
THEIRS = IcebergSchema(*FIELDS, schema_id=3, identifier_field_ids=[1])
OURS = table_schema(schema_from_iceberg(THEIRS))


def test_types_are_called_what_pyiceberg_calls_them() -> None:
    assert {one.name: str(one.field_type) for one in OURS} == {
        one.name: str(one.field_type) for one in THEIRS.fields
    }
    assert len(OURS) == len(FIELDS)
    assert OURS.schema_id == 3


def test_fields_are_found_by_name_and_by_id() -> None:
    for name in ("id", "place.x", "tags.element", "counts.value"):
        theirs = THEIRS.find_field(name)
        found = OURS.find_field(name)
        assert (found.field_id, found.required) == (theirs.field_id, theirs.required)
        assert OURS.find_field(theirs.field_id) == found
        assert OURS.find_column_name(theirs.field_id) == name
    assert str(OURS.find_type("price")) == "decimal(7, 2)"
    assert set(OURS.column_names) == set(THEIRS.column_names)
    assert OURS.identifier_field_names() == {"id"}
    assert OURS.find_column_name(99) is None
    with pytest.raises(InvalidStatementError, match="no field nothing"):
        OURS.find_field("nothing")


def test_schemas_and_specs_print_well(tmp_path) -> None:
    assert str(OURS).splitlines()[:3] == [
        "table {",
        "  1: id: required long  (the key)",
        "  2: flag: optional boolean",
    ]
    with make_lake(tmp_path) as lake:
        lake.create_namespace("ns")
        plain = lake.create_table("ns.plain", SALES)
        parted = lake.create_table("ns.parted", SALES, partition_by=["bucket(4, id)", "store"])
        assert (str(plain.spec), str(parted.spec)) == ("unpartitioned", "bucket[4](id), store")
        assert [one.source for one in parted.spec] == ["id", "store"]
        assert parted.format == "iceberg"
        assert [one.name for one in parted.to_pyiceberg().schema().fields] == SALES.names
