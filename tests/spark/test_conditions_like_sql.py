"""Conditions of Python's verbs, of procedures and of SQL are read one way."""

from __future__ import annotations

import pytest

import rowlake
from rowlake.errors import InvalidStatementError, TableNotFoundError

NEAR = "SELECT nmae FROM shop.t WHERE _pos >= 0"


@pytest.fixture(scope="module")
def opened(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark) as found:
        found.create_namespace("shop")
        found.sql("CREATE TABLE shop.q (id bigint, flag boolean)")
        found.sql("INSERT INTO shop.q VALUES (1, true), (3, true), (4, false)")
        yield found


@pytest.fixture
def lake(opened):
    opened.sql(
        "CREATE OR REPLACE TABLE shop.t (id bigint, name string) PARTITIONED BY (bucket(4, id))"
    )
    opened.sql("INSERT INTO shop.t SELECT id, concat('n', id) FROM range(8)")
    return opened


def ids(lake, where: str = "true") -> list[int]:
    return sorted(row.id for row in lake.sql(f"SELECT id FROM shop.t WHERE {where}").collect())


CHOSEN = "id IN (SELECT id FROM shop.q WHERE flag)"


def test_python_conditions_find_other_tables_of_the_lake(lake):
    table = lake.table("shop.t")
    assert sorted(row.id for row in table.df(["id"], where=CHOSEN).collect()) == [1, 3]
    assert table.update({"name": "'new'"}, where=CHOSEN).rows_updated == 2
    assert ids(lake, "name = 'new'") == [1, 3]
    assert table.delete(CHOSEN).rows_deleted == 2
    assert ids(lake) == [0, 2, 4, 5, 6, 7]
    with pytest.raises(TableNotFoundError, match="nowhere"):
        table.delete("id IN (SELECT id FROM shop.nowhere)")
    with pytest.raises(InvalidStatementError, match="compare columns"):
        table.overwrite([{"id": 9, "name": "x"}], where=CHOSEN)


def test_functions_of_iceberg_stand_in_every_condition(lake):
    table, name = lake.table("shop.t"), lake.catalog.name
    chosen = ids(lake, "system.bucket(4, id) = 0")
    assert 0 < len(chosen) < 8
    assert chosen == ids(lake, f"{name}.system.bucket(4, id) = 0")
    where = "system.bucket(4, id) = 0"
    assert sorted(row.id for row in table.df(["id"], where=where).collect()) == chosen
    rewritten = lake.sql(
        "CALL system.rewrite_data_files(table => 'shop.t', options => map('rewrite-all', 'true'), "
        'where => "system.bucket(4, id) = 0")'
    ).first()
    assert rewritten.rewritten_data_files_count == 1
    assert table.overwrite([{"id": chosen[0], "name": "x"}], where=where).data_files_removed == 1
    assert [row.id for row in table.df(where=where).collect()] == chosen[:1]
    assert lake.sql("SELECT system.iceberg_version() AS v").first().v.startswith("rowlake")
    with pytest.raises(InvalidStatementError, match="Cannot take truncate"):
        lake.sql("SELECT system.truncate(2, upper(name)) FROM shop.t")


def test_a_version_that_is_a_snapshot_id_is_no_tag(lake):
    table = lake.table("shop.t")
    first = table.handle.current_snapshot_id
    table.delete("id = 0")
    table.create_tag(str(first))
    table.create_tag("123")
    assert lake.sql(f"SELECT * FROM shop.t VERSION AS OF {first}").count() == 8
    assert lake.sql("SELECT * FROM shop.t VERSION AS OF '123'").count() == 7


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE plain_things SET id = 1",
        "DELETE FROM plain_things WHERE id = 1",
        "MERGE INTO plain_things AS t USING shop.q AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "UPDATE spark_catalog.default.plain_things SET id = 1",
        "EXPLAIN DELETE FROM plain_things WHERE id = 1",
        "UPDATE seen_things SET id = 1",
        "DELETE FROM seen_things",
    ],
)
def test_rows_of_sparks_own_tables_and_views_are_not_changed(lake, spark, statement):
    spark.sql("CREATE TABLE IF NOT EXISTS plain_things (id int) USING parquet")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW seen_things AS SELECT 1 AS id")
    kind = "temporary view" if "seen" in statement else "Spark's table"
    with pytest.raises(InvalidStatementError, match=kind):
        lake.sql(statement)


def test_a_suggestion_has_no_metadata_columns(lake):
    with pytest.raises(InvalidStatementError) as raised:
        lake.sql(NEAR)
    assert "name" in str(raised.value)
    assert "_pos`" not in str(raised.value)
