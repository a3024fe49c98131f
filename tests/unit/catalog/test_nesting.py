"""Columns that are nested too deep to be read again: refused when they are created."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import (
    RowlakeError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.iceberg.schema import type_from_json
from rowlake.model.schema import MAX_NESTING, MAX_NESTING_READ
from tests.metadata_edits import edit_metadata

KINDS = ("list", "struct", "map")


def nested(kind: str, levels: int) -> tuple[pa.DataType, object]:
    """Return a type of so many levels, and a value of it."""
    of: pa.DataType = pa.int64()
    value: object = 7
    for _ in range(levels):
        if kind == "list":
            of, value = pa.list_(of), [value]
        elif kind == "struct":
            of, value = pa.struct([("f", of)]), {"f": value}
        else:
            of, value = pa.map_(pa.string(), of), [("k", value)]
    return of, value


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path)) as opened:
        opened.create_namespace("ns")
        yield opened


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_what_may_be_created_can_be_read(lake, kind, file_format) -> None:
    of, value = nested(kind, MAX_NESTING)
    properties = {"write.format.default": file_format}
    table = lake.create_table("ns.t", pa.schema([("c", of)]), properties=properties)
    table.append(pa.table([pa.array([value], of)], names=["c"]))
    assert lake.table("ns.t").arrow()["c"].to_pylist() == [value]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [MAX_NESTING + 1, 60, 400])
def test_a_table_of_columns_nested_too_deep_is_not_created(lake, kind, levels) -> None:
    of, _ = nested(kind, levels)
    with pytest.raises(SchemaMismatchError) as raised:
        lake.create_table("ns.t", pa.schema([("id", pa.int64()), ("deep", of)]))
    assert str(raised.value.column).startswith("deep.")
    assert str(MAX_NESTING) in str(raised.value)
    with pytest.raises(TableNotFoundError):
        lake.table("ns.t")


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_nested_too_deep_is_not_added(lake, kind) -> None:
    table = lake.create_table("ns.t", pa.schema([("id", pa.int64())]))
    of: object = "int"
    for number in range(MAX_NESTING + 1):
        at = 10 * number + 10
        if kind == "list":
            of = {"type": "list", "element-id": at, "element": of, "element-required": False}
        elif kind == "map":
            of = {
                "type": "map",
                "key-id": at,
                "key": "int",
                "value-id": at + 1,
                "value": of,
                "value-required": False,
            }
        else:
            field = {"id": at, "name": "f", "required": False, "type": of}
            of = {"type": "struct", "fields": [field]}
    deep = type_from_json(of)
    with pytest.raises(SchemaMismatchError), table.evolve().update_schema() as change:
        change.add_column("deep", deep)
    assert [one.name for one in lake.table("ns.t").schema.fields] == ["id"]


def test_a_statement_cannot_create_what_is_nested_too_deep(lake) -> None:
    of = "ARRAY<" * 30 + "INT" + ">" * 30
    with pytest.raises(RowlakeError):
        lake.sql(f"CREATE TABLE ns.t (deep {of})")
    lake.create_table("ns.u", pa.schema([("id", pa.int64())]))
    with pytest.raises(RowlakeError):
        lake.sql(f"ALTER TABLE ns.u ADD COLUMN deep {of}")


@pytest.mark.parametrize("levels", [MAX_NESTING_READ + 1, 120, 190, 900, 20_000])
def test_deeper_columns_of_others_are_not_supported(lake, levels) -> None:
    table = lake.create_table("ns.t", pa.schema([("id", pa.int64()), ("deep", pa.int64())]))
    path = edit_metadata(table, lambda _: None)
    opening = '{"type":"list","element-id":9,"element-required":false,"element":'
    text = path.read_text()
    head, _, tail = text.partition('"name": "deep"')
    tail = tail.replace('"long"', opening * levels + '"int"' + "}" * levels, 1)
    path.write_text(head + '"name": "deep"' + tail)
    with pytest.raises(UnsupportedFeatureError) as raised:
        lake.table("ns.t").arrow()
    assert str(MAX_NESTING_READ) in str(raised.value)
