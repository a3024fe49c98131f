"""Views of a REST catalog: ours read by Iceberg's Java runtime, and Java's read by rowlake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from rowlake.errors import InvalidStatementError, TableNotFoundError
from tests.parts.rest import rest_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

CATALOG = "java_rest_views"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture(scope="module")
def lake(spark: Any, address: str) -> Iterator[rowlake.Lake]:
    with rowlake.connect(catalog={"type": "rest", "uri": address}, spark=spark) as found:
        found.sql("CREATE NAMESPACE ns")
        found.sql("CREATE TABLE ns.t (id int, v string)")
        found.sql("INSERT INTO ns.t VALUES (1, 'a'), (2, 'b')")
        yield found


@pytest.fixture(scope="module")
def java(spark: Any, java_catalog: str, address: str) -> str:
    assert java_catalog
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.type", "rest")
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.uri", address)
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.cache-enabled", "false")
    return CATALOG


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_view_of_the_catalog_shows_the_table_as_it_is(lake: rowlake.Lake) -> None:
    lake.sql("CREATE VIEW ns.live (number COMMENT 'x', word) AS SELECT id, v FROM ns.t")
    before = rows(lake.sql("SELECT * FROM ns.live"))
    lake.sql("INSERT INTO ns.t VALUES (3, 'c')")
    assert rows(lake.sql("SELECT number, word FROM ns.live")) == [*before, (3, "c")]
    lake.sql("DELETE FROM ns.t WHERE id IN (SELECT number FROM ns.live WHERE word = 'c')")
    assert rows(lake.sql("SELECT * FROM ns.live")) == before
    lake.sql("USE ns")
    assert rows(lake.sql("SELECT * FROM live")) == before
    lake.sql("USE default")
    lake.sql("DROP VIEW ns.live")


def test_java_reads_a_view_that_rowlake_made(lake: rowlake.Lake, spark: Any, java: str) -> None:
    lake.sql("USE ns")
    lake.sql("CREATE VIEW ours (n) COMMENT 'made here' AS SELECT id FROM t WHERE v = 'a'")
    lake.sql("USE default")
    assert rows(spark.sql(f"SELECT n FROM {java}.ns.ours")) == [(1,)]
    assert [row.viewName for row in lake.sql("SHOW VIEWS IN ns").collect() if row.namespace] == [
        "ours"
    ]
    lake.sql("DROP VIEW ns.ours")
    with pytest.raises(TableNotFoundError):
        lake.sql("SELECT * FROM ns.ours")


def test_rowlake_reads_a_view_that_java_made(lake: rowlake.Lake, spark: Any, java: str) -> None:
    spark.sql(f"USE {java}.ns")
    try:
        spark.sql("CREATE VIEW theirs (n, w) AS SELECT id, upper(v) FROM t")
        spark.sql("CREATE VIEW plain AS SELECT * FROM ns.t")
    finally:
        spark.sql("USE spark_catalog.default")
    assert rows(lake.sql("SELECT w, n FROM ns.theirs")) == [("A", 1), ("B", 2)]
    assert rows(lake.sql("SELECT * FROM ns.plain")) == [(1, "a"), (2, "b")]
    lake.sql("ALTER TABLE ns.t ADD COLUMN extra int")
    assert lake.sql("SELECT * FROM ns.plain").columns == ["id", "v"]
    lake.sql("ALTER TABLE ns.t DROP COLUMN extra")
    spark.sql(f"DROP VIEW {java}.ns.plain")
    spark.sql(f"DROP VIEW {java}.ns.theirs")


def test_views_are_replaced_altered_and_cached(lake: rowlake.Lake) -> None:
    lake.sql("CREATE VIEW ns.w AS SELECT id FROM ns.t")
    lake.sql("CREATE VIEW IF NOT EXISTS ns.w AS SELECT 7 AS id")
    assert rows(lake.sql("SELECT * FROM ns.w")) == [(1,), (2,)]
    with pytest.raises(InvalidStatementError, match="exists"):
        lake.sql("CREATE VIEW ns.w AS SELECT 7 AS id")
    lake.sql("CACHE TABLE ns.w")
    lake.sql("CREATE OR REPLACE VIEW ns.w AS SELECT id + 10 AS id FROM ns.t")
    assert rows(lake.sql("SELECT * FROM ns.w")) == [(11,), (12,)]
    lake.sql("ALTER VIEW ns.w AS SELECT max(id) AS id FROM ns.t")
    assert rows(lake.sql("SELECT * FROM ns.w")) == [(2,)]
    lake.sql("CREATE TEMPORARY VIEW over_w AS SELECT id * 2 AS id FROM ns.w")
    lake.sql("INSERT INTO ns.t VALUES (5, 'e')")
    assert rows(lake.sql("SELECT * FROM over_w")) == [(10,)]
    lake.sql("DELETE FROM ns.t WHERE id = 5")
    lake.sql("DROP VIEW over_w")
    lake.sql("DROP VIEW ns.w")


def test_what_a_view_of_the_catalog_may_not_be(lake: rowlake.Lake) -> None:
    with pytest.raises(InvalidStatementError, match="it is a table"):
        lake.sql("CREATE VIEW ns.t AS SELECT 1 AS one")
    lake.sql("CREATE TEMPORARY VIEW passing AS SELECT id FROM ns.t")
    with pytest.raises(InvalidStatementError, match="cannot read a temporary view"):
        lake.sql("CREATE VIEW ns.w AS SELECT * FROM passing")
    lake.sql("DROP VIEW passing")
    lake.sql("CREATE VIEW ns.w AS SELECT id FROM ns.t")
    with pytest.raises(InvalidStatementError, match="would read itself"):
        lake.sql("CREATE OR REPLACE VIEW ns.w AS SELECT * FROM ns.w")
    with pytest.raises(InvalidStatementError, match="view"):
        lake.sql("DELETE FROM ns.w")
    assert rows(lake.sql("DESCRIBE ns.w")) == [("id", "int", None)]
    assert rows(lake.sql("SHOW COLUMNS IN ns.w")) == [("id",)]
    assert "SELECT id FROM ns.t" in lake.sql("SHOW CREATE TABLE ns.w").first()[0]
    with pytest.raises(InvalidStatementError, match="for tables"):
        lake.sql("TRUNCATE TABLE ns.w")
    lake.sql("DROP VIEW ns.w")
