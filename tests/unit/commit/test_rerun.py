"""Operations that lost to another are planned anew, where that can help."""

from __future__ import annotations

import pytest

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import CommitConflictError
from tests.lakes import SALES, make_lake, sales

NAME = "shop.sales"


pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        opened.create_table(NAME, SALES, properties={"commit.retry.min-wait-ms": "1"})
        opened.table(NAME).append(sales(10))
        yield opened


def losing(times: int, *, retryable: bool = True, seen: list | None = None):
    """Return an operation that conflicts so many times."""
    left = [times]

    def run(handle) -> str:
        if seen is not None:
            seen.append(handle.current_snapshot_id)
        if left[0]:
            left[0] -= 1
            raise CommitConflictError("merge", NAME, "overtaken", retryable=retryable)
        return "landed"

    return run


def test_an_operation_is_run_until_it_lands(lake):
    assert rerun_on_conflict(lake.table(NAME).handle, losing(7)) == "landed"


def test_each_run_sees_the_newest_head(lake):
    seen: list[int] = []
    run = losing(1, seen=seen)

    def overtaken(handle) -> str:
        if not seen:
            lake.table(NAME).append(sales(1, 50))
        return run(handle)

    assert rerun_on_conflict(lake.table(NAME).handle, overtaken) == "landed"
    assert seen == [one.snapshot_id for one in lake.table(NAME).snapshots()][-2:]


def test_attempts_are_counted(lake):
    seen: list[int] = []
    with pytest.raises(CommitConflictError, match="overtaken"):
        rerun_on_conflict(lake.table(NAME).handle, losing(9, seen=seen), attempts=3)
    assert len(seen) == 3


def test_what_cannot_help_is_not_tried(lake):
    seen: list[int] = []
    with pytest.raises(CommitConflictError):
        rerun_on_conflict(lake.table(NAME).handle, losing(1, retryable=False, seen=seen))
    assert len(seen) == 1


def test_a_table_without_retries_is_tried_once(lake):
    lake.table(NAME).set_properties({"commit.retry.num-retries": "0"})
    seen: list[int] = []
    with pytest.raises(CommitConflictError):
        rerun_on_conflict(lake.table(NAME).handle, losing(1, seen=seen))
    assert len(seen) == 1


@pytest.mark.not_delta("names in the catalog of this suite")
def test_a_table_that_was_made_again_under_its_name_is_told_as_such(lake):
    handle = lake.table(NAME).handle
    lake.drop_table(NAME)
    lake.create_table(NAME, SALES)
    with pytest.raises(CommitConflictError, match="dropped the table") as raised:
        rerun_on_conflict(handle, losing(1))
    assert not raised.value.retryable
