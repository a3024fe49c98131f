"""Transactions: all changes land together, or none does and nothing is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.types import StringType

from rowlake.catalog import commit as catalog_commit
from rowlake.catalog.sql import SqlBackend
from rowlake.errors import (
    CommitStateUnknownError,
    InvalidStatementError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.lakes import SALES, rows_of, sales
from tests.parts.failing import files_below
from tests.two_tables import ONE, TWO, heads, ids, of_store, opened, strays

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowlake.lake import Lake

pytestmark = pytest.mark.iceberg


@pytest.fixture(params=["2", "3"])
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def lake(tmp_path: Path, version: str) -> Iterator[Lake]:
    with opened(tmp_path, None, version) as found:
        yield found


@pytest.fixture
def folders(tmp_path: Path, version: str) -> Iterator[Lake]:
    with opened(tmp_path, "filesystem", version) as found:
        yield found


# -- what lands -------------------------------------------------------------------------------


def test_two_tables_land_together(lake: Lake, tmp_path: Path) -> None:
    before = heads(lake)
    with lake.transaction() as tx:
        first = tx.table(ONE).append(sales(4, 100))
        second = tx.table(TWO).delete(of_store(1))
        assert heads(lake) == before
        assert ids(lake.table(ONE)) == list(range(8))
    assert heads(lake) == [first.snapshot_id, second.snapshot_id]
    assert ids(lake.table(ONE)) == [*range(8), *range(100, 104)]
    assert ids(lake.table(TWO)) == [0, 2, 3, 4, 6, 7]
    assert (second.rows_deleted, second.retries) == (2, 0)
    assert strays(tmp_path) == set()


def test_each_change_sees_those_before_it(lake: Lake) -> None:
    with lake.transaction() as tx:
        table = tx.table(ONE)
        table.append(sales(4, 100))
        assert ids(table) == [*range(8), *range(100, 104)]
        table.delete(of_store(0))
        assert ids(tx.table(ONE)) == [1, 2, 3, 5, 6, 7, 101, 102, 103]
        assert table.overwrite(sales(2, 200)).rows_deleted == 9
        assert ids(table) == [200, 201]
        table.truncate()
        assert ids(table) == []
        table.append(sales(1, 300))
        assert [one.operation for one in table.snapshots()[1:]] == [
            "append",
            "delete" if table.format_version == 3 else table.snapshots()[2].operation,
            "overwrite",
            "delete",
            "append",
        ]
    assert ids(lake.table(ONE)) == [300]


def test_the_snapshots_of_one_table_land_in_one_commit(folders: Lake, tmp_path: Path) -> None:
    table = folders.table(ONE)
    logged = len(table.handle.metadata.metadata_log)
    with folders.transaction() as tx:
        inside = tx.table(ONE)
        made = [inside.append(sales(2, 100 * n)).snapshot_id for n in (1, 2, 3)]
    metadata = table.handle.metadata
    assert len(metadata.metadata_log) == logged + 1
    assert [one.snapshot_id for one in table.snapshots()[1:]] == made
    assert [one.sequence_number for one in table.snapshots()] == [1, 2, 3, 4]
    assert ids(table) == [*range(8), 100, 101, 200, 201, 300, 301]
    assert ids(table, snapshot_id=made[0]) == [*range(8), 100, 101]
    if metadata.format_version == 3:
        assert metadata.next_row_id == 14
        assert sorted(table.arrow(["_row_id"])["_row_id"].to_pylist()) == list(range(14))
    assert strays(tmp_path, "filesystem") == set()


def test_a_block_without_changes_commits_nothing(lake: Lake, tmp_path: Path) -> None:
    files = files_below(tmp_path)
    with lake.transaction() as tx:
        assert len(ids(tx.table(ONE))) == 8
        tx.table(TWO).delete(of_store(99))
    assert files_below(tmp_path) == files


def test_a_table_stays_as_it_was_at_the_first_look(lake: Lake) -> None:
    with lake.transaction() as tx:
        assert len(ids(tx.table(ONE))) == 8
        lake.table(ONE).append(sales(1, 500))
        assert len(ids(tx.table(ONE))) == 8
    assert len(ids(lake.table(ONE))) == 9


def test_branches_are_written_and_made_inside(lake: Lake, tmp_path: Path) -> None:
    table = lake.table(ONE)
    table.create_branch("audit")
    with lake.transaction() as tx:
        inside = tx.table(ONE)
        inside.append(sales(1, 100), branch="audit")
        inside.append(sales(1, 200))
        inside.create_branch("kept")
        inside.append(sales(1, 300), branch="kept")
        lake.table(ONE).append(sales(1, 400))  # a race, so that all is made again
    assert ids(table, ref="audit") == [*range(8), 100]
    assert ids(table) == [*range(8), 200, 400]
    assert ids(table, ref="kept") == [*range(8), 200, 300, 400]
    assert strays(tmp_path) == set()


def test_metadata_changes_land_with_the_rows(lake: Lake) -> None:
    with lake.transaction() as tx:
        inside = tx.table(ONE)
        with inside.evolve().update_schema() as update:
            update.add_column("colour", StringType())
        inside.set_properties({"a": "b"})
        wider = sales(1, 100).append_column("colour", pa.array(["red"]))
        inside.append(wider)
        assert lake.table(ONE).properties.get("a") is None
        tx.table(TWO).append(sales(1, 100))
        lake.table(ONE).set_properties({"c": "d"})
        lake.table(TWO).append(sales(1, 200))
    table = lake.table(ONE)
    assert (table.properties["a"], table.properties["c"]) == ("b", "d")
    assert table.arrow(["colour"])["colour"].to_pylist().count("red") == 1
    assert ids(lake.table(TWO)) == [*range(8), 100, 200]


# -- what does not ----------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_block_leaves_nothing(
    lake: Lake, tmp_path: Path, error: type[BaseException]
) -> None:
    files, before = files_below(tmp_path), heads(lake)
    with pytest.raises(error), lake.transaction() as tx:
        tx.table(ONE).append(sales(4, 100))
        tx.table(ONE).delete(of_store(1))
        tx.table(TWO).overwrite(sales(1))
        raise error
    assert (files_below(tmp_path), heads(lake)) == (files, before)


def test_a_rollback_leaves_nothing_and_ends_the_transaction(lake: Lake, tmp_path: Path) -> None:
    files = files_below(tmp_path)
    with lake.transaction() as tx:
        table = tx.table(ONE)
        table.append(sales(4, 100))
        tx.rollback()
        with pytest.raises(InvalidStatementError, match="not open"):
            tx.table(ONE)
        with pytest.raises(InvalidStatementError, match="is over"):
            table.append(sales(1))
    assert files_below(tmp_path) == files


def test_files_of_others_stay_when_the_block_fails(lake: Lake, tmp_path: Path) -> None:
    mine = tmp_path / "mine.parquet"
    pq.write_table(sales(3, 100), mine)
    with pytest.raises(ValueError, match="stop"), lake.transaction() as tx:
        tx.table(ONE).add_files(str(mine))
        raise ValueError("stop")
    assert mine.exists()


def test_a_change_that_fails_inside_can_be_passed_over(lake: Lake, tmp_path: Path) -> None:
    with lake.transaction() as tx:
        tx.table(ONE).append(sales(1, 100))
        with pytest.raises(InvalidStatementError):
            tx.table(ONE).append(sales(1, 200), branch="nowhere")
        with pytest.raises(TableNotFoundError):
            tx.table("shop.nowhere")
        tx.table(TWO).append(sales(1, 300))
    assert ids(lake.table(ONE)) == [*range(8), 100]
    assert ids(lake.table(TWO)) == [*range(8), 300]
    assert strays(tmp_path) == set()


def test_a_failure_between_two_tables_moves_none(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, before = files_below(tmp_path), heads(lake)
    moved: list[str] = []
    whole = SqlBackend._move

    def second_fails(self: SqlBackend, session: Any, swap: Any) -> None:
        moved.append(swap.base.name)
        if len(moved) == 2:
            raise StorageError("the database", "unplugged")
        whole(self, session, swap)

    monkeypatch.setattr(SqlBackend, "_move", second_fails)
    with pytest.raises(StorageError, match="unplugged"), lake.transaction() as tx:
        tx.table(TWO).append(sales(1, 100))
        tx.table(ONE).append(sales(1, 100))
    assert moved == [ONE, TWO]
    assert heads(lake) == before
    assert {one for one in files_below(tmp_path) - files if "metadata.json" not in one} == set()


@pytest.mark.parametrize("answer", ["lost", "never sent"])
def test_an_unknown_outcome_removes_nothing(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(catalog_commit, "LOOKS", (0.0,))
    whole = SqlBackend.swap

    def unknown(self: SqlBackend, swaps: Any) -> None:
        if answer == "lost":
            whole(self, swaps)
        raise CommitStateUnknownException("no answer")

    monkeypatch.setattr(SqlBackend, "swap", unknown)
    before = heads(lake)
    made = []

    def change() -> None:
        with lake.transaction() as tx:
            made.extend(tx.table(name).append(sales(1, 100)).snapshot_id for name in (ONE, TWO))

    if answer == "lost":
        change()  # it is looked for, and found
        assert heads(lake) == made
        return
    with pytest.raises(CommitStateUnknownError, match=r"shop\.one, shop\.two") as raised:
        change()
    assert (raised.value.table, raised.value.snapshot_id) == (ONE, made[0])
    assert heads(lake) == before
    names = strays(tmp_path)
    assert sum(one.endswith(".parquet") for one in names) == 2


def test_a_swap_that_is_cut_off_removes_nothing(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SqlBackend.swap

    def cut_off(self: SqlBackend, swaps: Any) -> None:
        whole(self, swaps)
        raise KeyboardInterrupt

    monkeypatch.setattr(SqlBackend, "swap", cut_off)
    with pytest.raises(KeyboardInterrupt), lake.transaction() as tx:
        tx.table(ONE).append(sales(1, 100))
        tx.table(TWO).append(sales(1, 100))
    assert ids(lake.table(ONE)) == ids(lake.table(TWO)) == [*range(8), 100]
    assert strays(tmp_path) == set()


# -- refusals ---------------------------------------------------------------------------------


def test_several_tables_without_a_catalog_that_can_are_refused_unwritten(
    folders: Lake, tmp_path: Path
) -> None:
    before = heads(folders)
    with pytest.raises(UnsupportedFeatureError, match=r"shop\.one"), folders.transaction() as tx:
        tx.table(ONE).append(sales(1, 100))
        assert len(ids(tx.table(TWO))) == 8
        files = files_below(tmp_path)
        for write in (tx.table(TWO).append, tx.table(TWO).overwrite):
            with pytest.raises(UnsupportedFeatureError, match="several tables"):
                write(sales(1, 100))
        with pytest.raises(UnsupportedFeatureError, match="several tables"):
            tx.table(TWO).set_properties({"a": "b"})
        assert files_below(tmp_path) == files
        tx.table(TWO).delete(of_store(1))
    assert heads(folders) == before
    assert strays(tmp_path, "filesystem") == set()


def test_tables_are_not_made_or_dropped_inside(lake: Lake) -> None:
    with lake.transaction() as tx:
        inside = tx._inside
        for change in (
            lambda: inside.create_table("shop.three", SALES),
            lambda: inside.drop_table(ONE),
            lambda: inside.drop_table(ONE, purge=True),
            lambda: inside.rename_table(ONE, "shop.three"),
            lambda: inside.create_namespace("more"),
        ):
            with pytest.raises(UnsupportedFeatureError, match="part of a transaction"):
                change()
        assert inside.tables("shop") == [ONE, TWO]
    assert lake.tables() == [ONE, TWO]


def test_a_transaction_is_used_once_and_inside_its_block(lake: Lake) -> None:
    tx = lake.transaction()
    with pytest.raises(InvalidStatementError, match="not open"):
        tx.table(ONE)
    with tx:
        table = tx.table(ONE)
        table.append(sales(1, 100))
        with pytest.raises(InvalidStatementError, match="used once"), tx:
            pass
    with pytest.raises(InvalidStatementError, match="used once"), tx:
        pass
    with pytest.raises(InvalidStatementError, match="is over"):
        table.arrow()
    assert rows_of(lake.table(ONE).arrow()) == rows_of(pa.concat_tables([sales(8), sales(1, 100)]))
