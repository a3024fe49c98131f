"""Statements whose rows Spark finds, beside a compaction: they are found again, unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from rowlake.commit.phases import Phase
from tests.parts.compacting import compact
from tests.parts.failing import stray_files
from tests.parts.stopping import stopped_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

NAME = "shop.stock"


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[rowlake.Lake]:
    found = rowlake.connect(str(tmp_path), spark=spark)
    found.sql("CREATE NAMESPACE shop")
    found.sql(
        f"CREATE TABLE {NAME} (id bigint, qty int) TBLPROPERTIES ('format-version' = '3', "
        "'write.delete.mode' = 'merge-on-read', 'commit.retry.min-wait-ms' = '1')"
    )
    found.sql(f"INSERT INTO {NAME} VALUES (1, 10), (2, 20), (3, 30)")
    found.sql(f"INSERT INTO {NAME} VALUES (4, 40), (5, 50)")
    yield found
    found.close()


def interrupted(_: Any, other: Callable[[], Any]) -> AbstractContextManager[None]:
    """Run the other once, when the write inside the block has written its files."""
    return stopped_at(Phase.WRITTEN, other)


def compacted(lake: rowlake.Lake) -> None:
    compact(lake.table(NAME))


def rows(lake: rowlake.Lake) -> dict[int, int]:
    return dict(sorted(tuple(row) for row in lake.sql(f"SELECT * FROM {NAME}").collect()))


OLD = {1: 10, 2: 20, 3: 30, 4: 40, 5: 50}
STATEMENTS: dict[str, tuple[str, dict[int, int]]] = {
    "delete": (
        f"DELETE FROM {NAME} WHERE qty % 20 = 0",
        {1: 10, 3: 30, 5: 50},
    ),
    "delete by what the table holds": (
        f"DELETE FROM {NAME} WHERE qty > (SELECT avg(qty) FROM {NAME})",
        {1: 10, 2: 20, 3: 30},
    ),
    "update": (
        f"UPDATE {NAME} SET qty = qty + 1 WHERE id > 1 AND qty % 20 = 0",
        {**OLD, 2: 21, 4: 41},
    ),
    "merge by a join": (
        f"MERGE INTO {NAME} t USING (SELECT 2 AS id, 5 AS qty UNION ALL SELECT 9, 90) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = t.qty - s.qty "
        "WHEN NOT MATCHED THEN INSERT *",
        {**OLD, 2: 15, 9: 90},
    ),
    "merge by keys": (
        f"MERGE INTO {NAME} t USING (SELECT 2 AS id, 5 AS qty UNION ALL SELECT 9, 90) s "
        "ON t.id = s.id WHEN MATCHED AND t.qty > s.qty THEN UPDATE SET qty = s.qty "
        "WHEN NOT MATCHED THEN INSERT *",
        {**OLD, 2: 5, 9: 90},
    ),
    "merge of the table with itself": (
        f"MERGE INTO {NAME} t USING (SELECT id, qty * 2 AS qty FROM {NAME} WHERE id < 3) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET qty = s.qty + t.qty",
        {**OLD, 1: 30, 2: 60},
    ),
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_statement_finds_its_rows_again(
    lake: rowlake.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    statement, expected = STATEMENTS[kind]
    with interrupted(monkeypatch, lambda: compacted(lake)):
        lake.sql(statement)
    assert rows(lake) == expected
    assert stray_files(tmp_path, None, NAME) == set()


def test_a_condition_of_the_method_finds_its_rows_again(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interrupted(monkeypatch, lambda: compacted(lake)):
        assert lake.table(NAME).delete("qty % 20 = 0").rows_deleted == 2
    assert rows(lake) == {1: 10, 3: 30, 5: 50}


def test_rows_are_looked_for_where_they_are_changed(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction between reading the table's metadata and planning Spark's scan of it."""
    from rowlake.query import row_condition

    whole = row_condition.run_query

    def late(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(row_condition, "run_query", whole)
        compacted(lake)
        return whole(*args, **kwargs)

    monkeypatch.setattr(row_condition, "run_query", late)
    lake.sql(f"DELETE FROM {NAME} WHERE qty % 20 = 0")
    assert rows(lake) == {1: 10, 3: 30, 5: 50}


def test_a_random_source_gives_the_same_rows_again(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = lake.spark.sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    source = lake.spark.range(1, 4).selectExpr("id", "CAST(rand() * 1000 AS INT) AS qty")
    counted = source.mapInArrow(count, "id bigint, qty int").selectExpr("*", "rand() AS r")
    with interrupted(monkeypatch, lambda: compacted(lake)):
        merge = lake.table(NAME).merge(counted, "t.id = s.id")
        merge.when_matched_update({"qty": "t.qty + s.qty"}).execute()
    assert seen.value == 3
    assert not counted.is_cached
    assert {key: value for key, value in rows(lake).items() if key > 3} == {4: 40, 5: 50}


def test_what_was_read_of_the_table_is_read_again_once_its_rows_changed(
    lake: rowlake.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other() -> None:
        compacted(lake)
        lake.sql(f"UPDATE {NAME} SET qty = 100 WHERE id = 2")

    statement, _ = STATEMENTS["merge of the table with itself"]
    with interrupted(monkeypatch, other):
        lake.sql(statement)
    assert rows(lake) == {**OLD, 1: 30, 2: 300}
    assert stray_files(tmp_path, None, NAME) == set()
