"""Tables that were made anew or upgraded while a commit was on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowlake.commit.metadata import commit_metadata
from rowlake.commit.phases import Phase
from rowlake.errors import CommitConflictError
from rowlake.model.metadata_change import SetProperties
from tests.lakes import SALES, files_in, make_lake, sales
from tests.parts.compacting import compact
from tests.parts.failing import stray_files
from tests.parts.stopping import stopped_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

NAME = "shop.sales"
MARK, REWRITE = "merge-on-read", "copy-on-write"
AGAIN = "another writer dropped the table and made one of the same name"


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


def make(lake, version: str = "2"):
    properties = {"format-version": version, "commit.retry.min-wait-ms": "1"}
    made = lake.create_table(NAME, SALES, properties=properties)
    made.append(sales(20))
    return made


def interrupted(_: Any, other: Callable[[], Any]) -> AbstractContextManager[None]:
    """Run the other once, when the write inside the block has written its files."""
    return stopped_at(Phase.WRITTEN, other)


def make_anew(lake) -> None:
    lake.drop_table(NAME)
    lake.create_table(NAME, SALES, properties={"format-version": "2"})


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append(sales(3, 100)),
        lambda table: table.overwrite(sales(3, 100)),
        lambda table: table.upsert(sales(3, 18), ["id"]),
        lambda table: table.delete("id = 3"),
    ],
    ids=["append", "overwrite", "upsert", "delete"],
)
def test_nothing_lands_in_another_table_of_the_same_name(lake, monkeypatch, write):
    table = make(lake)
    there: set[str] = set()

    def other() -> None:
        make_anew(lake)
        there.update(files_in(table.location))

    with interrupted(monkeypatch, other), pytest.raises(CommitConflictError, match=AGAIN) as raised:
        write(table)
    assert not raised.value.retryable
    assert lake.table(NAME).snapshots() == []
    assert lake.table(NAME).arrow().num_rows == 0
    # What was written for it is gone; what the other table has is left alone.
    assert files_in(table.location) <= there


def test_metadata_changes_do_not_land_in_another_table_either(lake):
    table = make(lake)
    calls = []

    def change(handle: Any) -> Any:
        calls.append(handle)
        if len(calls) == 1:
            make_anew(lake)
        return handle.format.alter(handle, SetProperties({"owner": "me"}))

    with pytest.raises(CommitConflictError, match=AGAIN):
        commit_metadata(table.handle, "set properties", change)
    assert "owner" not in lake.table(NAME).properties


@pytest.mark.spec("Position Delete Files: none are added to tables of format version 3")
@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("mode", [MARK, REWRITE])
def test_an_upgrade_beside_a_change_of_rows_has_it_run_again(
    tmp_path, lake, monkeypatch, version, mode
):
    table = make(lake, version)

    def other() -> None:
        there = lake.table(NAME)
        there.set_properties({"format-version": "3"})
        there.append(sales(5, 100))

    if version == "1":
        mode = REWRITE
    with interrupted(monkeypatch, other):
        result = table.delete("id = 3", mode=mode, isolation="snapshot")
    assert (result.rows_deleted, table.format_version) == (1, 3)
    found = table.arrow(["id", "_row_id"])
    assert set(found["id"].to_pylist()) == set(range(20)) - {3} | set(range(100, 105))
    assert sorted(found["_row_id"].to_pylist()) == sorted(set(found["_row_id"].to_pylist()))
    formats = set(table.inspect("delete_files")["file_format"].to_pylist())
    assert formats == ({"PUFFIN"} if mode == MARK else set())
    assert stray_files(tmp_path, None, NAME) == set()


def test_rows_keep_the_ids_that_an_upgrade_gave_them(lake, monkeypatch):
    table = make(lake)
    ids: dict[int, int] = {}

    def other() -> None:
        there = lake.table(NAME)
        there.set_properties({"format-version": "3"})
        there.append(sales(5, 100))
        ids.update(row_ids(there))

    with interrupted(monkeypatch, other):
        table.upsert(sales(2, 3).set_column(1, "store", [[7, 7]]), ["id"], mode=REWRITE)
    assert row_ids(table) == ids
    assert table.arrow(["store"])["store"].to_pylist().count(7) == 2


def row_ids(table) -> dict[int, int]:
    found = table.arrow(["id", "_row_id"])
    return dict(zip(found["id"].to_pylist(), found["_row_id"].to_pylist(), strict=True))


def test_an_append_lands_in_an_upgraded_table(lake, monkeypatch):
    table = make(lake)
    upgrade = {"format-version": "3"}
    with interrupted(monkeypatch, lambda: lake.table(NAME).set_properties(upgrade)):
        table.append(sales(5, 100))
    assert table.format_version == 3
    assert table.arrow().num_rows == 25
    assert len(set(row_ids(table).values())) == 25


@pytest.mark.iceberg
def test_a_transaction_is_refused_where_its_table_was_upgraded(lake):
    make(lake)
    with (
        pytest.raises(CommitConflictError, match="upgraded to format version 3"),
        lake.transaction() as inside,
    ):
        table = inside.table(NAME)
        table.delete("id = 1", mode=MARK)
        table.delete("id = 2", mode=MARK)
        lake.table(NAME).set_properties({"format-version": "3"})
    assert lake.table(NAME).arrow().num_rows == 20


@pytest.mark.iceberg
def test_a_transaction_that_lost_to_a_compaction_is_told_that_rows_are_the_same(lake):
    make(lake, "3")
    with pytest.raises(CommitConflictError) as raised, lake.transaction() as inside:
        inside.table(NAME).delete("id = 1", mode=MARK)
        compact(lake.table(NAME))
    assert raised.value.same_rows
    assert lake.table(NAME).arrow().num_rows == 20
