"""Transactions that others overtake: made again where that is right, else nothing of them lands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from rowlake.catalog.sql import SqlBackend
from rowlake.errors import CommitConflictError
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, sales
from tests.parts.failing import files_below, stray_files
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


def test_a_lost_race_is_made_again_under_the_same_ids(lake: Lake, tmp_path: Path) -> None:
    with lake.transaction() as tx:
        made = [tx.table(ONE).append(sales(2, 100)).snapshot_id]
        where = Leaf(("id",), Op.LT, (4,))
        made.append(tx.table(ONE).delete(where, isolation="snapshot").snapshot_id)
        made.append(tx.table(TWO).append(sales(2, 100)).snapshot_id)
        lake.table(ONE).append(sales(2, 200))
    table = lake.table(ONE)
    assert ids(table) == [4, 5, 6, 7, 100, 101, 200, 201]
    assert [one.snapshot_id for one in table.snapshots()[2:]] == made[:2]
    assert [one.sequence_number for one in table.snapshots()] == [1, 2, 3, 4]
    assert heads(lake) == made[1:]
    assert strays(tmp_path) == set()
    if table.format_version == 3:
        rows = sorted(table.arrow(["_row_id"])["_row_id"].to_pylist())
        assert rows == [4, 5, 6, 7, 8, 9, 10, 11]


def test_rows_added_and_changed_inside_keep_their_row_ids_or_do_not_land(
    lake: Lake, tmp_path: Path, version: str
) -> None:
    """Spec, Row Lineage: copies carry row ids, which another commit may have taken meanwhile."""

    def change() -> None:
        with lake.transaction() as tx:
            tx.table(ONE).append(sales(2, 100))
            where = Leaf(("id",), Op.EQ, (101,))
            tx.table(ONE).delete(where, isolation="snapshot", mode="copy-on-write")
            lake.table(ONE).append(sales(2, 200))

    if version == "3":
        with pytest.raises(CommitConflictError, match="rows that the transaction added"):
            change()
        assert ids(lake.table(ONE)) == [*range(8), 200, 201]
    else:
        change()
        assert ids(lake.table(ONE)) == [*range(8), 100, 200, 201]
    assert strays(tmp_path) == set()


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_marks_on_other_rows_of_one_file_are_merged(
    lake: Lake, tmp_path: Path, isolation: str
) -> None:
    how = {"isolation": isolation, "mode": "merge-on-read"}
    with lake.transaction() as tx:
        tx.table(ONE).delete(of_store(1), **how)
        tx.table(TWO).delete(of_store(1), **how)
        lake.table(ONE).delete(of_store(2), **how)
    assert ids(lake.table(ONE)) == [0, 3, 4, 7]
    assert ids(lake.table(TWO)) == [0, 2, 3, 4, 6, 7]
    assert strays(tmp_path) == set()


@pytest.mark.parametrize("name", [ONE, TWO])
def test_a_conflict_in_one_table_stops_all(lake: Lake, tmp_path: Path, name: str) -> None:
    files = set()
    with pytest.raises(CommitConflictError) as raised, lake.transaction() as tx:
        tx.table(ONE).delete(of_store(1))
        tx.table(TWO).delete(of_store(1))
        landed = lake.table(name).append(sales(2, 100))
        files = {one for one in files_below(tmp_path) if one.endswith(".parquet")}
    assert (raised.value.table, raised.value.snapshot_id) == (name, landed.snapshot_id)
    assert "delete" in raised.value.operation
    assert f"snapshot {landed.snapshot_id} (append)" in raised.value.cause
    assert len(files) >= 3
    assert strays(tmp_path) == set()
    other = TWO if name == ONE else ONE
    assert ids(lake.table(other)) == list(range(8))
    assert ids(lake.table(name)) == [*range(8), 100, 101]


def test_a_change_after_another_is_checked_from_what_the_transaction_read(lake: Lake) -> None:
    # The delete reads a snapshot of the transaction's own; rows that came meanwhile count still.
    with pytest.raises(CommitConflictError, match="added data files"), lake.transaction() as tx:
        tx.table(ONE).append(sales(4, 100))
        tx.table(ONE).delete(of_store(1))
        lake.table(ONE).append(sales(4, 200))
    assert ids(lake.table(ONE)) == [*range(8), *range(200, 204)]


def test_rows_that_were_deleted_meanwhile_stop_their_delete(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(CommitConflictError), lake.transaction() as tx:
        tx.table(ONE).append(sales(1, 100))
        tx.table(ONE).delete(of_store(1))
        lake.table(ONE).delete(of_store(1), mode="copy-on-write")
    assert ids(lake.table(ONE)) == [0, 2, 3, 4, 6, 7]
    assert strays(tmp_path) == set()


def test_own_files_are_nobody_elses_to_change(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table(ONE).append(sales(4, 100))
        tx.table(ONE).delete(
            Leaf(("id",), Op.EQ, (101,)), isolation="snapshot", mode="merge-on-read"
        )
        lake.table(ONE).delete(of_store(0), mode="merge-on-read")
    assert ids(lake.table(ONE)) == [1, 2, 3, 5, 6, 7, 100, 102, 103]


def test_transactions_within_each_other_land_in_turn(lake: Lake) -> None:
    with lake.transaction() as outer:
        outer.table(ONE).append(sales(1, 100))
        outer.table(TWO).append(sales(1, 100))
        with lake.transaction() as inner:
            inner.table(TWO).append(sales(1, 200))
            inner.table(ONE).append(sales(1, 200))
    assert ids(lake.table(ONE)) == ids(lake.table(TWO)) == [*range(8), 100, 200]


def test_a_table_that_allows_no_retries_gets_none(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (ONE, TWO):
        lake.table(name).set_properties({"commit.retry.num-retries": "0"})
    whole, count = SqlBackend.swap, [0]

    def overtaken(self: SqlBackend, swaps: Any) -> None:
        if len(swaps) == 2:
            count[0] += 1
            lake.table(TWO).append(sales(1, 100 * count[0]))
        whole(self, swaps)

    monkeypatch.setattr(SqlBackend, "swap", overtaken)
    with pytest.raises(CommitConflictError, match="1 attempts") as raised, lake.transaction() as tx:
        tx.table(ONE).append(sales(1, 900))
        tx.table(TWO).append(sales(1, 900))
    assert raised.value.table == f"{ONE}, {TWO}"
    assert ids(lake.table(ONE)) == list(range(8))
    assert ids(lake.table(TWO)) == [*range(8), 100]
    assert strays(tmp_path) == set()


def test_a_table_that_was_made_again_meanwhile_is_another(lake: Lake) -> None:
    with pytest.raises(CommitConflictError, match="dropped the table"), lake.transaction() as tx:
        tx.table(ONE).append(sales(1, 100))
        tx.table(TWO).append(sales(1, 100))
        lake.drop_table(ONE)
        lake.create_table(ONE, SALES)
    assert ids(lake.table(ONE)) == []
    assert ids(lake.table(TWO)) == list(range(8))


def test_a_branch_that_was_dropped_meanwhile_stays_dropped(lake: Lake, tmp_path: Path) -> None:
    lake.table(ONE).create_branch("audit")
    with pytest.raises(CommitConflictError, match="audit was dropped"), lake.transaction() as tx:
        tx.table(ONE).append(sales(1, 100), branch="audit")
        tx.table(TWO).append(sales(1, 100))
        lake.table(ONE).drop_ref("audit")
    assert "audit" not in lake.table(ONE).handle.refs
    assert strays(tmp_path) == set()


def test_the_first_rows_of_a_table_may_be_anothers(lake: Lake, tmp_path: Path) -> None:
    lake.create_table("shop.empty", SALES)
    with lake.transaction() as tx:
        tx.table("shop.empty").append(sales(1, 100))
        tx.table("shop.empty").append(sales(1, 101))
        lake.table("shop.empty").append(sales(1, 200))
    assert ids(lake.table("shop.empty")) == [100, 101, 200]
    assert stray_files(tmp_path, None, "shop.empty") == set()


def test_files_taken_in_are_taken_in_again(lake: Lake, tmp_path: Path) -> None:
    mine = tmp_path / "mine.parquet"
    pq.write_table(sales(3, 100), mine)
    with lake.transaction() as tx:
        tx.table(ONE).add_files(str(mine))
        tx.table(TWO).append(sales(1, 100))
        lake.table(ONE).append(sales(1, 200))
    assert ids(lake.table(ONE)) == [*range(8), 100, 101, 102, 200]
    assert strays(tmp_path) == set()


def test_a_branch_that_moved_is_not_moved_again(lake: Lake) -> None:
    table = lake.table(ONE)
    table.append(sales(1, 100))
    first = table.snapshots()[0].snapshot_id
    with pytest.raises(CommitConflictError, match="metadata change"), lake.transaction() as tx:
        tx.table(ONE).rollback_to(first)
        tx.table(ONE).append(sales(1, 300))
        lake.table(ONE).append(sales(1, 200))
    assert ids(table) == [*range(8), 100, 200]
    with lake.transaction() as tx:
        tx.table(ONE).rollback_to(first)
        tx.table(ONE).append(sales(1, 300))
    assert ids(table) == [*range(8), 300]
