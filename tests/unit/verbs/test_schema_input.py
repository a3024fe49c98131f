"""What `create_table` takes as a schema, and which names and properties it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import types as spark_types

from rowlake.errors import InvalidStatementError
from rowlake.model.partition import PartitionBy
from rowlake.model.reserved_columns import RESERVED_COLUMNS
from rowlake.verbs.schema_input import schema_of
from tests.lakes import make_lake

STRUCT_TYPE = spark_types.StructType(
    [
        spark_types.StructField("id", spark_types.LongType(), nullable=False),
        spark_types.StructField("name", spark_types.StringType()),
    ]
)
ARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = pa.table({"id": [1], "name": ["a"]}, schema=ARROW)
FRAME = SimpleNamespace(mapInArrow=None, schema=STRUCT_TYPE)
REQUIRED = [("id", "long", True), ("name", "string", False)]
OPTIONAL = [("id", "long", False), ("name", "string", False)]


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("db", if_not_exists=True)
        yield opened


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(STRUCT_TYPE, REQUIRED, id="StructType"),
        pytest.param("id BIGINT NOT NULL, name STRING", REQUIRED, id="text"),
        pytest.param("(id bigint not null, name string comment 'n')", REQUIRED, id="brackets"),
        pytest.param({"id": "bigint", "name": "string"}, OPTIONAL, id="dict"),
        pytest.param({"id": pa.int64(), "name": pa.string()}, OPTIONAL, id="dict of arrow"),
        pytest.param(FRAME, OPTIONAL, id="Spark frame"),
        pytest.param(ROWS, OPTIONAL, id="Arrow table"),
        pytest.param(ROWS.to_batches()[0], OPTIONAL, id="batch"),
        pytest.param(pl.DataFrame(ROWS.to_pydict()), OPTIONAL, id="polars"),
        pytest.param(pd.DataFrame(ROWS.to_pydict()), OPTIONAL, id="pandas"),
    ],
)
def test_a_schema_is_read_from_what_carries_one(lake, given, expected):
    table = lake.create_table("db.t", given)
    found = [(one.name, one.field_type.name, one.required) for one in table.schema]
    assert found == expected


@pytest.mark.parametrize("given", [{}, {"id": 5}, "id", "id bigint name string", 7, None])
def test_what_is_no_schema_is_refused(lake, given):
    with pytest.raises(InvalidStatementError):
        lake.create_table("db.t", given)


def test_the_json_of_the_spec_passes():
    given = {"type": "struct", "fields": []}
    assert schema_of(given) is given


@pytest.mark.parametrize("given", ["id", "bucket(4, id)", PartitionBy(("id",), "truncate[5]")])
def test_one_partition_field_needs_no_list(lake, given):
    table = lake.create_table("db.t", ARROW, partition_by=given)
    assert [field.source for field in table.spec] == ["id"]


@pytest.mark.parametrize("name", sorted(RESERVED_COLUMNS))
def test_names_of_metadata_columns_are_refused(lake, name):
    with pytest.raises(InvalidStatementError, match="reserves the name"):
        lake.create_table("db.t", {"id": "bigint", name.upper(): "string"})
    lake.create_table("db.t", {"id": "bigint", "s": f"struct<{name}: int>"})
    for change in (f"ADD COLUMN {name} int", f"RENAME COLUMN id TO {name}"):
        with pytest.raises(InvalidStatementError, match="reserves the name"):
            lake.sql(f"ALTER TABLE db.t {change}")
    lake.sql(f"ALTER TABLE db.t RENAME COLUMN s.{name} TO other")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("commit.retry.num-retries", "x"),
        ("commit.retry.num-retries", "-1"),
        ("write.target-file-size-bytes", "0"),
        ("write.parquet.row-group-size-bytes", "128MB"),
        ("write.delete.parquet.compression-codec", "best"),
        ("write.orc.compression-codec", "brotli"),
        ("write.avro.compression-codec", "lz4"),
        ("write.format.default", "csv"),
        ("write.merge.mode", "copy"),
        ("write.update.isolation-level", "loose"),
        ("write.distribution-mode", "sideways"),
        ("write.metadata.metrics.default", "truncate(0)"),
        ("write.metadata.metrics.column.id", "some"),
        ("write.parquet.bloom-filter-enabled.column.id", "yes"),
        ("write.parquet.bloom-filter-fpp.column.id", "2"),
        ("gc.enabled", "maybe"),
        ("history.expire.min-snapshots-to-keep", "few"),
        ("sort-order", "id ASC"),
        ("identifier-fields", "[id]"),
        ("Provider", "iceberg"),
        ("location", "/tmp"),
        ("uuid", "1"),
        ("current-snapshot-id", "1"),
        ("format", "iceberg/orc"),
        ("default-sort-order", "0"),
    ],
)
def test_reserved_and_malformed_properties_are_refused_where_they_are_set(lake, key, value):
    with pytest.raises(InvalidStatementError, match=key):
        lake.create_table("db.t", ARROW, properties={key: value})
    table = lake.create_table("db.t", ARROW)
    before = table.handle.metadata_location
    with pytest.raises(InvalidStatementError, match=key):
        table.set_properties({key: value})
    with pytest.raises(InvalidStatementError, match=key):
        lake.sql(f"ALTER TABLE db.t SET TBLPROPERTIES ('{key}' = '{value}')")
    assert table.handle.metadata_location == before


def test_well_formed_and_unknown_properties_are_set(lake):
    good = {
        "commit.retry.num-retries": "7",
        "write.merge.mode": "Merge-on-Read",
        "write.format.default": "ORC",
        "write.metadata.metrics.column.id": "truncate(8)",
        "write.metadata.previous-versions-max": "3",
        "of.another.tool": "anything",
        "comment": "rows",
    }
    table = lake.create_table("db.t", ARROW, properties=good)
    table.append(ROWS)
    table.delete("id = 2")
    assert good.items() <= table.properties.items()


@pytest.mark.parametrize("key", ["format-version", "current-snapshot-id", "sort-order"])
def test_reserved_properties_cannot_be_unset(lake, key):
    table = lake.create_table("db.t", ARROW)
    with pytest.raises(InvalidStatementError, match=key):
        table.unset_properties([key])


def test_the_schema_of_another_table_is_taken_whole(lake):
    text = (
        "id BIGINT NOT NULL COMMENT 'the key', at STRUCT<x: DOUBLE NOT NULL, tags: ARRAY<STRING>>, "
        "prices MAP<STRING, DECIMAL(9, 2)>"
    )
    one = lake.create_table("db.one", text)
    other = lake.create_table("db.other", one.schema)
    assert str(other.schema) == str(one.schema)
    assert lake.create_table("db.third", other.schema, replace=True).schema == other.schema
