"""Delta tables by path in statements and frames."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import rowlake
from rowlake.errors import InvalidStatementError
from tests.delta_logs import HandMade, metadata, people
from tests.plain_values import in_order

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "delta"


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark) as found:
        found.sql("CREATE NAMESPACE shop")
        found.sql("CREATE TABLE shop.names (id BIGINT, label STRING)")
        found.sql("INSERT INTO shop.names VALUES (1, 'one'), (4, 'four')")
        yield found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    table = HandMade(tmp_path_factory.mktemp("made") / "t.v1")
    table.create(
        metadata(partition_by=("p",), fields=[("id", "long"), ("p", "string")]),
        modified_ms=1_700_000_000_000,
    )
    for version, p in enumerate(("a", None, "b"), start=1):
        rows = people(version, version + 3).select(["id"])
        add = table.add(f"f{version}.parquet", rows, partitionValues={"p": p})
        table.commit(add, modified_ms=1_700_000_000_000 + version * 60_000)
    return table


def rows(lake, text):
    return sorted((tuple(row) for row in lake.sql(text).collect()), key=str)


def test_a_path_is_a_table_in_queries(lake, made):
    assert rows(lake, f"SELECT id FROM {made.name} WHERE p IS NULL") == [(2,), (5,)]
    assert rows(lake, f"SELECT p, count(*), max(id) FROM {made.name} WHERE p = 'b' GROUP BY p") == [
        ("b", 2, 6)
    ]
    assert rows(lake, f"SELECT min(id), max(id), count(*) FROM {made.name}") == [(1, 6, 6)]
    joined = f"SELECT label, p FROM {made.name} d JOIN shop.names n ON d.id = n.id"
    assert rows(lake, joined) == [("four", "a"), ("one", "a")]


def test_a_path_is_a_frame(lake, made):
    table = lake.table(made.name)
    assert table.format == "delta"
    assert sorted(row.id for row in table.df(where="id > 4").collect()) == [5, 6]
    assert table.df(columns=["p"], snapshot_id=1).distinct().collect() == [("a",)]


@pytest.mark.parametrize(
    ("moment", "count"),
    [
        ("{name} VERSION AS OF 0", 0),
        ("{name} VERSION AS OF 1", 2),
        ("{name} FOR VERSION AS OF '2'", 4),
        ("{name}@v1", 2),
        ("delta.`{folder}@v0`", 0),
        ("delta.`{folder}@v2`", 4),
        ("{name} TIMESTAMP AS OF timestamp_millis(1700000120500)", 4),
        ("{name}@20231114221420000", 2),
    ],
)
def test_earlier_versions_are_read(lake, made, moment, count):
    text = moment.format(name=made.name, folder=made.folder)
    found = lake.sql(f"SELECT * FROM {text}")
    assert found.count() == count


def test_history_and_detail_are_described(lake):
    name = f"delta.`{GOLDEN / 'clustered'}`"
    history = lake.sql(f"DESCRIBE HISTORY {name} LIMIT 2").collect()
    assert [(row.version, row.operation) for row in history] == [(4, "UPDATE"), (3, "OPTIMIZE")]
    assert history[0].operationMetrics["numUpdatedRows"] == "1"
    (detail,) = lake.sql(f"DESCRIBE DETAIL {name}").collect()
    assert (detail.format, detail.numFiles, detail.minReaderVersion) == ("delta", 2, 3)
    assert "rowTracking" in detail.tableFeatures and detail.clusteringColumns == ["a"]
    (plain,) = lake.sql("DESCRIBE DETAIL shop.names").collect()
    assert (plain.format, plain.numFiles, plain.minReaderVersion) == ("iceberg", 1, None)


def test_metadata_tables_are_tables_below_a_path(lake, made):
    found = rows(lake, f"SELECT partition.p, record_count FROM {made.name}.files WHERE content = 0")
    assert sorted(found, key=str) == [("a", 2), ("b", 2), (None, 2)]
    assert rows(lake, f"SELECT snapshot_id FROM {made.name}.snapshots WHERE operation = 'append'")
    assert rows(lake, f"SELECT version FROM {made.name}.history") == [(0,), (1,), (2,), (3,)]
    assert rows(lake, f"SHOW COLUMNS IN {made.name}") == [("id",), ("p",)]


def test_types_come_as_delta_on_spark_shows_them(lake):
    name = f"delta.`{GOLDEN / 'types'}`"
    kinds = dict(lake.sql(f"SELECT * FROM {name}").dtypes)
    assert kinds["by"] == "tinyint" and kinds["sh"] == "smallint" and kinds["vo"] == "void"
    assert kinds["nt"] == "timestamp_ntz" and kinds["ts"] == "timestamp"
    expected = json.loads((GOLDEN / "types" / "expected.json").read_text())["1"]
    found = [row.asDict() for row in lake.sql(f"SELECT by, sh, i, g, s FROM {name}").collect()]
    wanted = [{key: row[key] for key in ("by", "sh", "i", "g", "s")} for row in expected]
    assert in_order(found) == in_order(wanted)


def test_a_variant_column_is_read(lake):
    name = f"delta.`{GOLDEN / 'variants'}`"
    assert rows(lake, f"SELECT id FROM {name}") == [(1,)]
    text = f"SELECT variant_get(v, '$.a[1]', 'string') FROM {name}"
    assert rows(lake, text) == [("x",)]


ALL = {(1, "a"), (4, "a"), (2, None), (5, None), (3, "b"), (6, "b")}


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("INSERT INTO {name} VALUES (9, 'z')", ALL | {(9, "z")}),
        ("INSERT OVERWRITE {name} VALUES (9, 'z')", {(9, "z")}),
        ("DELETE FROM {name} WHERE id = 1", ALL - {(1, "a")}),
        ("UPDATE {name} SET id = 0 WHERE p = 'b' AND id = 3", ALL - {(3, "b")} | {(0, "b")}),
        (
            "MERGE INTO {name} t USING shop.names s ON t.id = s.id WHEN MATCHED THEN DELETE",
            ALL - {(1, "a"), (4, "a")},
        ),
        ("TRUNCATE TABLE {name}", set()),
        ("ALTER TABLE {name} ADD COLUMN more INT", ALL),
        ("ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')", ALL),
        ("CREATE OR REPLACE TABLE {name} (id INT, p STRING)", set()),
        ("OPTIMIZE {name}", ALL),
    ],
)
def test_statements_write_to_tables_by_path(lake, made, statement, left, tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(made.folder, folder)
    name = f"delta.`{folder}`"
    lake.sql(statement.format(name=name)).collect()
    assert set(rows(lake, f"SELECT id, p FROM {name}")) == left


def test_tables_are_created_by_path_and_by_name(lake, tmp_path):
    name = f"delta.`{tmp_path / 'new'}`"
    lake.sql(f"CREATE TABLE {name} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, NULL)")
    assert set(rows(lake, f"SELECT * FROM {name}")) == {(1, "x"), (2, None)}
    lake.sql(f"CREATE TABLE shop.copied USING delta AS SELECT * FROM {name}")
    assert lake.table("shop.copied").format == "delta"
    lake.sql("DELETE FROM shop.copied WHERE id = 1")
    assert rows(lake, "SELECT * FROM shop.copied") == [(2, None)]
    lake.sql("DROP TABLE shop.copied")
    assert not lake.exists("shop.copied")


def test_statements_of_maintenance(lake, made, tmp_path):
    folder = tmp_path / "t"
    shutil.copytree(made.folder, folder)
    name, copy = f"delta.`{folder}`", f"delta.`{tmp_path}/copy`"
    before = rows(lake, f"SELECT * FROM {name} VERSION AS OF 2")
    restored = lake.sql(
        f"RESTORE TABLE {name} TO TIMESTAMP AS OF timestamp_millis(1700000130000)"
    ).collect()
    assert (restored[0].num_removed_files, restored[0].num_restored_files) == (1, 0)
    assert rows(lake, f"SELECT * FROM {name}") == before
    lake.sql(
        f"CREATE TABLE {copy} SHALLOW CLONE {name} TIMESTAMP AS OF timestamp_millis(1700000070000)"
    )
    assert rows(lake, f"SELECT * FROM {copy}") == rows(lake, f"SELECT * FROM {name}@v1")
    with pytest.raises(InvalidStatementError, match="168 hours"):
        lake.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    lake.spark.conf.set(check, "false")
    try:
        gone = lake.sql(f"VACUUM {name} RETAIN 0 HOURS DRY RUN").collect()
        assert [row.path for row in gone] == [str(folder / "f3.parquet")]
        assert lake.sql(f"VACUUM {name} RETAIN 0 HOURS").collect()[0].path == str(folder)
    finally:
        lake.spark.conf.unset(check)
    assert not (folder / "f3.parquet").exists()
    with pytest.raises(InvalidStatementError, match="f3"):
        lake.sql(f"RESTORE TABLE {name} TO VERSION AS OF 3").collect()
    assert rows(lake, f"SELECT * FROM {name}") == before
