"""DuckDB reads what we write."""

from __future__ import annotations

import duckdb
import duckdb_extensions
import pyarrow as pa
import pytest

import rowlake
from tests.lakes import SALES, sales
from tests.parts.rows import rows_of
from tests.parts.samples import flat_rows, flat_schema, nested_rows, nested_schema

SAMPLES = {"flat": (flat_schema, flat_rows), "nested": (nested_schema, nested_rows)}


@pytest.fixture(scope="module")
def duck():
    for extension in ("avro", "iceberg"):
        duckdb_extensions.import_extension(extension)
    with duckdb.connect() as found:
        found.execute("SET TimeZone = 'UTC'")
        found.execute("LOAD iceberg")
        yield found


@pytest.fixture
def lake(tmp_path):
    with rowlake.connect(str(tmp_path)) as found:
        found.create_namespace("db")
        yield found


def scan(duck, table) -> pa.Table:
    location = table.handle.metadata_location.removeprefix("file://")
    return duck.execute(f"SELECT * FROM iceberg_scan('{location}')").to_arrow_table()


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("partition_by", [(), ("bucket(3, id)",)], ids=["plain", "bucketed"])
def test_duckdb_reads_our_tables(lake, duck, version, kind, partition_by):
    schema, rows = SAMPLES[kind]
    table = lake.create_table(
        "db.t", schema(), partition_by=partition_by, properties={"format-version": str(version)}
    )
    table.append(rows())
    table.append(rows())
    assert rows_of(scan(duck, table)) == rows_of(table.arrow())


def test_duckdb_reads_evolution_and_overwrites(lake, duck, version):
    data = pa.table({"a": pa.array([1, 2], pa.int32()), "p": ["x", "y"]})
    properties = {"format-version": str(version), "commit.manifest.min-count-to-merge": "2"}
    table = lake.create_table("db.t", data.schema, partition_by=["p"], properties=properties)
    table.append(data)
    lake.sql("ALTER TABLE db.t ALTER COLUMN a TYPE bigint")
    lake.sql("ALTER TABLE db.t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE db.t ADD COLUMN c string")
    lake.sql("ALTER TABLE db.t ADD PARTITION FIELD bucket(2, b)")
    table.append(pa.table({"b": [3], "p": ["x"], "c": ["new"]}))
    assert rows_of(scan(duck, table)) == rows_of(table.arrow())
    table.overwrite(pa.table({"b": [4], "p": ["y"], "c": ["over"]}), where="p = 'y'")
    found = rows_of(scan(duck, table))
    assert found == rows_of(table.arrow()) and len(found) == 3


DELETED = {
    "v2 position deletes": ("2", "positions"),
    "v2 equality deletes": ("2", "equality"),
    "v3 vectors": ("3", "positions"),
}


@pytest.mark.parametrize("kind", DELETED)
@pytest.mark.parametrize("partition_by", [(), ("bucket(2, id)",)], ids=["plain", "bucketed"])
def test_duckdb_applies_our_deletes(lake, duck, kind, partition_by):
    version, deletes = DELETED[kind]
    table = lake.create_table(
        "db.t", SALES, partition_by=partition_by, properties={"format-version": version}
    )
    table.append(sales(40))
    table.append(sales(20, 40))
    table.delete("id = 3 OR id = 41", **how(deletes))
    table.delete("id = 50", **how(deletes))
    table.append(sales(1, 3))
    assert table.arrow().num_rows == 60 - 2
    if deletes == "equality":  # two rows are replaced, three are new
        table.upsert(sales(5, 58), ["id"], **how(deletes))
    contents = set(table.inspect("delete_files")["content"].to_pylist())
    assert contents == ({1} if deletes == "positions" else {2})
    found = rows_of(scan(duck, table))
    assert found == rows_of(table.arrow())
    assert len(found) == (61 if deletes == "equality" else 58)


def how(deletes: str) -> dict[str, str]:
    given = {"mode": "merge-on-read"}
    return {**given, "deletes": "equality"} if deletes == "equality" else given


@pytest.mark.parametrize("partition_by", [(), ("store",)], ids=["plain", "partitioned"])
def test_duckdb_applies_our_vectors_of_delta_tables(lake, duck, tmp_path, partition_by):
    place = tmp_path / "delta"
    table = lake.create_table(
        ("delta", str(place)),
        SALES,
        partition_by=partition_by,
        properties={"delta.enableDeletionVectors": "true"},
    )
    table.append(sales(40))
    table.delete("id = 8 OR id = 9", mode="merge-on-read")
    table.delete("id < 3", mode="merge-on-read")
    logs = "".join(one.read_text() for one in sorted((place / "_delta_log").glob("*.json")))
    assert "deletionVector" in logs
    duckdb_extensions.import_extension("delta")
    duck.execute("LOAD delta")
    found = rows_of(
        duck.execute(f"FROM delta_scan('{place}')").to_arrow_table().select(SALES.names)
    )
    assert found == rows_of(table.arrow())
    assert len(found) == 35
