"""rewrite_manifests and the statistics procedures, beside Iceberg's own on the same tables."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rowlake.engine import spark as engines
from tests.parts.rows import rows_of

COLUMNS = "id bigint, p int, name string"


def made(java, name, version, layout="PARTITIONED BY (p)"):
    """Make a table of four appends and two deletes, each in manifests of their own."""
    java(
        f"CREATE TABLE java.{name} ({COLUMNS}) USING iceberg {layout} TBLPROPERTIES ("
        f"'format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'commit.manifest-merge.enabled'='false', 'write.distribution-mode'='none')"
    )
    for first in range(0, 40, 10):
        java(
            f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 3 AS int), "
            f"concat('n', id % 7) FROM range({first}, {first + 10})"
        )
    java(f"DELETE FROM java.{name} WHERE id = 3")
    java(f"DELETE FROM java.{name} WHERE id = 14")
    return name


def entries(java, name) -> Counter:
    found = java(
        "SELECT snapshot_id, sequence_number, file_sequence_number, data_file.file_path, "
        f"data_file.first_row_id FROM java.{name}.entries WHERE status < 2"
    )
    return Counter(rows_of(found))


def manifests(java, name) -> Counter:
    found = java(
        "SELECT content, added_data_files_count + added_delete_files_count AS added, "
        "existing_data_files_count + existing_delete_files_count AS existing, "
        f"partition_summaries FROM java.{name}.manifests"
    )
    return Counter(str(row) for row in rows_of(found))


def summary(java, name) -> dict[str, str]:
    found = java(f"SELECT operation, summary FROM java.{name}.snapshots ORDER BY committed_at DESC")
    operation, said = found.first()
    counted = {"manifests-created", "manifests-kept", "manifests-replaced", "total-records"}
    counted |= {"total-data-files", "total-delete-files", "changed-partition-count"}
    return {"operation": operation, **{key: said[key] for key in counted}}


def test_manifests_are_rewritten_as_java_does(lake, java, name, version):
    theirs, ours = made(java, f"{name}_java", version), made(java, f"{name}_ours", version)
    before = entries(java, ours)
    select = f"SELECT id, p, name{', _row_id' if version == 3 else ''} FROM java.{ours}"
    rows = rows_of(java(select))

    expected = java(f"CALL java.system.rewrite_manifests('{theirs}')")
    found = lake.sql(f"CALL system.rewrite_manifests('{ours}')")

    assert found.columns == expected.columns
    assert found.schema.simpleString() == expected.schema.simpleString()
    assert rows_of(found) == rows_of(expected) == [(6, 2)]
    assert summary(java, ours) == summary(java, theirs)
    assert manifests(java, ours) == manifests(java, theirs)
    assert entries(java, ours) == before
    assert rows_of(java(select)) == rows
    java(f"DELETE FROM java.{ours} WHERE id = 25")
    java(f"INSERT INTO java.{ours} VALUES (100, 1, 'x')")
    assert rows_of(lake.sql(f"CALL system.rewrite_manifests('{ours}')")) == [(4, 2)]
    after = rows_of(java(select))
    assert len(after) == len(rows)
    assert rows_of(lake.sql(select.replace("java.", ""))) == after
    if version == 3:
        assert len({row[-1] for row in after}) == len(after)


def iceberg_table(spark, name):
    load = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    return load(spark._jsparkSession, f"java.{name}")


def each(found):
    """Iterate over what is only a java.lang.Iterable."""
    items = found.iterator()
    while items.hasNext():
        yield items.next()


def sketches(spark, name) -> dict[int, tuple[int, float, bytes]]:
    """Return what Java reads: (distinct values said, estimate, sketch) by field id."""
    jvm = spark._jvm
    table = iceberg_table(spark, name)
    (named,) = table.statisticsFiles()
    assert named.snapshotId() == table.currentSnapshot().snapshotId()
    source = table.io().newInputFile(named.path())
    assert source.getLength() == named.fileSizeInBytes()
    reader = (
        jvm.org.apache.iceberg.puffin.Puffin.read(source)
        .withFooterSize(named.fileFooterSizeInBytes())
        .build()
    )
    found = {}
    for pair in each(reader.readAll(reader.fileMetadata().blobs())):
        blob, data = (
            pair.first(),
            jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(pair.second()),
        )
        sketch = jvm.org.apache.datasketches.theta.Sketch.wrap(
            jvm.org.apache.datasketches.memory.Memory.wrap(data)
        )
        said = int(blob.properties()["ndv"])
        assert blob.type() == "apache-datasketches-theta-v1"
        found[next(iter(blob.inputFields()))] = (said, sketch.getEstimate(), bytes(data))
    reader.close()
    assert [list(blob.fields()) for blob in named.blobMetadata()] == [[key] for key in found]
    return found


@pytest.fixture
def in_tasks(monkeypatch):
    """Have Spark run every task, however small."""
    monkeypatch.setattr(engines, "is_tiny", lambda tasks, *_, **__: not tasks)


def test_distinct_values_are_counted_as_java_does(lake, java, spark, name, in_tasks):
    del in_tasks
    java(
        f"CREATE TABLE java.{name} (flag boolean, i int, l bigint, f float, d double, "
        "dec decimal(20, 3), day date, at timestamp, plain timestamp_ntz, s string, b binary, "
        "st struct<x: int>, none string, one int, many bigint) USING iceberg "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    java(
        f"INSERT INTO java.{name} SELECT id % 2 = 0, CAST(id % 100 AS int), id % 4000, "
        "CAST(id % 50 AS float), IF(id % 9 = 0, double('NaN'), id % 11 - 5), "
        "CAST(id % 700 - 300 AS decimal(20, 3)), date_add(DATE '2024-01-01', CAST(id % 365 AS "
        "int)), timestamp_micros(id % 1000), CAST(timestamp_micros(id % 10) AS timestamp_ntz), "
        "IF(id % 8 = 0, NULL, repeat('ab', CAST(id % 60 AS int))), CAST(concat('', id % 33) AS "
        "binary), named_struct('x', CAST(id % 5 AS int)), NULL, 1, id FROM range(0, 20000, 1, 4)"
    )
    java(f"DELETE FROM java.{name} WHERE i = 7")
    ours = lake.sql(f"CALL system.compute_table_stats('{name}')")
    found = sketches(spark, name)
    theirs = java(f"CALL java.system.compute_table_stats('{name}')")
    expected = sketches(spark, name)
    assert ours.columns == theirs.columns
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert list(found) == list(expected)
    assert {said for said, _, _ in found.values()} >= {0, 1, 2}
    for field, (said, estimate, data) in found.items():
        assert said == int(estimate)
        if said < 4096:
            assert (said, data) == (expected[field][0], expected[field][2])
        else:
            assert said == pytest.approx(19800, rel=0.05)
            assert expected[field][0] == pytest.approx(19800, rel=0.05)
    columns = f"CALL system.compute_table_stats(table => '{name}', columns => array('st.x', 'one'))"
    lake.sql(columns)
    some = sketches(spark, name)
    java(columns.replace("system", "java.system"))
    assert some == sketches(spark, name)


def statistics(location: str) -> list[dict]:
    rows = pq.read_table(location.removeprefix("file:")).to_pylist()
    return sorted(rows, key=str)


def test_partitions_are_counted_as_java_does(lake, java, spark, name, version):
    layout = "PARTITIONED BY (p, truncate(1, name))"
    theirs = made(java, f"{name}_java", version, layout)
    ours = made(java, f"{name}_ours", version, layout)
    expected = java(f"CALL java.system.compute_partition_stats('{theirs}')")
    found = lake.sql(f"CALL system.compute_partition_stats('{ours}')")
    assert found.columns == expected.columns
    assert found.schema.simpleString() == expected.schema.simpleString()
    compare(found.first()[0], expected.first()[0], spark, ours)

    for table in (theirs, ours):
        java(f"ALTER TABLE java.{table} ADD PARTITION FIELD bucket(2, id)")
        java(f"INSERT INTO java.{table} VALUES (100, 1, 'x'), (101, 7, NULL), (102, NULL, 'y')")
        java(f"DELETE FROM java.{table} WHERE p = 2")
        java(f"DELETE FROM java.{table} WHERE id = 7")
    # Each goes on from a file of its own; then Java goes on from ours.
    expected = java(f"CALL java.system.compute_partition_stats('{theirs}')").first()[0]
    compare(
        lake.table(ours).compute_partition_stats().partition_statistics_file, expected, spark, ours
    )
    java(f"INSERT INTO java.{ours} VALUES (103, 1, 'x')")
    java(f"INSERT INTO java.{theirs} VALUES (103, 1, 'x')")
    compare(
        java(f"CALL java.system.compute_partition_stats('{ours}')").first()[0],
        java(f"CALL java.system.compute_partition_stats('{theirs}')").first()[0],
        spark,
        ours,
    )


def compare(ours: str, theirs: str, spark, name) -> None:
    """Compare files of twin tables, whose snapshots and sizes differ; let Java read ours."""
    own, other = (pq.read_schema(place.removeprefix("file:")) for place in (ours, theirs))
    assert own.remove_metadata() == other.remove_metadata()
    assert [field.metadata for field in own] == [field.metadata for field in other]
    differ = {"total_data_file_size_in_bytes", "last_updated_at", "last_updated_snapshot_id"}
    found, expected = statistics(ours), statistics(theirs)
    kept = [key for key in own.names if key not in differ]
    assert sorted(str([row[key] for key in kept]) for row in found) == sorted(
        str([row[key] for key in kept]) for row in expected
    )
    assert all(row["last_updated_at"] for row in found)
    read = iceberg_table(spark, name).newPartitionStatisticsScan().scan()
    seen = [(one.specId(), one.dataRecordCount(), one.dataFileCount()) for one in each(read)]
    assert sorted(seen) == sorted(
        (row["spec_id"], row["data_record_count"], row["data_file_count"]) for row in found
    )


def copy_plan(found, staging: str) -> set[tuple[str, str]]:
    """Return the pairs of a file list, with the staging folder called by one name."""
    text = Path(found.first()["file_list_location"].removeprefix("file:")).read_text()
    pairs = [line.split(",") for line in text.splitlines()]
    return {(source.replace(staging, "staging"), target) for source, target in pairs}


def test_paths_are_rewritten_as_java_does(lake, java, name, version, tmp_path, in_tasks):
    del in_tasks
    made(java, name, version)
    lake.table(name).upsert([{"id": 5, "p": 2, "name": "new"}], keys=["id"], deletes="equality")
    lake.table(name).compute_table_stats()
    source = lake.table(name).location
    target = f"{source}_moved"
    whole = None
    for number, first in enumerate(("", ", start_version => 'v4.metadata.json'")):
        staging = f"{tmp_path}/java{number}"
        call = (
            f"CALL java.system.rewrite_table_path(table => '{name}', source_prefix => '{source}', "
            f"target_prefix => '{target}', staging_location => '{staging}'{first})"
        )
        theirs = java(call)
        ours = lake.sql(call.replace("java.", "").replace(f"{tmp_path}/java", f"{tmp_path}/ours"))
        assert ours.schema.simpleString() == theirs.schema.simpleString()
        kept = [column for column in theirs.columns if column != "file_list_location"]
        assert rows_of(ours.select(*kept)) == rows_of(theirs.select(*kept))
        expected = copy_plan(theirs, staging)
        assert copy_plan(ours, f"{tmp_path}/ours{number}") == expected
        whole = whole or ours.first()
    for line in Path(whole["file_list_location"]).read_text().splitlines():
        staged, place = (Path(one.removeprefix("file:")) for one in line.split(","))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(staged, place)
    number = whole["latest_version"].removeprefix("v").split(".")[0]
    (Path(target.removeprefix("file:")) / "metadata" / "version-hint.text").write_text(number)
    columns = f"id, p, name{', _row_id' if version == 3 else ''}"
    rows = rows_of(java(f"SELECT {columns} FROM java.{name}"))
    Path(source.removeprefix("file:")).rename(tmp_path / "away")
    assert rows_of(java(f"SELECT {columns} FROM java.{name}_moved")) == rows
    java(f"DELETE FROM java.{name}_moved WHERE id = 20")
    assert lake.table(f"{name}_moved").arrow().num_rows == len(rows) - 1
