"""Statements run on a real catalog and real files, without Spark."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import (
    InvalidStatementError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.unit.sql.lake_without_spark import Frame, lake_without_spark


@pytest.fixture
def lake(tmp_path):
    found = lake_without_spark(tmp_path)
    found.sql("CREATE NAMESPACE ns")
    found.sql(
        "CREATE TABLE ns.t (id bigint NOT NULL COMMENT 'key', name string, d date, "
        "st struct<a: int>) PARTITIONED BY (bucket(4, id), d) COMMENT 'sales'"
    )
    yield found
    found.close()


def fill(lake, *ids):
    rows = pa.table(
        {"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{i}" for i in ids], pa.string())}
    )
    lake.spark.answer = Frame(rows)
    return lake.sql(f"INSERT INTO ns.t (id, name) VALUES {', '.join(f'({i}, 1)' for i in ids)}")


def columns(lake, name="ns.t"):
    return [field.name for field in lake.table(name).schema.fields]


def test_create_and_describe(lake):
    found = lake.sql("DESCRIBE ns.t").to_pydict()
    assert found["col_name"][:4] == ["id", "name", "d", "st"]
    assert found["data_type"][:4] == ["bigint", "string", "date", "struct<a:int>"]
    assert found["comment"][0] == "key"
    assert found["data_type"][-2:] == ["bucket(4, id)", "d"]


def test_show_create_table_makes_the_same_table_again(lake):
    text = lake.sql("SHOW CREATE TABLE ns.t")["createtab_stmt"][0].as_py()
    lake.sql("DROP TABLE ns.t")
    lake.sql(text)
    assert lake.sql("SHOW CREATE TABLE ns.t")["createtab_stmt"][0].as_py() == text


def test_create_table_like(lake):
    lake.sql("CREATE TABLE ns.u LIKE ns.t")
    assert columns(lake, "ns.u") == columns(lake)
    assert lake.sql("DESCRIBE ns.u") == lake.sql("DESCRIBE ns.t")


def test_a_table_is_not_made_twice(lake):
    with pytest.raises(InvalidStatementError):
        lake.sql("CREATE TABLE ns.t (a int)")
    lake.sql("CREATE TABLE IF NOT EXISTS ns.t (a int)")
    assert "a" not in columns(lake)
    lake.sql("CREATE OR REPLACE TABLE ns.t (a int)")
    assert columns(lake) == ["a"]
    with pytest.raises(TableNotFoundError):
        lake.sql("REPLACE TABLE ns.missing (a int)")


def test_columns_evolve(lake):
    lake.sql("ALTER TABLE ns.t ADD COLUMNS (qty int AFTER id, st.b double, z string FIRST)")
    assert columns(lake) == ["z", "id", "qty", "name", "d", "st"]
    lake.sql("ALTER TABLE ns.t ALTER COLUMN QTY TYPE bigint, name COMMENT 'who'")
    lake.sql("ALTER TABLE ns.t RENAME COLUMN name TO label")
    lake.sql("ALTER TABLE ns.t DROP COLUMN z")
    lake.sql("ALTER TABLE ns.t ALTER COLUMN st AFTER id")
    assert columns(lake) == ["id", "st", "qty", "label", "d"]
    schema = lake.table("ns.t").schema
    assert str(schema.find_type("qty")) == "long"
    assert schema.find_field("label").doc == "who"
    assert schema.find_field("st.b")


def test_column_mistakes(lake):
    for text in (
        "DROP COLUMN nope",
        "ALTER COLUMN name TYPE int",
        "ALTER COLUMN name SET NOT NULL",
        "ADD COLUMN x int NOT NULL",
        "DROP PARTITION FIELD name",
        "ADD PARTITION FIELD days(name)",
        "DROP IDENTIFIER FIELDS id",
        "REPLACE BRANCH nope",
    ):
        with pytest.raises(InvalidStatementError):
            lake.sql(f"ALTER TABLE ns.t {text}")
    lake.sql("ALTER TABLE ns.t DROP COLUMN IF EXISTS nope")
    lake.sql("ALTER TABLE ns.t ADD COLUMN IF NOT EXISTS name string")
    assert columns(lake) == ["id", "name", "d", "st"]


def test_partition_fields_evolve(lake):
    lake.sql("ALTER TABLE ns.t ADD PARTITION FIELD truncate(name, 3) AS short")
    lake.sql("ALTER TABLE ns.t DROP PARTITION FIELD bucket(4, id)")
    lake.sql("ALTER TABLE ns.t REPLACE PARTITION FIELD short WITH name")
    spec = lake.table("ns.t").spec
    live = [(f.name, str(f.transform)) for f in spec.fields if str(f.transform) != "void"]
    assert live == [("d", "identity"), ("name", "identity")]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_column_added_again_under_its_name_can_partition_again(lake, version):
    properties = f"TBLPROPERTIES ('format-version' = '{version}')"
    lake.sql(f"CREATE TABLE ns.again (id int, d string) PARTITIONED BY (d) {properties}")
    table = lake.table("ns.again")
    table.append([{"id": 1, "d": "x"}])
    steps = ["DROP PARTITION FIELD d", "DROP COLUMN d", "ADD COLUMN d string"]
    for step in [*steps, "ADD PARTITION FIELD bucket(2, id)", "ADD PARTITION FIELD d"]:
        lake.sql(f"ALTER TABLE ns.again {step}")
    table.append([{"id": 2, "d": "y"}])
    rows = sorted(table.arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "d": None}, {"id": 2, "d": "y"}]
    live = [str(field) for field in table.spec if field.transform != "void"]
    assert live == ["bucket[2](id)", "d"]


def test_write_order_and_properties(lake):
    lake.sql("ALTER TABLE ns.t WRITE LOCALLY ORDERED BY d DESC, id")
    table = lake.table("ns.t")
    order = table.handle.metadata.sort_order()
    assert [str(field.direction) for field in order.fields] == ["DESC", "ASC"]
    assert "write.distribution-mode" not in table.properties
    lake.sql("ALTER TABLE ns.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id")
    assert table.properties["write.distribution-mode"] == "hash"
    lake.sql("ALTER TABLE ns.t WRITE LOCALLY ORDERED BY d")
    assert table.properties["write.distribution-mode"] == "hash"
    lake.sql("ALTER TABLE ns.t UNSET TBLPROPERTIES ('write.distribution-mode')")
    assert "write.distribution-mode" not in table.properties
    lake.sql("ALTER TABLE ns.t SET TBLPROPERTIES ('k' = 'v')")
    assert lake.sql("SHOW TBLPROPERTIES ns.t ('k')").to_pydict() == {"key": ["k"], "value": ["v"]}


def test_a_case_sensitive_session_resolves_sort_columns_by_case(lake):
    lake.sql("ALTER TABLE ns.t WRITE ORDERED BY ID")
    lake.spark.settings["spark.sql.caseSensitive"] = "true"
    with pytest.raises(InvalidStatementError, match="no column ID"):
        lake.sql("ALTER TABLE ns.t WRITE ORDERED BY ID")
    lake.sql("ALTER TABLE ns.t WRITE ORDERED BY id DESC")
    (field,) = lake.table("ns.t").handle.metadata.sort_order().fields
    assert str(field.direction) == "DESC"


def test_a_ref_is_dropped_by_its_own_kind_only(lake):
    fill(lake, 1)
    lake.sql("ALTER TABLE ns.t CREATE TAG label")
    lake.sql("ALTER TABLE ns.t CREATE BRANCH line")
    for wrong in ("DROP BRANCH label", "DROP TAG line", "DROP BRANCH IF EXISTS label"):
        with pytest.raises(InvalidStatementError, match="not a"):
            lake.sql(f"ALTER TABLE ns.t {wrong}")
    lake.sql("ALTER TABLE ns.t DROP TAG label")
    lake.sql("ALTER TABLE ns.t DROP BRANCH line")
    assert set(lake.table("ns.t").handle.refs) == {"main"}


def test_row_level_statements_on_sparks_tables_say_why_they_cannot_be(lake):
    lake.spark.views += ["`plain`", "`seen`", "`spark_catalog`.`default`.`plain`"]
    lake.spark.kinds["`seen`"] = "TEMPORARY"
    with pytest.raises(InvalidStatementError, match="Cannot UPDATE plain: it is Spark's table"):
        lake.sql("UPDATE plain SET a = 1")
    with pytest.raises(InvalidStatementError, match="Cannot DELETE seen: it is a temporary view"):
        lake.sql("DELETE FROM seen WHERE a = 1")
    merge = "MERGE INTO spark_catalog.default.plain AS p USING ns.t AS s ON p.a = s.id"
    with pytest.raises(InvalidStatementError, match=r"Cannot MERGE spark_catalog.default.plain"):
        lake.sql(f"{merge} WHEN MATCHED THEN DELETE")
    with pytest.raises(InvalidStatementError, match="Cannot UPDATE plain"):
        lake.sql("EXPLAIN UPDATE plain SET a = 1")
    with pytest.raises(TableNotFoundError):
        lake.sql("UPDATE ns.nope SET a = 1")


def test_partitions_are_shown_as_people_read_them(lake):
    lake.sql("CREATE TABLE ns.p (at timestamp_ntz, k string) PARTITIONED BY (months(at), k)")
    rows = [{"at": dt.datetime(2024, 1, 31), "k": "a b"}, {"at": None, "k": None}]
    lake.table("ns.p").append(rows)
    found = lake.sql("SHOW PARTITIONS ns.p").to_pydict()["partition"]
    assert sorted(found) == ["at_month=2024-01/k=a b", "at_month=null/k=null"]


def test_show_create_table_keeps_the_write_order_and_identifier_fields(lake):
    lake.sql("CREATE TABLE ns.o (id int NOT NULL, `a b` string)")
    lake.sql("ALTER TABLE ns.o WRITE ORDERED BY `a b` DESC, bucket(4, id)")
    lake.sql("ALTER TABLE ns.o SET IDENTIFIER FIELDS id")
    (text,) = lake.sql("SHOW CREATE TABLE ns.o").to_pydict()["createtab_stmt"]
    lake.sql("DROP TABLE ns.o")
    for statement in text.replace("LOCATION", "-- LOCATION").split(";"):
        lake.sql(statement)
    table = lake.table("ns.o")
    fields = [
        (str(f.transform), f.direction.name) for f in table.handle.metadata.sort_order().fields
    ]
    assert fields == [("identity", "DESC"), ("bucket[4]", "ASC")]
    assert table.properties["write.distribution-mode"] == "range"
    assert table.schema.identifier_field_names() == {"id"}


def test_identifier_fields(lake):
    lake.sql("ALTER TABLE ns.t SET IDENTIFIER FIELDS ID")
    assert lake.table("ns.t").schema.identifier_field_names() == {"id"}
    lake.sql("ALTER TABLE ns.t DROP IDENTIFIER FIELDS id")
    assert not lake.table("ns.t").schema.identifier_field_names()


def test_insert_matches_columns_and_counts_rows(lake):
    found = fill(lake, 1, 2, 3)
    assert found.to_pydict()["num_inserted_rows"] == [3]
    assert lake.table("ns.t").arrow().num_rows == 3


def test_insert_refuses_what_does_not_fit(lake):
    lake.spark.answer = Frame(pa.table({"a": ["x"]}))
    with pytest.raises(SchemaMismatchError, match="4 columns are needed"):
        lake.sql("INSERT INTO ns.t VALUES ('x')")
    with pytest.raises(SchemaMismatchError, match="Cannot write string to column id"):
        lake.sql("INSERT INTO ns.t (id) VALUES ('x')")
    with pytest.raises(TableNotFoundError):
        lake.sql("INSERT INTO ns.nope VALUES (1)")
    with pytest.raises(InvalidStatementError):
        lake.sql("INSERT INTO ns.t.snapshots VALUES (1)")
    assert lake.table("ns.t").snapshots() == []


def test_defaults_stand_for_values(lake):
    lake.sql("CREATE TABLE ns.v3 (a int, b int DEFAULT 7) TBLPROPERTIES ('format-version' = '3')")
    lake.spark.answer = Frame(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([7], "i4")}))
    lake.sql("INSERT INTO ns.v3 VALUES (1, DEFAULT), (DEFAULT, 2)")
    assert lake.spark.asked[-1] == "VALUES (1, CAST(7 AS int)), (NULL, 2)"


def test_branches_and_tags(lake):
    fill(lake, 1)
    lake.sql("ALTER TABLE ns.t CREATE BRANCH dev RETAIN 1 DAYS")
    lake.sql("ALTER TABLE ns.t CREATE TAG v1")
    rows = pa.table({"id": pa.array([9], pa.int64())})
    lake.spark.answer = Frame(rows)
    lake.sql("INSERT INTO ns.t.branch_dev (id) VALUES (9)")
    assert lake.table("ns.t").arrow().num_rows == 1
    assert lake.table("ns.t").arrow(ref="dev").num_rows == 2
    lake.sql("ALTER TABLE ns.t DROP BRANCH dev")
    lake.sql("ALTER TABLE ns.t DROP BRANCH IF EXISTS dev")
    assert set(lake.table("ns.t").handle.metadata.refs) == {"main", "v1"}


def test_queries_get_frames_of_what_they_need(lake):
    fill(lake, 1, 2, 3)
    lake.sql("SELECT '{x}', ns.t.name FROM ns.t WHERE id = 2")
    (view,) = lake.spark.frames[-1]
    assert lake.spark.asked[-1] == (
        f"SELECT '{{{{x}}}}', t.name FROM {{{view}}} AS `t` WHERE id = 2"
    )
    found = lake.spark.frames[-1][view]
    assert found.column_names == ["id", "name"]
    assert 2 in found["id"].to_pylist()


def test_counts_come_from_metadata_and_groups_from_scans(lake):
    fill(lake, 1, 2, 3)
    lake.sql("SELECT count(*) FROM ns.t")
    (counted,) = lake.spark.frames[-1].values()
    assert counted.to_pydict() == {"__partial_0": [3]}
    lake.sql("SELECT min(id), max(id), count(name), count(*) FROM ns.t")
    (told,) = lake.spark.frames[-1].values()
    assert list(told.to_pylist()[0].values()) == [1, 3, 3, 3]
    lake.sql("SELECT name, sum(id) s FROM ns.t WHERE id > 1 GROUP BY name")
    (groups,) = lake.spark.frames[-1].values()
    assert sorted(groups["name"].to_pylist()) == ["n2", "n3"]
    lake.sql("SELECT sum(id) s FROM ns.t WHERE id > 100")
    (empty,) = lake.spark.frames[-1].values()
    assert set(empty["__partial_0"].to_pylist()) <= {None}


def test_metadata_tables_and_time_travel(lake):
    fill(lake, 1)
    first = lake.table("ns.t").snapshots()[0].snapshot_id
    fill(lake, 2)
    lake.sql("SELECT * FROM ns.t.snapshots")
    (found,) = lake.spark.frames[-1].values()
    assert found.num_rows == 2
    lake.sql(f"SELECT id FROM ns.t VERSION AS OF {first}")
    (found,) = lake.spark.frames[-1].values()
    assert found["id"].to_pylist() == [1]
    with pytest.raises(InvalidStatementError):
        lake.sql("SELECT id FROM ns.t VERSION AS OF 12345")


def test_use_and_show(lake):
    with pytest.raises(TableNotFoundError):
        lake.sql("USE nowhere")
    current = {"catalog": [lake.catalog.name], "namespace": ["default"]}
    assert lake.sql("SHOW CURRENT NAMESPACE").to_pydict() == current
    assert lake.sql("SHOW TABLES").num_rows == 0
    lake.sql("USE ns")
    assert lake.sql("SHOW CURRENT DATABASE").to_pydict() == {**current, "namespace": ["ns"]}
    assert lake.sql("SHOW TABLES").to_pydict()["tableName"] == ["t"]
    assert lake.sql("SHOW TABLES IN ns LIKE 'x*|T'").num_rows == 1
    assert lake.sql("SHOW NAMESPACES").to_pydict() == {"namespace": ["default", "ns"]}
    assert lake.sql("DESCRIBE t").num_rows > 4
    lake.sql("ALTER TABLE t RENAME TO u")
    assert lake.tables("ns") == ["ns.u"]
    assert lake.sql("SHOW COLUMNS IN u")["col_name"].to_pylist() == ["id", "name", "d", "st"]


def test_history_and_procedures(lake):
    fill(lake, 1)
    fill(lake, 2)
    history = lake.sql("DESCRIBE HISTORY ns.t").to_pydict()
    assert history["operation"] == ["append", "append"]
    first = history["snapshot_id"][1]
    found = lake.sql(f"CALL system.rollback_to_snapshot(table => 'ns.t', snapshot_id => {first})")
    assert found.to_pydict()["current_snapshot_id"] == [first]
    assert lake.sql("CALL system.ancestors_of('ns.t')").num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match="Unknown procedure nope"):
        lake.sql("CALL system.nope()")
    with pytest.raises(InvalidStatementError, match="needs argument snapshot_id"):
        lake.sql("CALL system.rollback_to_snapshot('ns.t')")
    with pytest.raises(InvalidStatementError, match="has no argument x"):
        lake.sql("CALL system.ancestors_of(x => 1)")


def test_truncate_and_drop(lake):
    fill(lake, 1)
    lake.sql("TRUNCATE TABLE ns.t")
    assert lake.table("ns.t").arrow().num_rows == 0
    with pytest.raises(TableNotFoundError):
        lake.sql("DROP TABLE ns.nope")
    lake.sql("DROP TABLE IF EXISTS ns.nope")
    lake.sql("DROP NAMESPACE ns CASCADE")
    assert lake.namespaces() == ["default"]


def test_other_statements_go_to_spark_untouched(lake):
    for text in ("SET a = b", "SELECT 1", "CREATE TABLE x (a int) USING csv", "SHOW FUNCTIONS"):
        lake.sql(text)
        assert lake.spark.asked[-1] == text
        assert lake.spark.frames[-1] == {}


def test_optimize_packs_and_z_orders(lake):
    lake.sql("CREATE TABLE ns.o (a int, b struct<c: string>)")
    table = lake.table("ns.o")
    for first in (0, 10, 20):
        held = [{"a": a, "b": {"c": str(a % 7)}} for a in range(first, first + 10)]
        table.append(pa.Table.from_pylist(held, table.arrow().schema))
    before = table.arrow().sort_by("a")
    (row,) = lake.sql("OPTIMIZE ns.o WHERE a < 15").to_pylist()
    metrics = row["metrics"]
    assert row["path"] == table.location
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (2, 1)
    assert (metrics["totalConsideredFiles"], metrics["totalFilesSkipped"]) == (2, 0)
    assert metrics["filesRemoved"]["totalFiles"] == 2
    assert metrics["filesAdded"]["totalSize"] == metrics["filesAdded"]["max"]
    assert (metrics["partitionsOptimized"], metrics["numBatches"]) == (1, 1)
    (row,) = lake.sql("OPTIMIZE ns.o ZORDER BY (a, b.`c`)").to_pylist()
    assert (row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]) == (2, 1)
    (row,) = lake.sql("OPTIMIZE ns.o").to_pylist()
    assert (row["metrics"]["numFilesRemoved"], row["metrics"]["numBatches"]) == (0, 0)
    assert row["metrics"]["filesAdded"]["min"] is None
    assert table.arrow().sort_by("a") == before


def test_statements_of_deltas_users(lake, tmp_path):
    lake.sql("CREATE TABLE ns.d (id BIGINT) USING delta")
    lake.table("ns.d").append(pa.table({"id": [1]}))
    lake.table("ns.d").append(pa.table({"id": [2]}))
    (restored,) = lake.sql("RESTORE TABLE ns.d TO VERSION AS OF 1").to_pylist()
    assert restored["num_removed_files"] == 1
    (cloned,) = lake.sql("CREATE TABLE ns.c DEEP CLONE ns.d").to_pylist()
    assert cloned["num_copied_files"] == 1
    lake.sql("CREATE TABLE IF NOT EXISTS ns.c SHALLOW CLONE ns.d VERSION AS OF 2")
    assert lake.table("ns.c").arrow().to_pylist() == [{"id": 1}]
    (purged,) = lake.sql("REORG TABLE ns.c APPLY (PURGE)").to_pylist()
    assert purged["metrics"]["numFilesRemoved"] == 0
    lake.sql("GENERATE symlink_format_manifest FOR TABLE ns.c")
    (tmp_path / "plain" / "p=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [7]}), tmp_path / "plain" / "p=1" / "f.parquet")
    path = f"`{tmp_path}/plain`"
    lake.sql(f"CONVERT TO DELTA parquet.{path} PARTITIONED BY (p INT)")
    assert lake.table(f"delta.{path}").arrow().to_pylist() == [{"id": 7, "p": 1}]
    with pytest.raises(UnsupportedFeatureError, match="Delta tables"):
        lake.sql("RESTORE TABLE ns.t TO VERSION AS OF 1")


@pytest.mark.parametrize("text", ["OPTIMIZE ns.nope", "VACUUM ns.nope"])
def test_maintenance_of_a_missing_table_says_so(lake, text):
    with pytest.raises(TableNotFoundError, match="nope"):
        lake.sql(text)


def test_odd_names(lake):
    lake.sql("CREATE TABLE ns.`a.b c` (`x y` int, `größe` string, `select` bigint)")
    assert columns(lake, ("ns", "a.b c")) == ["x y", "größe", "select"]
    lake.sql("ALTER TABLE ns.`a.b c` RENAME COLUMN `x y` TO `z.z`")
    assert columns(lake, ("ns", "a.b c")) == ["z.z", "größe", "select"]
    lake.sql("SELECT `z.z` FROM ns.`a.b c` WHERE `größe` = 'x'")
    (found,) = lake.spark.frames[-1].values()
    assert found.column_names == ["z.z", "größe", "select"]  # named by the keyword, too
