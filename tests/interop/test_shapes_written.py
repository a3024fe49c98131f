"""Tables of every shape, written by us: Java reads the same rows, and goes on writing."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from tests.parts.rows import rows_of
from tests.parts.samples import UTC, flat_rows, flat_schema

TRANSFORMS = {
    "identity": [
        "flag", "small", "dec9", "dec38", "day", "local", "instant", "text", "five", "bytes",
    ],
    "buckets": [
        f"bucket(4, {name})"
        for name in ("small", "dec38", "day", "local", "instant", "text", "key", "five", "bytes")
    ],
    "truncates": [
        "truncate(10, small)", "truncate(3, dec9)", "truncate(3, text)", "truncate(2, bytes)",
    ],
    "times": ["years(day)", "months(local)", "days(instant)"],
    "hours": ["hours(local)", "months(day)"],
}  # fmt: skip


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_java_reads_every_partition_transform(lake, java, name, version, kind):
    properties = {"format-version": str(version)}
    for made in (name, f"{name}_java"):
        lake.create_table(made, flat_schema(), partition_by=TRANSFORMS[kind], properties=properties)
    table = lake.table(name)
    table.append(flat_rows())
    rows = java(f"SELECT * FROM java.{name}")
    assert rows_of(rows) == rows_of(table.df())
    rows.writeTo(f"java.{name}_java").append()
    partitions = "SELECT partition, record_count FROM java.{}.files"
    ours = rows_of(java(partitions.format(name)))
    assert ours == rows_of(java(partitions.format(f"{name}_java")))
    assert rows_of(table.inspect("files").select(["partition", "record_count"])) == ours
    folders = "SELECT regexp_extract(file_path, '/data/(.*)/[^/]*$', 1) FROM java.{}.files"
    assert rows_of(java(folders.format(name))) == rows_of(java(folders.format(f"{name}_java")))
    assert rows_of(lake.table(f"{name}_java").arrow()) == rows_of(table.arrow())


def evolved(lake, name: str, version: int):
    """Return a table whose schema and spec changed between appends."""
    lake.sql(
        f"CREATE TABLE {name} (id int NOT NULL, a int, f float, d decimal(9, 2), gone string, "
        "s struct<x: int, y: string>, l array<struct<p: int>>, m map<string, int>, day date) "
        f"PARTITIONED BY (days(day)) TBLPROPERTIES ('format-version'='{version}', "
        "'commit.manifest.min-count-to-merge'='2')"
    )
    lake.sql(
        f"INSERT INTO {name} VALUES (1, 10, 1.5, 1.25, 'g', named_struct('x', 1, 'y', 'u'), "
        "array(named_struct('p', 5)), map('k', 1), DATE'2024-01-01')"
    )
    for change in (
        "ALTER COLUMN a TYPE bigint",
        "ALTER COLUMN f TYPE double",
        "ALTER COLUMN d TYPE decimal(18, 2)",
        "DROP COLUMN gone",
        "RENAME COLUMN a TO b",
        "ADD COLUMN s.z bigint AFTER x",
        "ALTER COLUMN s.x TYPE bigint",
        "RENAME COLUMN s.y TO yy",
        "ADD COLUMN l.element.q string",
        "ALTER COLUMN m.value TYPE bigint",
        "ADD COLUMN gone int FIRST",
        "ADD PARTITION FIELD bucket(4, id)",
        "DROP PARTITION FIELD days(day)",
    ):
        lake.sql(f"ALTER TABLE {name} {change}")
    lake.sql(
        f"INSERT INTO {name} VALUES (7, 2, 5000000000, 2.5, 99999999.99, named_struct('x', 2, 'z', "
        "3, 'yy', 'v'), array(named_struct('p', 6, 'q', 'w')), map('l', 2), DATE'2024-02-01')"
    )
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(2, b) AS tb")
    lake.sql(f"INSERT INTO {name} (id, b) VALUES (3, 33), (4, NULL)")
    return lake.table(name)


def test_java_reads_evolved_tables_and_writes_on(lake, java, name, version):
    table = evolved(lake, name, version)
    assert (
        rows_of(java(f"SELECT * FROM java.{name}")) == rows_of(table.df()) == rows_of(table.arrow())
    )
    assert java(f"SELECT * FROM java.{name}").columns == table.df().columns
    java(f"INSERT INTO java.{name} (id, b, day) VALUES (9, 9, DATE'2024-03-01')")
    java(f"CALL java.system.rewrite_manifests('{name}')")
    java(f"DELETE FROM java.{name} WHERE id = 1")
    expected = rows_of(java(f"SELECT * FROM java.{name}"))
    assert len(expected) == 4
    assert rows_of(table.df()) == rows_of(table.arrow()) == expected
    lake.sql(f"INSERT INTO {name} (id) VALUES (100)")
    java(
        f"CALL java.system.expire_snapshots(table => '{name}', older_than => now(), "
        "retain_last => 1)"
    )
    assert rows_of(table.arrow()) == rows_of(java(f"SELECT * FROM java.{name}"))


def test_java_reads_our_defaults(lake, java, name):
    lake.sql(f"CREATE TABLE {name} (id int) TBLPROPERTIES ('format-version'='3')")
    lake.sql(f"INSERT INTO {name} VALUES (1)")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN t string DEFAULT 'old'")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN n decimal(9, 2) DEFAULT 1.25")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN d date DEFAULT DATE'2024-01-01'")
    lake.sql(f"INSERT INTO {name} (id) VALUES (2)")
    lake.sql(f"ALTER TABLE {name} ALTER COLUMN t SET DEFAULT 'new'")
    lake.sql(f"INSERT INTO {name} (id) VALUES (3)")
    found = rows_of(java(f"SELECT * FROM java.{name}"))
    assert [row[:2] for row in found] == [(1, "old"), (2, "old"), (3, "new")]
    assert rows_of(lake.table(name).df()) == rows_of(lake.table(name).arrow()) == found


def test_java_reads_branches_tags_and_history(lake, java, name, version):
    lake.sql(f"CREATE TABLE {name} (id int) TBLPROPERTIES ('format-version'='{version}')")
    table = lake.table(name)
    table.append(ids(1))
    first = table.snapshots()[0].snapshot_id
    table.create_tag("first")
    table.create_branch("side")
    table.append(ids(2), branch="side")
    table.overwrite(ids(3))
    for ref in ("first", "side", str(first)):
        text = f"SELECT * FROM java.{name} VERSION AS OF {ref if ref.isdigit() else repr(ref)}"
        at = {"snapshot_id": first} if ref.isdigit() else {"ref": ref}
        assert rows_of(java(text)) == rows_of(table.df(**at)) == rows_of(table.arrow(**at)) != []
    java(f"INSERT INTO java.{name}.branch_side VALUES (4)")
    assert rows_of(table.arrow(ref="side")) == [(1,), (2,), (4,)]
    table.truncate()
    assert java(f"SELECT * FROM java.{name}").count() == 0
    assert rows_of(table.inspect("refs")) == rows_of(java(f"SELECT * FROM java.{name}.refs"))


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int32())})


def test_java_reads_overwrites_replaces_and_sort_orders(lake, java, name, version):
    lake.sql(
        f"CREATE TABLE {name} (id int, p int) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', 'commit.manifest.min-count-to-merge'='2')"
    )
    lake.sql(f"ALTER TABLE {name} WRITE ORDERED BY id DESC NULLS LAST")
    for number in range(4):
        lake.sql(f"INSERT INTO {name} VALUES ({number}, {number % 2}), ({number + 10}, 7)")
    lake.sql(f"INSERT OVERWRITE {name} PARTITION (p = 1) SELECT 99")
    table = lake.table(name)
    found = rows_of(java(f"SELECT * FROM java.{name}"))
    assert found == rows_of(table.df()) and (99, 1) in found
    assert java(f"SELECT DISTINCT sort_order_id FROM java.{name}.files").collect()[0][0] == 1
    lake.sql(f"CREATE OR REPLACE TABLE {name} TBLPROPERTIES ('format-version'='{version}') AS "
             "SELECT 'a' AS x, 5L AS id")  # fmt: skip
    assert rows_of(java(f"SELECT * FROM java.{name}")) == [("a", 5)] == rows_of(table.df())


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_java_changes_rows_of_our_snapshots(lake, java, name, version, mode):
    lake.sql(
        f"CREATE TABLE {name} (id bigint, p int, v string) PARTITIONED BY (p) TBLPROPERTIES ("
        f"'format-version'='{version}', 'write.delete.mode'='{mode}', 'write.update.mode'='{mode}',"
        f"'write.merge.mode'='{mode}')"
    )
    table = lake.table(name)
    data = pa.table({"id": range(100), "p": pa.array([n % 3 for n in range(100)], pa.int32()),
                     "v": ["a"] * 100})  # fmt: skip
    table.append(data)
    java(f"DELETE FROM java.{name} WHERE id % 10 = 0")
    java(f"UPDATE java.{name} SET v = 'b' WHERE id % 7 = 0")
    table.append(data.slice(0, 3))
    java(
        f"MERGE INTO java.{name} t USING (SELECT 5L id UNION ALL SELECT 1000L) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 9, 'm')"
    )
    expected = rows_of(java(f"SELECT * FROM java.{name}"))
    assert rows_of(table.df()) == rows_of(table.arrow()) == expected
    if version == 3:
        lineage = ["id", "_row_id", "_last_updated_sequence_number"]
        theirs = rows_of(java(f"SELECT {', '.join(lineage)} FROM java.{name}"))
        assert rows_of(table.arrow(lineage)) == rows_of(table.df(lineage)) == theirs
    columns = ["id", "_file", "_pos", "_partition", "_spec_id", "_deleted"]
    theirs = rows_of(java(f"SELECT {', '.join(columns)} FROM java.{name}"))
    assert rows_of(table.df(columns)) == theirs
    java(
        f"CALL java.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    assert rows_of(table.arrow()) == expected
    table.overwrite(data.slice(0, 1), where="p = 0")
    assert rows_of(java(f"SELECT * FROM java.{name}")) == rows_of(table.arrow())


def test_times_around_the_epoch_fall_into_javas_partitions(lake, java, name, version):
    stamps = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), None]
    data = pa.table({"ts": pa.array(stamps, pa.timestamp("us")),
                     "tz": pa.array([s and s.replace(tzinfo=UTC) for s in stamps])})  # fmt: skip
    partitions = ["years(ts)", "days(tz)"]
    for made in (name, f"{name}_java"):
        lake.create_table(made, data.schema, partition_by=partitions,
                          properties={"format-version": str(version)})  # fmt: skip
    lake.table(name).append(data)
    java(f"INSERT INTO java.{name}_java SELECT * FROM java.{name}")
    text = "SELECT partition FROM java.{}.files"
    assert rows_of(java(text.format(name))) == rows_of(java(text.format(f"{name}_java")))
