"""Statements through a real session: what users type, and what they get."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

import rowlake
from rowlake.errors import InvalidStatementError, SchemaMismatchError, TableNotFoundError


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE shop")
    found.sql(
        "CREATE TABLE shop.sales (id bigint NOT NULL, name string, amount decimal(9,2), d date, "
        "st struct<a: int, b: string>) PARTITIONED BY (bucket(4, id), d)"
    )
    found.sql(
        "INSERT INTO shop.sales VALUES (1, 'a', 1.5, DATE'2024-01-01', named_struct('a', 1, "
        "'b', 'x')), (2, 'b', 2.5, DATE'2024-01-02', NULL)"
    )
    found.sql("INSERT INTO shop.sales (id, name) VALUES (3, 'c'), (4, DEFAULT)")
    found.sql("INSERT INTO shop.sales BY NAME SELECT 'z' AS name, 5 AS id")
    yield found
    found.close()


def rows(lake, text, args=None):
    return [tuple(row) for row in lake.sql(text, args).collect()]


QUERIES = {
    "SELECT id, name FROM shop.sales ORDER BY id": [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, None),
        (5, "z"),
    ],
    "SELECT st.b, d FROM shop.sales WHERE st.a = 1": [("x", dt.date(2024, 1, 1))],
    "SELECT count(*), sum(amount), max(shop.sales.id) FROM shop.sales WHERE id > 1": [
        (4, Decimal("2.50"), 5)
    ],
    "SELECT count(*) FROM shop.sales": [(5,)],
    "SELECT name, sum(id) s, avg(id) a FROM shop.sales WHERE id < 3 GROUP BY name ORDER BY s": [
        ("a", 1, 1.0),
        ("b", 2, 2.0),
    ],
    "SELECT sum(id), count(name) FROM shop.sales WHERE id > 100": [(None, 0)],
    "SELECT s.id FROM shop.sales s LEFT ANTI JOIN shop.sales u ON s.id = u.id AND u.id < 4 "
    "ORDER BY 1": [(4,), (5,)],
    "WITH c AS (SELECT * FROM shop.sales) SELECT id FROM c WHERE d = '2024-01-02'": [(2,)],
    "SELECT id FROM shop.sales WHERE id IN (SELECT max(id) FROM shop.sales)": [(5,)],
    "SELECT * EXCEPT (st, amount), _spec_id FROM shop.sales WHERE id = 3": [(3, "c", None, 0)],
    "SELECT '{x}' AS b, id FROM shop.sales WHERE id = :id": [("{x}", 2)],
}


@pytest.mark.parametrize(("text", "expected"), QUERIES.items(), ids=list(QUERIES))
def test_queries(lake, text, expected):
    assert rows(lake, text, {"id": 2} if ":id" in text else None) == expected


def test_stars_do_not_show_metadata_columns(lake):
    found = lake.sql("SELECT *, _file FROM shop.sales")
    assert found.columns == ["id", "name", "amount", "d", "st", "_file"]


def test_names_of_aggregates_are_sparks(lake):
    found = lake.sql("SELECT count(*), SUM(Id), min(sales.name) FROM shop.sales")
    assert found.columns == ["count(1)", "sum(Id)", "min(name)"]
    assert [kind for _, kind in found.dtypes] == ["bigint", "bigint", "string"]


def test_history_is_readable(lake):
    lake.sql("CREATE TABLE shop.h AS SELECT 1 AS a")
    lake.sql("ALTER TABLE shop.h CREATE TAG one")
    lake.sql("INSERT INTO shop.h VALUES (2)")
    lake.sql("ALTER TABLE shop.h ADD COLUMN b string")
    first = rows(lake, "SELECT snapshot_id FROM shop.h.snapshots ORDER BY committed_at")[0][0]
    assert rows(lake, f"SELECT * FROM shop.h VERSION AS OF {first}") == [(1,)]
    assert rows(lake, "SELECT * FROM shop.h VERSION AS OF 'one'") == [(1,)]
    assert rows(lake, "SELECT a FROM shop.h.tag_one WHERE a > 0") == [(1,)]
    assert rows(lake, "SELECT count(*) FROM shop.h TIMESTAMP AS OF current_timestamp()") == [(2,)]
    assert rows(lake, "SELECT a, b FROM shop.h ORDER BY a") == [(1, None), (2, None)]


def test_writes_go_to_branches(lake):
    lake.sql("CREATE TABLE shop.b (a bigint)")
    lake.sql("INSERT INTO shop.b VALUES (1)")
    lake.sql("ALTER TABLE shop.b CREATE BRANCH dev")
    lake.sql("INSERT INTO shop.b.branch_dev SELECT a + 1 FROM shop.b")
    assert rows(lake, "SELECT a FROM shop.b") == [(1,)]
    assert rows(lake, "SELECT a FROM shop.b.branch_dev ORDER BY a") == [(1,), (2,)]


def test_overwrites(lake, spark):
    lake.sql("CREATE TABLE shop.o (a int, p string) PARTITIONED BY (p)")
    lake.sql("INSERT INTO shop.o VALUES (1, 'x'), (2, 'y')")
    lake.sql("INSERT OVERWRITE shop.o PARTITION (p = 'x') SELECT 10")
    assert rows(lake, "SELECT a FROM shop.o ORDER BY a") == [(2,), (10,)]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        lake.sql("INSERT OVERWRITE shop.o VALUES (20, 'y')")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(lake, "SELECT a FROM shop.o ORDER BY a") == [(10,), (20,)]
    lake.sql("INSERT OVERWRITE shop.o SELECT 1, 'z'")
    assert rows(lake, "SELECT a, p FROM shop.o") == [(1, "z")]
    lake.sql("TRUNCATE TABLE shop.o")
    assert rows(lake, "SELECT count(*) FROM shop.o") == [(0,)]


def test_temporary_views_are_joined_with_tables(lake):
    lake.sql("CREATE OR REPLACE TEMP VIEW few AS SELECT id FROM shop.sales WHERE id < 3")
    assert rows(lake, "SELECT s.name FROM few JOIN shop.sales s USING (id) ORDER BY 1") == [
        ("a",),
        ("b",),
    ]


def test_current_namespace(lake):
    lake.sql("USE shop")
    try:
        assert rows(lake, "SELECT max(id) FROM sales") == [(5,)]
        assert ("shop", "sales", False) in rows(lake, "SHOW TABLES")
    finally:
        lake.sql(f"USE {lake.catalog.name}")


def test_odd_names_and_types(lake):
    lake.sql(
        "CREATE TABLE shop.`a.b c` (`x y` int, `größe` uuid, f fixed(2), t timestamp_ntz, "
        "arr array<struct<`q q`: int>>, m map<string, int>)"
    )
    lake.sql(
        "INSERT INTO shop.`a.b c` VALUES (1, 'f79c3e09-677c-4bbd-a479-3f349cb785e7', X'0001', "
        "TIMESTAMP_NTZ'2024-01-01 00:00:00', array(named_struct('q q', 7)), map('k', 1))"
    )
    text = (
        "SELECT `x y`, arr[0].`q q`, m['k'] FROM shop.`a.b c` WHERE t = TIMESTAMP_NTZ'2024-01-01' "
        "AND `größe` = 'f79c3e09-677c-4bbd-a479-3f349cb785e7' AND f = X'0001'"
    )
    assert rows(lake, text) == [(1, 7, 1)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT * FROM shop.missing", TableNotFoundError),
        ("SELECT nope FROM shop.sales", InvalidStatementError),
        ("SELECT FROM WHERE", InvalidStatementError),
        ("INSERT INTO shop.sales (id) VALUES ('x')", SchemaMismatchError),
        ("INSERT INTO shop.sales VALUES (1)", SchemaMismatchError),
        ("SELECT * FROM shop.sales VERSION AS OF 1", InvalidStatementError),
        ("SELECT * FROM shop.sales TIMESTAMP AS OF '1999-01-01'", InvalidStatementError),
    ],
)
def test_mistakes_are_rowlake_errors(lake, text, error, capfd):
    with pytest.raises(error):
        lake.sql(text)
    assert "org.apache.spark" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region FROM shop.sold WHERE amont = 1",
        "SELECT count(*) FROM shop.sold WHERE amont = 1",
        "DELETE FROM shop.sold WHERE amont = 1",
        "UPDATE shop.sold SET region = 'x' WHERE amont = 1",
        "MERGE INTO shop.sold USING (SELECT 1 AS k) s ON s.k = sold.amont WHEN MATCHED THEN DELETE",
        "EXPLAIN DELETE FROM shop.sold WHERE amont = 1",
    ],
)
def test_a_column_is_suggested_that_the_statement_does_not_use(lake, text):
    lake.sql("CREATE TABLE IF NOT EXISTS shop.sold (region string, amount int)")
    with pytest.raises(InvalidStatementError, match="amount"):
        lake.sql(text)


def test_overflow_is_an_error_and_writes_nothing(lake):
    lake.sql("CREATE TABLE shop.small (a int)")
    with pytest.raises(Exception, match=r"(?i)overflow"):
        lake.sql("INSERT INTO shop.small VALUES (3000000000L)")
    assert lake.table("shop.small").snapshots() == []
