"""Plans, the UI, listings and errors of statements show no secret of the catalog's."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import pytest

import rowlake
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.iceberg.cache import default_cache
from rowlake.secrets import REDACTED

MARK = "s3cr3t"
SECRETS = {
    "s3.access-key-id": f"{MARK}-key",
    "s3.secret-access-key": f"{MARK}-pass",
    "s3.session-token": f"{MARK}-session",
    "token": f"{MARK}-token",
    "uri": f"http://u:{MARK}-uri@h/?password={MARK}-query",
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def lake(spark, warehouse):
    catalog = {"type": "filesystem", "warehouse": str(warehouse), **SECRETS}
    found = rowlake.connect(catalog=catalog, spark=spark)
    found.sql("CREATE NAMESPACE ns")
    found.sql("CREATE TABLE ns.t (id bigint, name string) TBLPROPERTIES ('owner' = 'me')")
    found.sql("INSERT INTO ns.t SELECT id, CAST(id AS string) FROM range(100)")
    yield found
    found.close()


def texts_of(frame):
    execution = frame._jdf.queryExecution()
    yield execution.toString()
    yield execution.logical().toJSON()
    yield frame.sparkSession._jvm.PythonSQLUtils.explainString(execution, "formatted")
    yield repr(frame)


def test_plans_and_what_the_ui_lists(lake, spark, warehouse, capfd):
    table = lake.table("ns.t")
    lake.sql("UPDATE ns.t SET name = 'x' WHERE id < 50")
    lake.sql(
        "MERGE INTO ns.t USING (SELECT id FROM range(200)) s ON t.id = s.id WHEN MATCHED THEN "
        "UPDATE SET name = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    named = {f"catalog.{key}": value for key, value in SECRETS.items()}
    named |= {"catalog.type": "filesystem", "catalog.warehouse": str(warehouse)}
    frames = [
        table.df(),
        table.df(where="id = 3"),
        lake.sql("SELECT name, count(*) c FROM ns.t WHERE id > 3 GROUP BY name"),
        spark.read.format("rowlake").load("ns.t"),
        spark.read.format("rowlake").options(**named).load("ns.t").where("id = 3"),
    ]
    frames[-1].createOrReplaceTempView("secret_view")
    frames += [
        spark.sql("SELECT * FROM secret_view"),
        spark.sql("EXPLAIN SELECT * FROM secret_view"),
    ]
    texts = [text for frame in frames for text in texts_of(frame)]
    for frame in frames:
        assert frame.collect()
        frame.explain(extended=True)
    explained = (
        "SELECT * FROM ns.t",
        "EXTENDED SELECT * FROM ns.t",
        "DELETE FROM ns.t WHERE id = 3",
    )
    texts += [str(lake.sql(f"EXPLAIN {text}").collect()) for text in explained]
    texts += listed_by_the_ui(spark)
    texts += capfd.readouterr()
    assert not [text for text in texts if MARK in text]


def listed_by_the_ui(spark):
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    assert executions.size() > 3
    for place in range(executions.size()):
        one = executions.apply(place)
        yield from (one.description(), one.details(), one.physicalPlanDescription())
        yield one.modifiedConfigs().toString()


def test_files_on_disk(lake, warehouse):
    lake.sql("DELETE FROM ns.t WHERE name = '7'")
    folders = [warehouse, default_cache().folder]
    files = [path for folder in folders for path in Path(folder).rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if MARK.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE ns.n (id int) TBLPROPERTIES ('s3.secret-access-key' = 's3cr3t-x')",
        "CREATE TABLE ns.n (id int) OPTIONS ('password' = 's3cr3t-x')",
        "CREATE TABLE ns.n TBLPROPERTIES ('password' = 's3cr3t-x') AS SELECT 1 AS id",
        "CREATE OR REPLACE TABLE ns.t TBLPROPERTIES ('password' = 's3cr3t-x') AS SELECT 1 AS id",
        "ALTER TABLE ns.t SET TBLPROPERTIES ('token' = 's3cr3t-x')",
        "ALTER TABLE ns.t SET TBLPROPERTIES ('token' = 's3cr3t-x') nonsense",
        "CREATE TABLE ns.n (id nonsense) TBLPROPERTIES ('token' = 's3cr3t-x')",
    ],
)
def test_statements_that_would_write_a_secret(lake, statement):
    with pytest.raises(InvalidStatementError) as raised:
        lake.sql(statement)
    told = "".join(traceback.format_exception(raised.value))
    assert MARK not in f"{told}{vars(raised.value)}"
    assert lake.tables("ns") == ["ns.t"]


@pytest.mark.parametrize(
    "call",
    [
        lambda lake: lake.sql(f"SELECT nothing FROM ns.t WHERE token = '{MARK}'"),
        lambda lake: lake.sql(f"SELECT * FROM ns.t WHERE id = nothing('password', '{MARK}')"),
        lambda lake: lake.table("ns.t").append(f"nosuch://u:{MARK}@h/x.csv?sig={MARK}"),
    ],
    ids=["column", "function", "source"],
)
def test_what_spark_refuses(lake, call):
    with pytest.raises(RowlakeError) as raised:
        call(lake)
    told = "".join(traceback.format_exception(raised.value))
    assert MARK not in f"{told}{vars(raised.value)}"


def test_a_table_that_does_not_exist_with_secrets_as_options(lake, spark, warehouse):
    named = {f"catalog.{key}": value for key, value in SECRETS.items()}
    with pytest.raises(Exception, match="There is no") as raised:
        spark.read.format("rowlake").options(**named, **{"catalog.type": "filesystem"}).options(
            **{"catalog.warehouse": str(warehouse)}
        ).load("ns.nothing")
    assert MARK not in "".join(traceback.format_exception(raised.value))


def test_listings_by_sql(lake, warehouse):
    table = lake.table("ns.t")
    folder = Path(table.location) / "metadata"
    number = int((folder / "version-hint.text").read_text())
    content = json.loads((folder / f"v{number}.metadata.json").read_text())
    content["properties"] |= SECRETS
    content["snapshots"][-1]["summary"] |= {"password": MARK}
    (folder / f"v{number + 1}.metadata.json").write_text(json.dumps(content))
    (folder / "version-hint.text").write_text(str(number + 1))
    for statement in (
        "DESCRIBE EXTENDED ns.t",
        "SHOW TBLPROPERTIES ns.t",
        "SHOW TBLPROPERTIES ns.t ('token')",
        "SHOW CREATE TABLE ns.t",
        "DESCRIBE HISTORY ns.t",
        "SELECT * FROM ns.t.snapshots",
    ):
        shown = str(lake.sql(statement).collect())
        assert MARK not in shown and REDACTED in shown
    assert table.properties["token"] == f"{MARK}-token"
