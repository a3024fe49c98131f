"""Mirrored tables: Iceberg in Java and Delta on Spark read the same rows after each commit."""

from __future__ import annotations

import duckdb
import duckdb_extensions
import pyarrow as pa
import pytest

import rowlake
from rowlake.model.mirror import MIRROR, SOURCE_SNAPSHOT
from tests.mirrors import MAPPED, OTHER, V3, VECTORS, alter, mirror_of
from tests.parts.both_spark import read_by_both
from tests.plain_values import in_order

KINDS = {
    "iceberg_v3": ("iceberg", V3),
    "iceberg_v2": ("iceberg", {"format-version": "2", "write.delete.mode": "copy-on-write"}),
    "delta_mapped": ("delta", MAPPED),
    "delta_plain": ("delta", VECTORS),
}


def people(first, last):
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([None if i % 5 == 4 else f"c {i % 3}" for i in ids]),
            "score": pa.array([i / 4 for i in ids], pa.float64()),
            "n": pa.array(ids, pa.int32()),
        }
    )


def steps(lake, name, kind):
    """Yield after each commit that a table gets."""
    table = lake.table(name)
    table.append(people(0, 20))
    yield
    table.delete("id = 3", **({"mode": "copy-on-write"} if kind == "iceberg_v2" else {}))
    yield
    if kind != "iceberg_v2":
        table.delete("id in (4, 5, 7)")
        yield
        table.upsert(people(19, 22), keys=["id"])
        yield
    if kind != "delta_plain":
        alter(table, ("rename_column", "score", "points"), ("add_column", "note", "string"))
        new = people(30, 32).rename_columns(["id", "city", "points", "n"])
        table = lake.table(name)
        table.append(new.append_column("note", pa.array(["a", None])))
        yield
    if kind.startswith("iceberg"):
        lake.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE bigint")
    table.rewrite_data_files(options={"rewrite-all": "true"})
    yield


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """Each table's rows by (format, snapshot) on both sides."""
    found = {}
    with rowlake.connect(str(tmp_path_factory.mktemp("lake"))) as lake:
        lake.create_namespace("ns")
        for key, (kind, properties) in KINDS.items():
            wanted = {**properties, MIRROR: OTHER[kind]}
            table = lake.create_table(
                f"ns.{key}",
                people(0, 1).schema,
                partition_by="city",
                properties=wanted,
                format=kind,
            )
            looks = {}
            for _ in steps(lake, f"ns.{key}", key):
                now = lake.table(f"ns.{key}")
                rows = in_order(now.arrow().to_pylist())
                looks[kind, str(now.handle.current_snapshot_id)] = rows
                twin = mirror_of(now)
                assert twin.snapshots()[-1].summary[SOURCE_SNAPSHOT]
                looks[OTHER[kind], str(twin.handle.current_snapshot_id)] = rows
            found[key] = (table.location, looks)
    return found


def test_iceberg_java_and_delta_on_spark_read_the_same_rows(histories):
    # Java's HadoopTables finds tables by their folder; others are in a catalog of ours.
    asked = [
        (key, kind, snapshot, location, rows)
        for key, (location, looks) in histories.items()
        for (kind, snapshot), rows in looks.items()
        if kind == "delta" or key.startswith("delta")
    ]
    looks = [(kind, place, "versionAsOf", at) for _, kind, at, place, _ in asked]
    for (key, kind, at, _, rows), theirs in zip(asked, read_by_both(looks), strict=True):
        assert theirs == rows, (key, kind, at)


@pytest.fixture(scope="module")
def duck():
    for extension in ("avro", "iceberg", "delta"):
        duckdb_extensions.import_extension(extension)
    with duckdb.connect() as found:
        found.execute("SET TimeZone = 'UTC'")
        found.execute("LOAD iceberg")
        found.execute("LOAD delta")
        yield found


@pytest.mark.parametrize("key", KINDS)
def test_duckdb_reads_the_same_rows(tmp_path, duck, key):
    """Files without vectors; those it refuses, since their container is the other format's."""
    kind, properties = KINDS[key]
    scan = "iceberg_scan" if kind == "delta" else "delta_scan"
    with rowlake.connect(str(tmp_path)) as lake:
        lake.create_namespace("ns")
        wanted = {**properties, MIRROR: OTHER[kind]}
        table = lake.create_table(
            "ns.t", people(0, 1).schema, partition_by="city", properties=wanted, format=kind
        )
        table.append(people(0, 20))
        table.overwrite(people(30, 31), where="city = 'c 1'")
        query = f"SELECT * FROM {scan}('{table.location}')"
        found = duck.execute(query).to_arrow_table()
        assert in_order(found.to_pylist()) == in_order(table.arrow().to_pylist())
        if key != "iceberg_v2":
            table.delete("id = 3")
            with pytest.raises(duckdb.Error, match=r"(?i)deletion vector"):
                duck.execute(query).to_arrow_table()
