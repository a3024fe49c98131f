"""Delta tables that rowlake writes: Delta on Spark, delta-rs and DuckDB read the same rows."""

from __future__ import annotations

import datetime
import decimal

import deltalake
import duckdb
import duckdb_extensions
import pyarrow as pa
import pytest

import rowlake
from tests.any_format import changing
from tests.parts.delta_spark import read_by_spark
from tests.plain_values import in_order

VECTORS = {"delta.enableDeletionVectors": "true"}
UTC = datetime.timezone.utc


def people(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([None if i % 5 == 4 else f"c{i % 3}" for i in ids]),
            "score": pa.array([i / 4 for i in ids], pa.float64()),
        }
    )


def change(table) -> None:
    """Do every kind of row-level change."""
    table.append(people(0, 20))
    table.append(people(20, 40))
    table.delete("id = 3")
    table.update({"score": "score + 1000"}, where="id = 25")
    table.upsert(people(39, 42), keys=["id"])
    merge = table.merge(people(1, 3), on=["id"])
    merge.when_matched_delete().execute()


def plain(lake, path):
    change(lake.create_table(path, people(0, 1).schema))


def partitioned(lake, path):
    change(lake.create_table(path, people(0, 1).schema, partition_by="city"))


def with_vectors(lake, path):
    change(lake.create_table(path, people(0, 1).schema, properties=VECTORS))


def partitioned_with_vectors(lake, path):
    change(lake.create_table(path, people(0, 1).schema, partition_by="city", properties=VECTORS))


def mapped_by_name(lake, path):
    properties = {"delta.columnMapping.mode": "name", **VECTORS}
    table = lake.create_table(path, people(0, 1).schema, partition_by="city", properties=properties)
    change(table)
    with changing(table, "schema") as schema:
        schema.rename_column("score", "the score")
        schema.add_column("note", "string")
    table = lake.table(path)
    table.append(people(50, 55).rename_columns(["id", "city", "the score"]))


def mapped_by_id(lake, path):
    nested = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
            ("m", pa.map_(pa.string(), pa.float64())),
        ]
    )
    table = lake.create_table(path, nested, properties={"delta.columnMapping.mode": "id"})
    rows = [{"id": i, "s": {"a": i, "b": ["x", None]}, "m": [("k", 0.5)]} for i in range(5)]
    table.append(pa.Table.from_pylist([*rows, {"id": 9}], nested))
    table.delete("id = 2")


def odd_partitions(lake, path):
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("day", pa.date32())])
    table = lake.create_table(path, schema, partition_by=["text", "day"])
    texts = ["a b", "c/d", "é%", "x=y", None, "100%25", "q?#[]", ""]
    days = [datetime.date(2024, 2, 29), None]
    rows = [(i, text, days[i % 2]) for i, text in enumerate(texts)]
    table.append(pa.Table.from_pylist([dict(zip(schema.names, r, strict=True)) for r in rows]))
    table.delete("id = 0")
    table.overwrite(pa.Table.from_pylist([{"id": 77, "text": "c/d", "day": None}]), dynamic=True)


def every_type(lake, path):
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("byte", pa.int8()),
            ("short", pa.int16()),
            ("int", pa.int32()),
            ("real", pa.float32()),
            ("yes", pa.bool_()),
            ("bytes", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("small", pa.decimal128(9, 2)),
            ("large", pa.decimal128(38, 10)),
        ]
    )
    row = {
        "id": 1,
        "byte": -3,
        "short": 300,
        "int": -70000,
        "real": 0.5,
        "yes": True,
        "bytes": b"\x00\xff",
        "day": datetime.date(1969, 7, 20),
        "at": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, UTC),
        "small": decimal.Decimal("-12.34"),
        "large": decimal.Decimal("1234567890123456789.0123456789"),
    }
    table = lake.create_table(path, schema)
    table.append(pa.Table.from_pylist([row, {"id": 2}], schema))
    table.update({"short": "7"}, where="id = 1")


def with_checkpoint(lake, path):
    table = lake.create_table(path, people(0, 1).schema, properties=VECTORS)
    for number in range(12):
        table.append(people(number * 10, number * 10 + 10))
    table.delete("id % 10 = 7")
    table.delete("id < 20")


def replaced(lake, path):
    lake.create_table(path, "a string").append(pa.table({"a": ["x"]}))
    lake.create_table(path, people(0, 1).schema, replace=True).append(people(0, 3))


def with_commit_times(lake, path):
    properties = {"delta.enableInCommitTimestamps": "true"}
    change(lake.create_table(path, people(0, 1).schema, properties=properties))


def with_row_ids(lake, path):
    properties = {"delta.enableRowTracking": "true", **VECTORS}
    table = lake.create_table(path, people(0, 1).schema, properties=properties)
    change(table)
    table.update({"score": "0"}, where="id = 7", mode="copy-on-write")
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.delete("id = 8", mode="merge-on-read")


def clustered(lake, path):
    table = lake.create_table(path, people(0, 1).schema, cluster_by=["id", "city"])
    change(table)
    table.rewrite_data_files("cluster")
    table.append(people(60, 62))


TABLES = {
    made.__name__: made
    for made in (
        plain,
        partitioned,
        with_vectors,
        partitioned_with_vectors,
        mapped_by_name,
        mapped_by_id,
        odd_partitions,
        every_type,
        with_checkpoint,
        replaced,
        with_commit_times,
        with_row_ids,
        clustered,
    )
}
# DuckDB 1.5.5 reads partition values of mapped columns as null.
NOT_DUCKDB = {"mapped_by_name"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("delta")


@pytest.fixture(scope="module")
def ours(folder):
    """The rows of each table, after all that is done to it."""
    found = {}
    with rowlake.connect(str(folder / "lake")) as lake:
        for name, make in TABLES.items():
            make(lake, ("delta", str(folder / name)))
            rows = lake.table(("delta", str(folder / name))).arrow()
            found[name] = in_order(rows.to_pylist())
    return found


@pytest.fixture(scope="module")
def by_spark(folder, ours):
    found = read_by_spark([folder / name for name in ours])
    return dict(zip(ours, found, strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_delta_on_spark_reads_what_rowlake_wrote(by_spark, ours, name):
    assert by_spark[name] == ours[name]


@pytest.mark.parametrize("name", [one for one in TABLES if one not in NOT_DUCKDB])
def test_duckdb_reads_what_rowlake_wrote(folder, ours, name):
    duckdb_extensions.import_extension("delta")
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        duck.execute("LOAD delta")
        found = duck.execute(f"SELECT * FROM delta_scan('{folder / name}')").to_arrow_table()
    assert in_order(found.to_pylist()) == ours[name]


@pytest.mark.parametrize("name", TABLES)
def test_delta_rs_reads_what_rowlake_wrote(folder, ours, name):
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(folder / name)))
    found = pa.table(query.execute("SELECT * FROM t").read_all())
    assert in_order(found.to_pylist()) == ours[name]
