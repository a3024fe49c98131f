"""Maintenance of Delta tables beside Delta on Spark: others read what is left of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import deltalake
import duckdb
import duckdb_extensions
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowlake
from tests.parts.delta_spark import run_by_spark
from tests.plain_values import in_order

VECTORS = {"delta.enableDeletionVectors": "true"}


def people(*ids: int) -> pa.Table:
    cities = pa.array([f"c {i % 3}" for i in ids])
    return pa.table({"id": pa.array(ids, pa.int64()), "city": cities})


def make(lake, path, **layout):
    table = lake.create_table(path, people(0).schema, properties=VECTORS, **layout)
    table.append(people(*range(20)))
    table.append(people(*range(20, 40)))
    table.delete("id = 3", mode="merge-on-read")
    table.delete("id = 4", mode="merge-on-read")
    table.overwrite(people(100, 101), where="id >= 20")
    return table


def vacuumed(lake, path):
    table = make(lake, path, partition_by="city")
    long_ago = time.time() - 30 * 86_400
    for file in Path(path[1]).rglob("*"):
        os.utime(file, (long_ago, long_ago))
    done = table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert done.files_count


def restored(lake, path):
    make(lake, path).restore(version=3)


def restored_by_partition(lake, path):
    make(lake, path, partition_by="city").restore(version=2)


def purged(lake, path):
    table = make(lake, path)
    table.reorg()
    table.generate()


def converted(lake, path):
    for city in ("a b", "c"):
        folder = Path(path[1]) / f"city={city}"
        folder.mkdir(parents=True)
        pq.write_table(people(len(city)).select(["id"]), folder / "x y.parquet")
    lake.convert_to_delta(path[1], partition_by="city STRING").append(people(7))


def shallow(lake, path):
    make(lake, ("delta", f"{path[1]} source"), partition_by="city").clone(path, shallow=True)
    lake.table(path).delete("id = 10", mode="merge-on-read")


def deep(lake, path):
    make(lake, ("delta", f"{path[1]} source"), partition_by="city").clone(path)


TABLES = {
    made.__name__: made
    for made in (vacuumed, restored, restored_by_partition, purged, converted, shallow, deep)
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("delta")


@pytest.fixture(scope="module")
def ours(folder):
    """The rows of each table, and what VACUUM would delete of one."""
    found = {}
    with rowlake.connect(str(folder / "lake")) as lake:
        for name, build in TABLES.items():
            build(lake, ("delta", str(folder / name)))
            rows = lake.table(("delta", str(folder / name))).arrow()
            found[name] = in_order(rows.to_pylist())
        table = make(lake, ("delta", str(folder / "garbage")), partition_by="city")
        (folder / "garbage" / "stray.parquet").write_bytes(b"x")
        time.sleep(0.01)
        done = table.vacuum(retention_hours=0, enforce_retention_duration=False)
        found["garbage"] = sorted(done.path)
    return found


@pytest.fixture(scope="module")
def by_spark(folder, ours):
    at = {name: f"delta.`{folder / name}`" for name in (*TABLES, "garbage")}
    statements = {
        "check": "SET spark.databricks.delta.retentionDurationCheck.enabled = false",
        **{name: f"SELECT * FROM {at[name]}" for name in TABLES},
        "history": f"DESCRIBE HISTORY {at['vacuumed']}",
        "restore history": f"DESCRIBE HISTORY {at['restored']}",
        "garbage": f"VACUUM {at['garbage']} RETAIN 0 HOURS DRY RUN",
        "restore": f"RESTORE TABLE {at['restored']} TO VERSION AS OF 1",
        "clone": f"CREATE TABLE delta.`{folder}/theirs` SHALLOW CLONE {at['deep']}",
        "after": f"SELECT * FROM {at['restored']}",
    }
    return dict(zip(statements, run_by_spark(list(statements.values())), strict=True))


@pytest.mark.parametrize("name", TABLES)
def test_delta_on_spark_reads_them(by_spark, ours, name):
    assert by_spark[name] == ours[name]


def test_vacuum_finds_what_delta_on_spark_finds(by_spark, ours):
    theirs = sorted(row["path"].removeprefix("file:") for row in by_spark["garbage"])
    assert theirs == ours["garbage"]
    assert len(theirs) > 3


def test_histories_read_alike(by_spark):
    told = {row["operation"]: row for row in by_spark["history"]}
    assert told["VACUUM END"]["operationParameters"] == {"status": "COMPLETED"}
    assert int(told["VACUUM START"]["operationMetrics"]["numFilesToDelete"]) > 0
    told = {row["operation"]: row for row in by_spark["restore history"]}
    assert told["RESTORE"]["operationParameters"]["version"] == "3"
    assert told["RESTORE"]["operationMetrics"]["numRemovedFiles"] == "2"


def test_rowlake_reads_what_delta_on_spark_restored_and_cloned(folder, by_spark, ours):
    assert by_spark["restore"][0]["num_restored_files"] >= 1
    with rowlake.connect(str(folder / "lake")) as lake:
        after = lake.table(("delta", str(folder / "restored"))).arrow()
        clone = lake.table(("delta", str(folder / "theirs"))).arrow()
    assert in_order(after.to_pylist()) == by_spark["after"]
    assert in_order(clone.to_pylist()) == ours["deep"]


# DuckDB 1.5.5 and delta-rs look for all files below the table's own folder.
@pytest.mark.parametrize("name", [one for one in TABLES if one != "shallow"])
def test_duckdb_and_delta_rs_read_them(folder, ours, by_spark, name):
    expected = by_spark["after"] if name == "restored" else ours[name]
    duckdb_extensions.import_extension("delta")
    with duckdb.connect() as duck:
        duck.execute("LOAD delta")
        found = duck.execute(f"SELECT * FROM delta_scan('{folder / name}')").to_arrow_table()
    assert in_order(found.to_pylist()) == expected
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(folder / name)))
    found = pa.table(query.execute("SELECT * FROM t").read_all())
    assert in_order(found.to_pylist()) == expected
