"""EXPLAIN through a real session: SQL, the builder and the command line; nothing is written."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

import rowlake
from rowlake.cli import app as cli
from rowlake.cli import options
from rowlake.dml.change import change_rows, explain_rows
from rowlake.engine import spark as engine
from rowlake.errors import TableNotFoundError, UnsupportedFeatureError
from rowlake.model.work import SPARK
from rowlake.query.lookup import TableLookup
from rowlake.sql.parse.statement import parse
from tests.lakes import files_in

SOURCE = "(SELECT explode(sequence(90, 104)) AS id, 'new' AS name)"
ON = f"MERGE INTO shop.t USING {SOURCE} s ON t.id = s.id"
BOTH = "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
STATEMENTS = {
    "delete": "DELETE FROM shop.t WHERE id < 12",
    "delete found by Spark": "DELETE FROM shop.t WHERE id % 50 = 3",
    "delete all": "DELETE FROM shop.t",
    "delete none": "DELETE FROM shop.t WHERE id > 5000",
    "update": "UPDATE shop.t SET name = 'x' WHERE id >= 90",
    "update found by Spark": "UPDATE shop.t SET name = upper(name) WHERE id < 3",
    "update with an error that no row meets": "UPDATE shop.t SET id = 1 / 0 WHERE id > 5000",
    "merge by key": f"{ON} {BOTH}",
    "merge by a join": f"{ON} AND t.name <> s.name {BOTH}",
    "merge by source": f"{ON} {BOTH} WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE",
    "merge of nothing": "MERGE INTO shop.t USING (SELECT 1 AS id WHERE false) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE",
}
JOINS = {
    "delete found by Spark": "by position",
    "update found by Spark": "by position",
    "merge by a join": "by position",
    "merge by key": "aligned",
    "merge by source": "aligned",
    "merge of nothing": "aligned",
}
COUNTED = ("rows_updated", "rows_deleted", "rows_inserted", "rows_copied", "operation")


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE shop")
    yield found
    found.close()


@pytest.fixture
def table(lake):
    lake.drop_table("shop.t", if_exists=True)
    lake.sql(
        "CREATE TABLE shop.t (id bigint NOT NULL, name string) "
        "PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '3')"
    )
    ids = pa.array(range(100), pa.int64())
    lake.table("shop.t").append(pa.table({"id": ids, "name": [f"n{n}" for n in range(100)]}))
    return lake.table("shop.t")


def state(table) -> tuple:
    return files_in(table.location), table.handle.metadata_location


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_is_said_is_what_is_done(lake, table, name) -> None:
    before = state(table)
    statement = parse(STATEMENTS[name])
    plan = explain_rows(TableLookup(lake.workspace), statement)
    assert state(table) == before
    assert plan.join == JOINS.get(name, "none")
    _, result = change_rows(TableLookup(lake.workspace), statement)
    assert {name: getattr(plan, name) for name in COUNTED} == {
        name: getattr(result, name) for name in COUNTED
    }
    gone = {file.strategy for file in plan.files} & {"remove", "rewrite"}
    assert bool(gone) == bool(result.data_files_removed)
    if result.operation != "truncate":
        assert plan.files_matched == result.files_matched
        assert plan.files_considered == result.files_considered
        assert len(plan.files) == result.files_considered - result.files_pruned


@pytest.mark.parametrize("name", ["delete", "update", "merge by key", "merge by a join"])
def test_sql_gives_one_row_of_text(lake, table, name) -> None:
    before = state(table)
    found = lake.sql(f"EXPLAIN {STATEMENTS[name]}")
    assert found.columns == ["plan"]
    ((text,),) = found.collect()
    assert text.startswith(f"{name.split()[0].upper()} on shop.t (at snapshot ")
    assert "to write" in text.splitlines()[-1]
    assert state(table) == before


def test_arguments_and_modes_of_explain(lake, table) -> None:
    ((text,),) = lake.sql("EXPLAIN EXTENDED DELETE FROM shop.t WHERE id = ?", [5]).collect()
    assert "rows: 1 deleted" in text
    with pytest.raises(TableNotFoundError):
        lake.sql("EXPLAIN DELETE FROM shop.nope WHERE id = 1")
    ((text,),) = lake.sql("EXPLAIN SELECT * FROM shop.t").collect()
    assert "Physical Plan" in text


def test_the_builder_returns_a_plan(lake, table) -> None:
    source = [{"id": 5, "name": "five"}, {"id": 500, "name": "more"}]
    builder = (
        table.merge(source, on=["id"], mode="copy-on-write")
        .when_matched_update_all()
        .when_not_matched_insert_all()
    )
    before = state(table)
    plan = builder.explain()
    assert isinstance(plan, rowlake.Plan)
    assert state(table) == before
    assert (plan.mode, plan.rows_updated, plan.rows_inserted) == ("copy-on-write", 1, 1)
    assert [file.strategy for file in plan.files if file.rows_updated] == ["rewrite"]
    result = builder.execute()
    assert (plan.rows_copied, plan.files_matched) == (result.rows_copied, result.files_matched)


def test_a_branch_is_explained_at_its_own_head(table) -> None:
    table.create_branch("dev")
    table.delete("id < 50")
    plan = table.merge([{"id": 5}], on=["id"], branch="dev").when_matched_delete().explain()
    assert plan.rows_deleted == 1
    assert plan.snapshot_id == table.snapshots()[0].snapshot_id
    assert table.merge([{"id": 5}], on=["id"]).when_matched_delete().explain().rows_deleted == 0


def test_columns_that_a_merge_would_add_are_not_added(table) -> None:
    builder = (
        table.merge([{"id": 5, "name": "a", "extra": 1}], on=["id"])
        .when_matched_update_all()
        .with_schema_evolution()
    )
    before = state(table)
    assert builder.explain().rows_updated == 1
    assert state(table) == before
    assert builder.execute().rows_updated == 1
    assert "extra" in table.schema.column_names


@pytest.mark.parametrize("name", ["delete", "merge by key", "merge by a join"])
def test_rows_are_matched_in_the_tasks_of_spark(lake, table, monkeypatch, name) -> None:
    statement = parse(STATEMENTS[name])
    here = explain_rows(TableLookup(lake.workspace), statement)
    monkeypatch.setattr(engine, "is_tiny", lambda *_, **__: False)
    there = explain_rows(TableLookup(lake.workspace), statement)
    assert SPARK in there.ran_on
    assert there.spark_tasks >= there.spark_jobs > here.spark_jobs
    place = {"ran_on": here.ran_on, "spark_jobs": here.spark_jobs, "spark_tasks": here.spark_tasks}
    assert replace(there, **place) == here


def test_a_branch_that_a_session_would_make_is_not_made(lake, table, spark) -> None:
    table.set_properties({"write.wap.enabled": "true"})
    spark.conf.set("spark.wap.branch", "audit")
    try:
        before = state(table)
        plan = explain_rows(TableLookup(lake.workspace), parse("DELETE FROM shop.t WHERE id = 1"))
        assert (plan.rows_deleted, state(table)) == (1, before)
    finally:
        spark.conf.unset("spark.wap.branch")


def test_inside_a_transaction_its_own_changes_are_seen(lake, table) -> None:
    with lake.transaction() as tx:
        tx.sql("DELETE FROM shop.t WHERE id < 50")
        ((text,),) = tx.sql("EXPLAIN DELETE FROM shop.t WHERE id < 60").collect()
        assert "rows: 10 deleted" in text
    assert table.arrow().num_rows == 50


def test_equality_deletes_are_refused(lake, table) -> None:
    with pytest.raises(UnsupportedFeatureError, match="reads no data file"):
        explain_rows(
            TableLookup(lake.workspace),
            parse("DELETE FROM shop.t WHERE id = 1"),
            deletes="equality",
        )


@pytest.fixture
def run(lake, monkeypatch, capfdbinary):
    """Run a command on the lake of these tests; return what it printed."""

    class Kept:
        def __enter__(self):
            return lake

        def __exit__(self, *_):
            return None

    def call(*arguments: str) -> str:
        monkeypatch.setattr(options, "open_lake", lambda *_, **__: Kept())
        monkeypatch.setattr(sys, "argv", ["rowlake", *arguments])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as raised:
            cli.main()
        out, err = capfdbinary.readouterr()
        assert not raised.value.code, err.decode()
        return out.decode()

    return call


def test_the_command_line(table, run) -> None:
    before = state(table)
    tree = run("explain", STATEMENTS["delete"])
    assert tree.startswith("DELETE on shop.t (at snapshot ")
    (plan,) = json.loads(run("explain", STATEMENTS["merge by key"], "-o", "json"))
    assert (plan["operation"], plan["rows_updated"], plan["rows_inserted"]) == ("merge", 10, 5)
    assert {file["strategy"] for file in plan["files"]} == {"deletion vector"}
    asked = ["delete", "shop.t", "--where", "id < 12", "--explain", "-o", "json"]
    (plan,) = json.loads(run(*asked))
    assert (plan["rows_deleted"], plan["files_matched"]) == (12, 2)
    asked = ["update", "shop.t", "--set", "name = 'x'", "--where", "id = 1", "--explain"]
    assert "rows: 1 updated" in run(*asked)
    asked = ["merge", "shop.t", "--using", "SELECT 7L AS id", "--keys", "id"]
    assert "rows: 1 deleted" in run(*asked, "--when-matched", "delete", "--explain")
    (found,) = json.loads(run("explain", "SELECT * FROM shop.t", "-o", "json"))
    assert "Physical Plan" in found["plan"]
    assert state(table) == before
