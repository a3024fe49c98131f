"""The key index through SQL: statements use it, EXPLAIN says so, and results are the same."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import InvalidStatementError

ROWS = 20_000


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE ix")
    yield found
    found.close()


@pytest.fixture
def orders(lake):
    lake.sql("DROP TABLE IF EXISTS ix.orders")
    lake.sql(
        "CREATE TABLE ix.orders (id BIGINT, region STRING, amount DOUBLE) "
        "TBLPROPERTIES ('rowlake.index.min-rows' = '1')"
    )
    lake.sql("CREATE INDEX by_id ON ix.orders (id)")
    lake.sql(
        f"INSERT INTO ix.orders SELECT id, concat('r', id % 7), 0.5 FROM range(0, {ROWS}, 1, 2)"
    )
    return lake.table("ix.orders")


def test_statements_by_key_use_the_index(lake, orders):
    plan = "\n".join(
        lake.sql("EXPLAIN UPDATE ix.orders SET amount = 2 WHERE id = 77").toPandas().iloc[:, 0]
    )
    assert "key index: (id) 1 keys looked up, 1 rows in 1 files" in plan
    assert lake.sql("UPDATE ix.orders SET amount = 2 WHERE id IN (77, 15000)").collect()
    lake.sql("DELETE FROM ix.orders WHERE id = 78")
    lake.sql(
        "MERGE INTO ix.orders t USING (SELECT * FROM VALUES (79L, 9D), (-1L, 9D) AS s(id, a)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = s.a "
        "WHEN NOT MATCHED THEN INSERT (id, region, amount) VALUES (s.id, 'new', s.a)"
    )
    found = lake.sql(
        "SELECT id, amount FROM ix.orders WHERE id IN (77, 78, 79, 15000, -1)"
    ).collect()
    assert sorted(map(tuple, found)) == [(-1, 9.0), (77, 2.0), (79, 9.0), (15000, 2.0)]
    assert lake.sql("SELECT count(*) FROM ix.orders").collect()[0][0] == ROWS


def test_explain_says_why_the_index_is_not_used(lake, orders):
    text = "\n".join(
        lake.sql("EXPLAIN DELETE FROM ix.orders WHERE region = 'r3'").toPandas().iloc[:, 0]
    )
    assert "key index: (id) not used: the condition names no values of id" in text


def test_df_and_dropping_the_index(lake, orders):
    assert orders.df(where="id = 5").collect() == [(5, "r5", 0.5)]
    assert orders.df(where="id = 5").toArrow().num_rows == 1
    assert orders.df(where="id = 5").count() == 1
    lake.sql("DROP INDEX by_id ON ix.orders")
    assert orders.df(where="id = 5").count() == 1
    lake.sql("DROP INDEX IF EXISTS ON ix.orders")
    with pytest.raises(InvalidStatementError):
        lake.sql("DROP INDEX ON ix.orders")
    with pytest.raises(InvalidStatementError):
        lake.sql("CREATE INDEX ON ix.orders (nope)")


def test_optimize_fills_in_what_other_engines_wrote(lake, orders):
    rows = pa.table({"id": [ROWS + 1, ROWS + 2], "region": ["x", "y"], "amount": [1.0, 1.0]})
    orders.to_pyiceberg().append(rows)
    table = lake.table("ix.orders")
    report = table.optimize(dry_run=True)
    assert "create_index" in {step.verb for step in report.planned}
    report = table.optimize()
    assert table.create_index("id").files_indexed == 0
    assert table.upsert(rows.slice(0, 1), keys=["id"]).rows_unchanged == 1
