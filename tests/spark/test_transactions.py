"""Transactions with statements and row-level changes: each sees those before it, others nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from rowlake.errors import CommitConflictError, UnsupportedFeatureError
from tests.parts.failing import files_below, stray_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def lake(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[rowlake.Lake]:
    found = rowlake.connect(str(tmp_path), spark=spark)
    found.sql("CREATE NAMESPACE shop")
    kept = f"TBLPROPERTIES ('format-version' = '{request.param}')"
    found.sql(f"CREATE TABLE shop.stock (id bigint, qty int) {kept}")
    found.sql(f"CREATE TABLE shop.log (id bigint, what string) {kept}")
    found.sql("INSERT INTO shop.stock VALUES (1, 10), (2, 20), (3, 30)")
    yield found
    found.close()


def rows(lake: Any, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in lake.sql(text).collect())


STOCK, LOG = "SELECT * FROM shop.stock", "SELECT * FROM shop.log"


def test_statements_of_all_kinds_land_together(lake: rowlake.Lake, tmp_path: Path) -> None:
    with lake.transaction() as tx:
        tx.sql("INSERT INTO shop.stock VALUES (4, 40)")
        tx.sql("UPDATE shop.stock SET qty = qty + 1 WHERE id >= 3")
        assert rows(tx, STOCK) == [(1, 10), (2, 20), (3, 31), (4, 41)]
        tx.sql(
            "MERGE INTO shop.stock t USING (SELECT 1 AS id, 5 AS qty UNION ALL SELECT 9, 90) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = t.qty - s.qty "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        tx.sql("DELETE FROM shop.stock WHERE qty % 2 = 0 AND id < 9")
        tx.sql("INSERT INTO shop.log SELECT id, 'seen' FROM shop.stock")
        assert rows(lake, STOCK) == [(1, 10), (2, 20), (3, 30)]
        assert rows(lake, LOG) == []
    assert rows(lake, STOCK) == [(1, 5), (3, 31), (4, 41), (9, 90)]
    assert rows(lake, LOG) == [(1, "seen"), (3, "seen"), (4, "seen"), (9, "seen")]
    for name in ("shop.stock", "shop.log"):
        assert stray_files(tmp_path, None, name) == set()


def test_methods_and_frames_see_the_transaction(lake: rowlake.Lake) -> None:
    with lake.transaction() as tx:
        stock = tx.table("shop.stock")
        source = lake.spark.createDataFrame([(1, 0), (7, 70)], "id bigint, qty int")
        made = stock.merge(source, on="t.id = s.id")
        made = made.when_matched_update_all().when_not_matched_insert_all().execute()
        assert (made.rows_updated, made.rows_inserted) == (1, 1)
        stock.update({"qty": "qty * 2"}, where="id = 2")
        assert sorted(map(tuple, stock.df().collect())) == [(1, 0), (2, 40), (3, 30), (7, 70)]
        found = stock.df(where="qty > 10").selectExpr("id", "'big' AS what")
        tx.table("shop.log").append(found)
        lake.sql("INSERT INTO shop.log VALUES (0, 'other')")  # a race, which only adds
    assert rows(lake, STOCK) == [(1, 0), (2, 40), (3, 30), (7, 70)]
    assert rows(lake, LOG) == [(0, "other"), (2, "big"), (3, "big"), (7, "big")]


def test_a_statement_that_another_overtook_stops_all(lake: rowlake.Lake, tmp_path: Path) -> None:
    files: set[str] = set()
    with pytest.raises(CommitConflictError) as raised, lake.transaction() as tx:
        tx.sql("INSERT INTO shop.log VALUES (1, 'moved')")
        tx.sql("UPDATE shop.stock SET qty = 0 WHERE id = 1")
        lake.sql("UPDATE shop.stock SET qty = 99 WHERE id = 1")
        files = files_below(tmp_path)
    assert raised.value.table == "shop.stock"
    assert rows(lake, STOCK) == [(1, 99), (2, 20), (3, 30)]
    assert rows(lake, LOG) == []
    assert files_below(tmp_path) < files


def test_the_namespace_in_use_holds_inside(lake: rowlake.Lake) -> None:
    lake.sql("USE shop")
    with lake.transaction() as tx:
        tx.sql("INSERT INTO log VALUES (1, 'a')")
        assert rows(tx, "SELECT * FROM log") == [(1, "a")]
    assert rows(lake, LOG) == [(1, "a")]


def test_tables_change_inside_but_are_not_made_or_dropped(lake: rowlake.Lake) -> None:
    with lake.transaction() as tx:
        for text in (
            "CREATE TABLE shop.more (id bigint)",
            "CREATE TABLE shop.more AS SELECT 1 AS id",
            "DROP TABLE shop.log",
            "ALTER TABLE shop.log RENAME TO shop.diary",
            "CREATE NAMESPACE more",
            "DROP NAMESPACE shop CASCADE",
        ):
            with pytest.raises(UnsupportedFeatureError, match="part of a transaction"):
                tx.sql(text)
        tx.sql("ALTER TABLE shop.log ADD COLUMN colour string")
        tx.sql("INSERT INTO shop.log VALUES (1, 'a', 'red')")
        assert lake.table("shop.log").arrow().column_names == ["id", "what"]
    assert rows(lake, LOG) == [(1, "a", "red")]
    assert lake.tables() == ["shop.log", "shop.stock"]
