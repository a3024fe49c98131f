"""Batches of a stream land once, whatever happens to the table between a batch and its replay."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from rowlake.commit.phases import Phase
from rowlake.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidStatementError,
)
from rowlake.model.app_batch import APP_ID, BATCH_ID, AppBatch, stream_property
from rowlake.verbs.write import is_done
from tests.lakes import SALES, files_in, make_lake, sales
from tests.parts.stopping import meanwhile, stopped_at

NAME, APP = "shop.sales", "orders.v1"


pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        opened.create_table(NAME, SALES, properties={"commit.retry.min-wait-ms": "1"})
        opened.table(NAME).append(sales(1, 1000))
        yield opened


@pytest.fixture
def table(lake):
    return lake.table(NAME)


def land(table, batch_id, *, branch="main", **kwargs):
    """Append three rows as a batch."""
    batch = AppBatch(APP, batch_id, **kwargs)
    return table.append(sales(3, 10 * batch_id), app_batch=batch, branch=branch)


def ids(table, ref=None):
    return sorted(table.arrow(["id"], ref=ref)["id"].to_pylist())


def expire_all_but_the_head(table):
    time.sleep(0.002)
    return table.expire_snapshots(older_than=int(time.time() * 1000), retain_last=1)


def test_a_replayed_batch_is_skipped(table):
    first = land(table, 0)
    files, snapshots = files_in(table.location), table.snapshots()
    again = land(table, 0)
    assert (first.skipped, again.skipped, again.snapshot_id) == (False, True, None)
    assert ids(table) == [0, 1, 2, 1000]
    assert (files_in(table.location), table.snapshots()) == (files, snapshots)


@pytest.mark.not_delta("properties of batches")
def test_a_batch_is_in_the_summary_of_its_snapshot_and_in_a_property(table):
    landed = land(table, 7)
    summary = table.handle.snapshot(landed.snapshot_id).summary
    assert (summary[APP_ID], summary[BATCH_ID]) == (APP, "7")
    assert str(landed.snapshot_id) in table.properties[stream_property(APP)]


def test_batches_of_other_apps_are_other_batches(table):
    land(table, 0)
    table.append(sales(1, 50), app_batch=AppBatch("orders", 0))
    assert ids(table) == [0, 1, 2, 50, 1000]


def test_an_older_batch_is_skipped_too(table):
    land(table, 3)
    assert land(table, 2).skipped
    assert not land(table, 4).skipped


@pytest.mark.parametrize(
    "write",
    [
        lambda t, b: t.append([], app_batch=b),
        lambda t, b: t.upsert(sales(2, 1000), ["id"], app_batch=b),
        lambda t, b: t.upsert(sales(2), ["id"], deletes="equality", app_batch=b),
        lambda t, b: t.overwrite(sales(2), app_batch=b),
        lambda t, b: t.delete("id = 77", app_batch=b),
        lambda t, b: t.truncate(app_batch=b),
    ],
    ids=["empty", "upsert", "equality", "overwrite", "delete", "truncate"],
)
def test_every_write_marks_its_batch_and_is_skipped_when_replayed(table, write):
    first = write(table, AppBatch(APP, 0))
    assert first.snapshot_id == table.snapshots()[-1].snapshot_id
    rows = ids(table)
    assert write(table, AppBatch(APP, 0)).skipped
    assert ids(table) == rows


def test_a_batch_that_another_machine_landed_meanwhile_is_skipped_and_its_files_go(lake, table):
    known = []

    def other() -> None:
        land(lake.table(NAME), 0)
        known.append(files_in(table.location))

    with stopped_at(Phase.PRODUCED, other):
        assert land(table, 0).skipped
    assert ids(table) == [0, 1, 2, 1000]
    left = files_in(table.location) - known[0]
    assert not [one for one in left if one.endswith(".parquet")]


@pytest.mark.not_delta("rollbacks")
def test_a_batch_is_written_again_after_a_rollback_to_before_it(table):
    land(table, 0)
    before = table.snapshots()[-1].snapshot_id
    land(table, 1)
    land(table, 2)
    table.rollback_to(before)
    assert land(table, 0).skipped
    assert [land(table, number).skipped for number in (1, 2)] == [False, False]
    assert ids(table) == [0, 1, 2, 10, 11, 12, 20, 21, 22, 1000]


def test_a_batch_stays_known_after_compaction(table):
    land(table, 0)
    land(table, 1)
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert land(table, 1).skipped


@pytest.mark.not_delta("versions that expire")
def test_a_batch_stays_known_after_its_snapshot_expired(table):
    land(table, 0)
    table.append(sales(1, 2000))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    expire_all_but_the_head(table)
    assert len(table.snapshots()) == 1
    assert land(table, 0).skipped
    assert not land(table, 1).skipped


@pytest.mark.not_delta("rollbacks")
def test_a_batch_that_a_rollback_took_back_is_not_known_after_expiry(table):
    before = table.snapshots()[-1].snapshot_id
    land(table, 0)
    table.rollback_to(before)
    table.append(sales(1, 2000))
    table.append(sales(1, 2001))
    expire_all_but_the_head(table)
    assert not land(table, 0).skipped
    assert ids(table) == [0, 1, 2, 1000, 2000, 2001]


@pytest.mark.not_delta("rollbacks")
def test_an_expired_batch_is_known_after_a_rollback_to_the_one_after_it(table):
    for number in (0, 1):
        land(table, number)
    kept = land(table, 2).snapshot_id
    table.append(sales(1, 2000))
    land(table, 3)
    gone = [one.snapshot_id for one in table.snapshots()[:3]]
    table.expire_snapshots(snapshot_ids=gone)
    table.rollback_to(kept)
    assert [land(table, number).skipped for number in (1, 2, 3)] == [True, True, False]


@pytest.mark.not_delta("branches")
def test_branches_know_their_own_batches(table):
    land(table, 0)
    table.create_branch("audit")
    assert land(table, 0, branch="audit").skipped
    land(table, 1, branch="audit")
    assert land(table, 1, branch="audit").skipped
    assert ids(table) == [0, 1, 2, 1000]
    assert not land(table, 1).skipped
    assert ids(table) == ids(table, "audit")


@pytest.mark.not_delta("branches")
def test_a_batch_of_a_branch_is_known_after_a_fast_forward(table):
    table.create_branch("audit")
    land(table, 0, branch="audit")
    table.fast_forward("main", "audit")
    assert land(table, 0).skipped


@pytest.mark.not_delta("branches")
def test_a_cherry_picked_batch_is_known(table):
    table.create_branch("audit")
    picked = land(table, 0, branch="audit").snapshot_id
    table.append(sales(1, 2000))
    table.cherry_pick(picked)
    assert land(table, 0).skipped
    assert ids(table) == [0, 1, 2, 1000, 2000]


@pytest.mark.not_delta("properties of batches")
def test_unsetting_the_property_forgets_an_app(table):
    land(table, 0)
    table.unset_properties([stream_property(APP)])
    assert not land(table, 0).skipped


def test_a_run_skips_what_an_earlier_run_landed_last(table):
    land(table, 4, run_id="one")
    assert land(table, 4, run_id="two", began_after=4).skipped
    assert not land(table, 5, run_id="two", began_after=4).skipped


def test_of_two_running_queries_with_one_app_id_one_is_stopped(lake, table):
    land(table, 4, run_id="one")
    land(lake.table(NAME), 5, run_id="two", began_after=4)
    with pytest.raises(CommitConflictError, match="another query writes to it with app id") as told:
        land(table, 5, run_id="one", began_after=3)
    assert not told.value.retryable
    assert ids(table) == [40, 41, 42, 50, 51, 52, 1000]


def test_a_query_that_loses_the_swap_to_its_own_app_id_is_stopped(lake, table):
    with (
        meanwhile(lambda: land(lake.table(NAME), 0, run_id="two")),
        pytest.raises(CommitConflictError, match=r"with app id orders\.v1: run two landed batch 0"),
    ):
        land(table, 0, run_id="one")
    assert ids(table) == [0, 1, 2, 1000]


def test_a_query_whose_checkpoint_was_lost_is_stopped(table):
    land(table, 4, run_id="one")
    with pytest.raises(CommitConflictError, match="its checkpoint is new or older than the table"):
        land(table, 0, run_id="two", began_after=4)


@pytest.mark.not_delta("rollbacks")
def test_a_run_goes_on_after_a_rollback(table):
    land(table, 3, run_id="zero")
    before = table.snapshots()[-1].snapshot_id
    land(table, 4, run_id="one", began_after=3)
    table.rollback_to(before)
    assert not land(table, 4, run_id="one", began_after=3).skipped


@pytest.mark.not_delta("staged snapshots")
def test_a_staged_batch_is_refused(table):
    batch = AppBatch(APP, 0)
    handle, options = table.for_write({"app_batch": batch})
    with pytest.raises(InvalidStatementError, match=r"Cannot stage batch 0 of orders\.v1"):
        is_done(handle, replace(options, stage_only=True), "append")


@pytest.mark.parametrize("app_id, batch_id", [("", 0), ("x" * 201, 0), ("x", -1), ("x", "1")])
def test_what_no_mark_can_hold_is_refused(app_id, batch_id):
    with pytest.raises(InvalidStatementError):
        AppBatch(app_id, batch_id)


@pytest.mark.not_delta("properties of batches")
def test_a_damaged_property_is_named(table):
    land(table, 0)
    table.set_properties({stream_property(APP): "[1]"})
    table.rewrite_data_files(options={"rewrite-all": "true"})
    with pytest.raises(CorruptTableError, match=r"rowlake\.stream\.orders\.v1"):
        land(table, 1)
