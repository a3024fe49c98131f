"""Rows deleted by Java: position deletes, deletion vectors, equality deletes, whole files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.parts.java_tables import GRANULARITIES, commit_equality_deletes, load
from tests.parts.rows import rows_of


def same_rows(lake, java, name: str) -> list:
    """Check that both libraries see the same rows of a table, in every way; return them."""
    expected = rows_of(java(f"SELECT * FROM java.{name}"))
    table = lake.table(name)
    assert rows_of(table.arrow()) == expected
    assert rows_of(table.df()) == expected
    assert rows_of(lake.sql(f"SELECT * FROM {name}")) == expected
    (counted,) = lake.sql(f"SELECT count(*) FROM {name}").collect()
    assert counted[0] == len(expected)
    return expected


@pytest.mark.parametrize(("version", "granularity"), GRANULARITIES)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_position_deletes_and_vectors(lake, java, name, version, granularity, file_format):
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        f"'write.update.mode'='merge-on-read', 'write.delete.granularity'='{granularity}', "
        f"'write.format.default'='{file_format}')"
    )
    for start in (0, 100):
        java(
            f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int), 'a' "
            f"FROM range({start}, {start + 100})"
        )
    java(f"DELETE FROM java.{name} WHERE id % 10 IN (3, 4)")
    java(f"UPDATE java.{name} SET v = 'b' WHERE id % 25 = 0")
    java(f"DELETE FROM java.{name} WHERE v = 'b' AND p = 0")
    found = same_rows(lake, java, name)
    assert len(found) == 156
    deleted = "SELECT count(*) FROM {}.delete_files WHERE content = 1"
    assert java(deleted.format(f"java.{name}")).first()[0] > 0
    columns = ["id", "_file", "_pos", "_deleted", "_spec_id", "_partition"]
    theirs = rows_of(java(f"SELECT {', '.join(columns)} FROM java.{name}"))
    table = lake.table(name)
    assert rows_of(table.df(columns)) == theirs
    assert rows_of(table.arrow(columns)) == theirs
    assert rows_of(table.df(where="id < 20 AND p = 1")) == rows_of(
        java(f"SELECT * FROM java.{name} WHERE id < 20 AND p = 1")
    )
    for snapshot in table.snapshots():
        at = f"SELECT * FROM java.{name} VERSION AS OF {snapshot.snapshot_id}"
        assert rows_of(table.arrow(snapshot_id=snapshot.snapshot_id)) == rows_of(java(at))


def test_equality_deletes(lake, java, spark, name, version):
    """Null keys delete nulls, several columns all count, and later rows stay."""
    java(
        f"CREATE TABLE java.{name} (id bigint, a int, b string, x double) USING iceberg "
        f"TBLPROPERTIES ('format-version'='{version}')"
    )
    values = (
        "(1, 1, 'x', 0.0D), (2, NULL, 'x', -0.0D), (3, 2, NULL, double('NaN')), "
        "(4, NULL, NULL, 1), (5, 2, 'y', NULL), (6, 3, 'z', 2)"
    )
    java(f"INSERT INTO java.{name} VALUES {values}")
    table = load(spark, lake.table(name).location)
    keys = pa.table({"a": pa.array([None, 2], pa.int32()), "b": pa.array(["x", None])})
    commit_equality_deletes(spark, table, keys, [2, 3])
    assert [row[0] for row in same_rows(lake, java, name)] == [1, 4, 5, 6]
    java(f"INSERT INTO java.{name} VALUES {values}")
    assert len(same_rows(lake, java, name)) == 10
    table.refresh()
    commit_equality_deletes(spark, table, pa.table({"id": pa.array([1, 6], pa.int64())}), [1])
    commit_equality_deletes(spark, table, pa.table({"a": pa.array([None], pa.int32())}), [2])
    assert [row[0] for row in same_rows(lake, java, name)] == [3, 5, 5]
    java(f"ALTER TABLE java.{name} RENAME COLUMN a TO renamed")
    java(f"ALTER TABLE java.{name} DROP COLUMN b")
    java(f"INSERT INTO java.{name} VALUES (1, NULL, 5)")
    java(f"DELETE FROM java.{name} WHERE id = 3")
    assert [row[0] for row in same_rows(lake, java, name)] == [1, 5, 5]
    lake.table(name).append(pa.table({"id": [6]}))
    assert [row[0] for row in same_rows(lake, java, name)] == [1, 5, 5, 6]


def test_equality_deletes_on_floats(lake, java, spark, name, version):
    """NaN deletes NaN; zeros of either sign are apart, as in Java's comparison of rows."""
    java(
        f"CREATE TABLE java.{name} (id int, x double) USING iceberg "
        f"TBLPROPERTIES ('format-version'='{version}')"
    )
    java(f"INSERT INTO java.{name} VALUES (1, 0.0D), (2, -0.0D), (3, double('NaN')), (4, NULL)")
    table = load(spark, lake.table(name).location)
    keys = pa.table({"x": pa.array([float("nan"), -0.0], pa.float64())})
    commit_equality_deletes(spark, table, keys, [2])
    same_rows(lake, java, name)


def test_equality_deletes_in_partitions(lake, java, spark, name, version):
    java(
        f"CREATE TABLE java.{name} (id bigint, p int) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}')"
    )
    java(f"INSERT INTO java.{name} VALUES (1, 0), (2, 0), (1, 1), (2, 1)")
    table = load(spark, lake.table(name).location)
    key = pa.table({"id": pa.array([1], pa.int64())})
    commit_equality_deletes(spark, table, key, [1], partition="p=1")
    assert same_rows(lake, java, name) == [(1, 0), (2, 0), (2, 1)]


def test_position_deletes_become_vectors_after_an_upgrade(lake, java, name):
    java(f"CREATE TABLE java.{name} (id bigint) USING iceberg TBLPROPERTIES ('format-version'='1')")
    java(f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id FROM range(50)")
    same_rows(lake, java, name)
    modes = "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"
    java(f"ALTER TABLE java.{name} SET TBLPROPERTIES ('format-version'='2', {modes})")
    java(f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id FROM range(50, 100)")
    java(f"DELETE FROM java.{name} WHERE id % 2 = 0")
    same_rows(lake, java, name)
    java(f"ALTER TABLE java.{name} SET TBLPROPERTIES ('format-version'='3')")
    same_rows(lake, java, name)
    java(f"DELETE FROM java.{name} WHERE id % 3 = 0")
    java(f"INSERT INTO java.{name} VALUES (1000)")
    java(f"UPDATE java.{name} SET id = -1 WHERE id = 1")
    same_rows(lake, java, name)
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    theirs = rows_of(java(f"SELECT {', '.join(lineage)} FROM java.{name}"))
    assert rows_of(lake.table(name).arrow(lineage)) == theirs


def test_metrics_modes_and_names_of_java_tables(lake, java, name, version):
    java(
        f"CREATE TABLE java.{name} (id bigint, t string, n string, c string) USING iceberg "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.metadata.metrics.column.t'="
        "'truncate(2)', 'write.metadata.metrics.column.n'='none', "
        "'write.metadata.metrics.column.c'='counts')"
    )
    values = "(1, 'abcdef', 'n', 'c'), (2, 'xyz', NULL, 'd'), (3, NULL, 'm', NULL)"
    java(f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    table = lake.table(name)
    columns = ["value_counts", "null_value_counts", "lower_bounds", "upper_bounds"]
    theirs = rows_of(java(f"SELECT {', '.join(columns)} FROM java.{name}.files"))
    lake.sql(f"CREATE TABLE {name}_ours (id bigint, t string, n string, c string)")
    lake.table(f"{name}_ours").set_properties(table.properties | {"format-version": str(version)})
    lake.sql(f"INSERT INTO {name}_ours VALUES {values}")
    assert rows_of(lake.table(f"{name}_ours").inspect("files").select(columns)) == theirs
    for where in ("t = 'abcdef'", "t > 'x'", "n = 'm'", "c = 'd'", "t IS NULL", "t LIKE 'xy%'"):
        expected = rows_of(java(f"SELECT id FROM java.{name} WHERE {where}"))
        assert rows_of(table.df(["id"], where=where)) == expected != []
