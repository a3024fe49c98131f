"""Views, cached tables and the default namespace, where a statement file cannot say it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import (
    EngineError,
    InvalidStatementError,
    TableNotFoundError,
    UnsupportedFeatureError,
)

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


@pytest.fixture
def lake(spark, tmp_path):
    spark.catalog.dropTempView("v")  # tests of other modules leave views in the shared session
    with rowlake.connect(str(tmp_path), spark=spark) as found:
        found.sql("CREATE NAMESPACE ns")
        found.create_table("ns.t", SCHEMA).append(rows_of(1, 2, 3))
        yield found
        for view in found.sql("SHOW VIEWS").collect():
            spark.catalog.dropTempView(view.viewName)


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "v": [f"v{one}" for one in ids]}, SCHEMA)


def ids(lake, text: str) -> list[int]:
    return sorted(row[0] for row in lake.sql(text).collect())


# --- views


def test_a_view_is_spark_s_again_once_spark_replaces_it(lake, spark):
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t")
    spark.range(2).createOrReplaceTempView("v")
    assert ids(lake, "SELECT * FROM v") == [0, 1]


def test_a_view_made_of_a_view_by_python_takes_its_name(lake, spark):
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t")
    spark.table("v").where("id > 2").createOrReplaceTempView("v")
    lake.sql("INSERT INTO ns.t VALUES (4, 'v4')")
    assert ids(lake, "SELECT * FROM v") == [3]


def test_a_view_that_spark_drops_is_gone(lake, spark):
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t")
    spark.catalog.dropTempView("v")
    with pytest.raises(TableNotFoundError):
        lake.sql("SELECT * FROM v")
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id + 10 AS id FROM ns.t")
    assert ids(lake, "SELECT * FROM v") == [11, 12, 13]


def test_a_temporary_view_goes_before_a_table_without_a_namespace(lake):
    lake.sql("USE ns")
    lake.sql("CREATE TEMPORARY VIEW t AS SELECT id FROM ns.t WHERE id = 1")
    assert ids(lake, "SELECT * FROM t") == [1]
    assert ids(lake, "SELECT id FROM ns.t") == [1, 2, 3]
    lake.sql("DROP VIEW t")
    assert ids(lake, "SELECT id FROM t") == [1, 2, 3]


def test_a_view_s_query_may_end_in_a_comment(lake):
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t -- all of them")
    assert ids(lake, "SELECT * FROM v WHERE id > 2") == [3]


def test_names_in_a_view_keep_their_namespace(lake):
    lake.sql("USE ns")
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM t")
    lake.sql("USE default")
    lake.create_table("t", SCHEMA).append(rows_of(9))
    lake.sql("INSERT INTO ns.t VALUES (4, 'v4')")
    assert ids(lake, "SELECT * FROM v") == [1, 2, 3, 4]


def test_conditions_and_columns_are_pushed_through_a_view(lake):
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id, v FROM ns.t")
    lake.table("ns.t").append(rows_of(4, 5))
    asked = lake.sql("EXPLAIN DELETE FROM ns.t WHERE id IN (SELECT id FROM v WHERE id = 5)")
    assert "5" in asked.collect()[0][0]
    assert ids(lake, "SELECT id FROM v WHERE id > 4") == [5]


def test_a_view_in_a_transaction_sees_its_changes(lake):
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t")
    with lake.transaction() as tx:
        tx.table("ns.t").append(rows_of(8))
        assert ids(tx, "SELECT * FROM v") == [1, 2, 3, 8]
        assert ids(lake, "SELECT * FROM v") == [1, 2, 3]


def test_describe_and_show_know_views(lake):
    lake.sql("CREATE TEMPORARY VIEW v (a COMMENT 'the id') AS SELECT id FROM ns.t")
    assert [tuple(row) for row in lake.sql("DESCRIBE v").collect()] == [("a", "bigint", "the id")]
    assert tuple(lake.sql("SHOW VIEWS LIKE 'v'").collect()[0]) == ("", "v", True)
    assert tuple(lake.sql("SHOW TABLES LIKE 'v'").collect()[0]) == ("", "v", True)
    lake.sql("ALTER VIEW v RENAME TO w")
    lake.sql("INSERT INTO ns.t VALUES (4, 'v4')")
    assert ids(lake, "SELECT a FROM w") == [1, 2, 3, 4]
    with pytest.raises(TableNotFoundError):
        lake.sql("SELECT * FROM v")


def test_a_view_takes_no_parameters(lake):
    with pytest.raises(InvalidStatementError, match="cannot have parameters"):
        lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t WHERE id = :id", {"id": 1})


def test_a_catalog_without_views_says_so(lake):
    with pytest.raises(UnsupportedFeatureError, match=r"ns\.v: the catalog \w+ keeps no views"):
        lake.sql("CREATE VIEW ns.v AS SELECT 1 AS one")


# --- cached rows

COMMITS = {
    "append": lambda t: t.append(rows_of(7)),
    "delete": lambda t: t.delete("id = 1"),
    "upsert": lambda t: t.upsert(rows_of(3, 4), keys=["id"]),
    "rollback": lambda t: t.rollback_to(t.snapshots()[0].snapshot_id),
    "add column": lambda t: t.lake.sql("ALTER TABLE ns.t ADD COLUMN w int"),
    "compaction": lambda t: t.rewrite_data_files(options={"rewrite-all": "true"}),
    "transaction": lambda t: appended_in_transaction(t),
}


def appended_in_transaction(table) -> None:
    with table.lake.transaction() as tx:
        tx.table("ns.t").append(rows_of(20))
        assert ids(tx, "SELECT id FROM ns.t")[-1] == 20


@pytest.mark.parametrize("commit", COMMITS)
def test_cached_rows_are_read_again_after(lake, commit):
    table = lake.table("ns.t")
    table.append(rows_of(5))
    lake.sql("CREATE TEMPORARY VIEW v AS SELECT id FROM ns.t")
    lake.sql("CACHE TABLE ns.t")
    lake.sql("CACHE LAZY TABLE v")
    assert ids(lake, "SELECT * FROM v") == ids(lake, "SELECT id FROM ns.t") == [1, 2, 3, 5]
    COMMITS[commit](table)
    expected = sorted(table.arrow()["id"].to_pylist())
    assert ids(lake, "SELECT id FROM ns.t") == expected
    assert ids(lake, "SELECT * FROM v") == expected
    assert lake.sql("SELECT * FROM ns.t").columns == table.arrow().column_names


def test_cached_rows_come_from_memory(lake):
    lake.sql("CACHE TABLE ns.t")
    assert "InMemoryTableScan" in plan_of(lake, "SELECT id FROM ns.t WHERE id > 1")
    lake.sql("UNCACHE TABLE ns.t")
    assert "InMemoryTableScan" not in plan_of(lake, "SELECT id FROM ns.t WHERE id > 1")
    lake.sql("CACHE TABLE few AS SELECT id FROM ns.t WHERE id < 3")
    assert "InMemoryTableScan" in plan_of(lake, "SELECT * FROM few")
    lake.sql("CLEAR CACHE")
    assert "InMemoryTableScan" not in plan_of(lake, "SELECT * FROM few")


def plan_of(lake, text: str) -> str:
    return str(lake.sql(f"EXPLAIN {text}").collect()[0][0])


def test_refreshed_and_dropped_tables_leave_the_cache(lake):
    lake.sql("CACHE TABLE ns.t")
    before = lake.workspace.session.cached["ns", "t"].frame
    lake.sql("REFRESH TABLE ns.t")
    assert ids(lake, "SELECT id FROM ns.t") == [1, 2, 3]
    assert lake.workspace.session.cached["ns", "t"].frame is not before
    lake.sql("DROP TABLE ns.t")
    assert lake.workspace.session.cached == {}


def test_snapshots_and_branches_are_not_read_from_the_cache(lake):
    first = lake.table("ns.t").snapshots()[0].snapshot_id
    lake.table("ns.t").append(rows_of(4))
    lake.sql("CACHE TABLE ns.t")
    assert ids(lake, f"SELECT id FROM ns.t VERSION AS OF {first}") == [1, 2, 3]
    with pytest.raises(InvalidStatementError, match="Cannot cache"):
        lake.sql(f"CACHE TABLE ns.t.snapshot_id_{first}")
    with pytest.raises(InvalidStatementError, match="Unknown storage level"):
        lake.sql("CACHE TABLE ns.t OPTIONS ('storageLevel' = 'nowhere')")


# --- the default namespace


def test_default_is_always_there_and_is_created_with_its_first_table(lake):
    assert lake.namespaces() == ["default", "ns"]
    assert lake.tables("default") == []
    assert not lake.catalog.namespace_exists(("default",))
    lake.sql("CREATE TABLE t (id bigint, v string)")
    assert lake.catalog.namespace_exists(("default",))
    lake.table("t").append(rows_of(1))
    assert ids(lake, "SELECT id FROM t") == ids(lake, "SELECT id FROM default.t") == [1]
    assert lake.exists("t")
    lake.rename_table("t", "u")
    lake.drop_table("default.u")


def test_python_names_follow_use(lake):
    lake.sql("USE NAMESPACE ns")
    assert tuple(lake.sql("SHOW CURRENT NAMESPACE").collect()[0])[1] == "ns"
    assert lake.table("t").name == "ns.t"
    assert [row.tableName for row in lake.sql("SHOW TABLES").collect() if row.namespace] == ["t"]
    lake.create_table("made", SCHEMA)
    assert lake.tables("ns") == ["ns.made", "ns.t"]


def test_spark_s_own_tables_are_found_behind_the_lake_s(lake, spark):
    spark.sql("CREATE TABLE own_rows USING parquet AS SELECT 42 AS id")
    try:
        assert ids(lake, "SELECT id FROM own_rows") == [42]
        lake.create_table("own_rows", SCHEMA).append(rows_of(1))
        assert ids(lake, "SELECT id FROM own_rows") == [1]
        assert ids(lake, "SELECT id FROM spark_catalog.default.own_rows") == [42]
    finally:
        spark.sql("DROP TABLE spark_catalog.default.own_rows")


# --- statements


def test_update_from_and_delete_using_are_merges(lake):
    lake.create_table("ns.u", SCHEMA).append(rows_of(2))
    lake.sql("UPDATE ns.t SET v = concat(s.v, '!') FROM ns.u AS s WHERE t.id = s.id")
    assert lake.sql("SELECT v FROM ns.t WHERE id = 2").first()[0] == "v2!"
    lake.sql("DELETE FROM ns.t USING (SELECT id FROM ns.u) AS s WHERE t.id = s.id")
    assert ids(lake, "SELECT id FROM ns.t") == [1, 3]
    with pytest.raises(InvalidStatementError, match=r"as MERGE INTO ns\.t USING"):
        lake.sql("UPDATE ns.t SET v = u.v FROM ns.u, ns.t AS z WHERE t.id = u.id")
    with pytest.raises(InvalidStatementError, match=r"as MERGE INTO ns\.t USING"):
        lake.sql("DELETE FROM ns.t USING ns.u")


def test_explain_analyze_runs_the_statement(lake):
    (row,) = lake.sql("EXPLAIN ANALYZE DELETE FROM ns.t WHERE id = 1").collect()
    assert "DELETE on ns.t" in row.plan and "rows deleted" in row.plan
    assert ids(lake, "SELECT id FROM ns.t") == [2, 3]


def test_analyze_table_writes_statistics(lake):
    lake.sql("ANALYZE TABLE ns.t COMPUTE STATISTICS FOR COLUMNS id")
    assert len(lake.table("ns.t").to_pyiceberg().metadata.statistics) == 1


def test_an_unknown_metadata_table_is_told_with_those_there_are(lake):
    with pytest.raises(TableNotFoundError, match=r"table nope of ns\.t\. Expected .* snapshots;"):
        lake.sql("SELECT * FROM ns.t.nope")


# --- errors


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT CAST(v AS INT) FROM ns.t",
        "INSERT INTO ns.t SELECT CAST(v AS INT), v FROM ns.t",
        "UPDATE ns.t SET id = CAST(v AS INT)",
        "DELETE FROM ns.t WHERE CAST(v AS INT) = 1",
        "MERGE INTO ns.t USING ns.t AS s ON t.id = s.id AND CAST(s.v AS INT) = 1 "
        "WHEN MATCHED THEN DELETE",
        "CREATE TABLE ns.c AS SELECT CAST(v AS INT) AS i FROM ns.t",
    ],
)
def test_errors_of_rows_are_ours_and_point_into_the_statement(lake, capfd, statement):
    with pytest.raises(InvalidStatementError, match=r"^\[CAST_INVALID_INPUT\]") as raised:
        lake.sql(statement).collect()
    place = statement.index("CAST(v") if "CAST(v" in statement else statement.index("CAST(s.v")
    assert raised.value.position == place
    assert "QueryContextLogger" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("SELECT nope FROM ns.t", "nope"),
        ("SELECT id FROM ns.t WHERE id IN (SELECT nope FROM ns.t)", "nope"),
        ("SELECT nofunc(id) FROM ns.t", "nofunc(id)"),
        ("SELECT id + array(v) FROM ns.t", "id + array(v)"),
        ("SELECT id FROM ns.t WHERE id =", ""),
        ("SELECT id, FROM ns.t AS t", ".t"),
        ("SELECT id / (id - 1) FROM ns.t", "id / (id - 1)"),
        ("UPDATE ns.t SET v = nope", "nope"),
        ("UPDATE ns.t SET id = nofunc(id) WHERE id = 1", "nofunc(id)"),
        ("UPDATE ns.t SET id = 1 WHERE id IN (SELECT nope FROM ns.t)", "nope"),
        ("DELETE FROM ns.t WHERE id IN (SELECT nope FROM ns.t)", "nope"),
        ("DELETE FROM ns.t WHERE nofunc(id)", "nofunc(id)"),
        ("MERGE INTO ns.t USING (SELECT nope FROM ns.t) AS s ON t.id = s.id "
         "WHEN MATCHED THEN DELETE", "nope"),
        ("MERGE INTO ns.t USING ns.t AS s ON t.id = s.id "
         "WHEN MATCHED THEN UPDATE SET v = nofunc(s.v)", "nofunc(s.v)"),
        ("INSERT INTO ns.t SELECT nope, v FROM ns.t", "nope"),
        ("CREATE TABLE ns.c AS SELECT nope FROM ns.t", "nope"),
        ("SELECT * FROM ns.t TIMESTAMP AS OF CAST('no time' AS TIMESTAMP)", "CAST('no"),
    ],
)  # fmt: skip
def test_refusals_point_into_the_statement_and_log_nothing(lake, capfd, statement, part):
    with pytest.raises(InvalidStatementError) as raised:
        lake.sql(statement).collect()
    assert raised.value.position == (statement.index(part) if part else len(statement))
    assert raised.value.statement == statement
    said = capfd.readouterr().err
    assert "\tat " not in said and "QueryContextLogger" not in said


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT (SELECT id FROM ns.t) AS one", r"^\[SCALAR_SUBQUERY_TOO_MANY_ROWS\]"),
        ("UPDATE ns.t SET id = (SELECT id FROM ns.t)", r"^\[SCALAR_SUBQUERY_TOO_MANY_ROWS\]"),
        ("SELECT raise_error(v) FROM ns.t WHERE id = 1", r"^\[USER_RAISED_EXCEPTION\] v1$"),
        ("SELECT id FROM ns.t UNION SELECT id, v FROM ns.t", r"^\[NUM_COLUMNS_MISMATCH\]"),
        ("SELECT id FROM ns.t GROUP BY v", r"^\[MISSING_AGGREGATION\]"),
    ],
)
def test_errors_without_a_place_are_ours_too(lake, capfd, statement, said):
    with pytest.raises(InvalidStatementError, match=said):
        lake.sql(statement).collect()
    assert "\tat " not in capfd.readouterr().err


def test_an_error_of_java_is_told_in_its_words(lake):
    text = "SELECT java_method('java.lang.Integer', 'parseInt', v) FROM ns.t"
    with pytest.raises(EngineError, match=r"reflect\.InvocationTargetException"):
        lake.sql(text).collect()


def test_errors_of_python_conditions_are_ours(lake, capfd):
    table = lake.table("ns.t")
    where = "id > 0 AND id / (id - 1) = 1"
    with pytest.raises(InvalidStatementError, match=r"^\[DIVIDE_BY_ZERO\]") as raised:
        table.delete(where)
    assert raised.value.position == where.index("id / (id - 1)")
    with pytest.raises(InvalidStatementError, match=r"^\[DIVIDE_BY_ZERO\].*error\.$"):
        table.update({"id": "id / (id - 1)"})
    merge = table.merge(table, on="t.id = s.id").when_matched_update({"id": "s.id / (s.id - 1)"})
    with pytest.raises(InvalidStatementError, match=r"^\[DIVIDE_BY_ZERO\].*error\.$"):
        merge.execute()
    with pytest.raises(InvalidStatementError, match="Expected an expression"):
        table.delete("upper(v) LIKE")
    with pytest.raises(InvalidStatementError, match="nofunc") as raised:
        table.update({"v": "nofunc(v)"})
    assert "__0" not in str(raised.value)
    assert "\tat " not in capfd.readouterr().err


def test_a_wrong_column_in_a_view_points_into_the_statement(lake, capfd):
    statement = "CREATE TEMPORARY VIEW v AS SELECT nope FROM ns.t"
    with pytest.raises(InvalidStatementError, match="nope") as raised:
        lake.sql(statement)
    assert raised.value.position == statement.index("nope")
    assert "QueryContextLogger" not in capfd.readouterr().err
