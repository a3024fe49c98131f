"""Marks of other rows of one file both land; marks of the same row do not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.commit import deleted_by_value, rebase
from rowlake.commit.data import Commit
from rowlake.commit.loop import Refused
from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import CommitConflictError, StorageError
from rowlake.model.change import Change, Operation, Requirements
from rowlake.model.files import WRITTEN_FILES
from rowlake.model.outcome import Conflict, Landed
from rowlake.model.predicate import Leaf, Op
from rowlake.storage.files import Storage
from rowlake.verbs.write import WriteOptions, write_rows
from rowlake.write.position_deletes import PositionDeleteWriter
from tests.any_format import next_row_id
from tests.lakes import SALES, make_lake, sales
from tests.parts.failing import stray_files
from tests.parts.marking import delete_entries, files_of, live_deletes_of, marking
from tests.parts.stopping import stopped_at

pytestmark = pytest.mark.delta

NAME = "shop.sales"
PHASES = [Phase.WRITTEN, Phase.VALIDATED, Phase.PRODUCED]
ADDED, DELETED = 1, 2


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def table(lake, request):
    """A table of one data file with 100 rows."""
    return make(lake, request.param)


def make(lake, version: str, partition_by=(), **properties: str):
    given = {
        "format-version": version,
        "write.delete.mode": "merge-on-read",
        "commit.retry.min-wait-ms": "1",
        # What is refused shows as a conflict, and is not replanned.
        "rowlake.commit.replan": "false",
        **properties,
    }
    made = lake.create_table(NAME, SALES, partition_by=partition_by, properties=given)
    made.append(sales(100))
    return made


@pytest.fixture
def other(lake, table):
    return lake.table(NAME)


def ids(table, **at) -> set[int]:
    return set(table.arrow(["id"], **at)["id"].to_pylist())


def left(*gone: int) -> set[int]:
    return set(range(100)) - set(gone)


def no_stray(tmp_path) -> bool:
    return stray_files(tmp_path, None, NAME) == set()


@pytest.mark.not_delta("sequence numbers in metadata tables")
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.spec("Deletion Vectors: at most one deletion vector per data file")
def test_deletes_of_other_rows_of_one_file_both_land(tmp_path, table, other, monkeypatch, phase):
    with stopped_at(phase, lambda: other.delete("id = 7")):
        result = table.delete("id = 8 OR id = 9")
    assert (result.rows_deleted, result.retries) == (2, 1)
    assert ids(table) == left(7, 8, 9)
    assert list(live_deletes_of(table).values()) == [[3]]
    assert delete_entries(table) == [(ADDED, 3, 3, 3), (DELETED, 2, 2, 1)]
    head = table.snapshots()[-1]
    assert (head.operation, head.summary["total-position-deletes"]) == ("delete", "3")
    assert head.summary["added-position-deletes"] == "3"
    assert head.summary["removed-position-deletes"] == "1"
    assert head.summary["total-delete-files"] == "1"
    assert no_stray(tmp_path)


def test_rows_that_were_deleted_before_do_not_count_as_changed_by_both(
    tmp_path, table, other, monkeypatch
):
    table.delete("id < 5")
    with stopped_at(Phase.WRITTEN, lambda: other.delete("id = 7")):
        table.delete("id = 8")
    assert ids(table) == left(0, 1, 2, 3, 4, 7, 8)
    assert list(live_deletes_of(table).values()) == [[7]]
    assert no_stray(tmp_path)


def test_what_several_others_deleted_stays_deleted(tmp_path, lake, table, monkeypatch):
    def others() -> None:
        for number in (20, 21, 22):
            lake.table(NAME).delete(f"id = {number}")

    with stopped_at(Phase.WRITTEN, others):
        result = table.delete("id = 8")
    assert (ids(table), result.retries) == (left(8, 20, 21, 22), 1)
    assert list(live_deletes_of(table).values()) == [[4]]
    assert no_stray(tmp_path)


def test_a_writer_that_loses_three_times_merges_three_times(tmp_path, lake, table, monkeypatch):
    waiting = [30, 31, 32]

    def next_one(_: Any) -> None:
        if waiting:
            number = waiting.pop()
            lake.table(NAME).delete(f"id = {number}")

    with at_phase(Phase.PRODUCED, next_one):
        result = table.delete("id = 8")
    # Each of the others was itself overtaken by the next.
    assert result.retries >= 1
    assert ids(table) == left(8, 30, 31, 32)
    assert list(live_deletes_of(table).values()) == [[4]]
    assert no_stray(tmp_path)


def test_marks_that_were_merged_for_a_head_that_moved_on_are_removed(tmp_path, lake, table):
    others = [
        lambda number=number: lake.table(NAME).delete(f"id = {number}") for number in (30, 31)
    ]
    with stopped_at(Phase.PRODUCED, *others):
        result = table.delete("id = 8")
    assert result.retries == 2
    assert ids(table) == left(8, 30, 31)
    assert list(live_deletes_of(table).values()) == [[3]]
    assert no_stray(tmp_path)


@pytest.mark.parametrize("phase", PHASES)
def test_the_second_delete_of_a_row_is_refused_whole(tmp_path, table, other, monkeypatch, phase):
    landed = []
    with (
        stopped_at(phase, lambda: landed.append(other.delete("id = 7"))),
        pytest.raises(CommitConflictError) as raised,
    ):
        table.delete("id = 7 OR id = 8")
    assert raised.value.operation == "delete"
    assert raised.value.snapshot_id == landed[0].snapshot_id
    assert "(delete) changed 1 rows that it changes too" in raised.value.cause
    assert raised.value.files == tuple(files_of(table))
    assert raised.value.retryable
    assert ids(table) == left(7)
    assert no_stray(tmp_path)
    assert table.delete("id = 7 OR id = 8").rows_deleted == 1


def test_the_snapshot_that_changed_the_row_is_named_among_several(lake, table, monkeypatch):
    landed = []

    def others() -> None:
        landed.extend(lake.table(NAME).delete(f"id = {number}") for number in (20, 8, 21))

    with (
        stopped_at(Phase.WRITTEN, others),
        pytest.raises(CommitConflictError) as raised,
    ):
        table.delete("id = 8")
    assert raised.value.snapshot_id == landed[1].snapshot_id


def test_a_file_that_was_rewritten_or_removed_meanwhile_is_refused(
    tmp_path, table, other, monkeypatch
):
    for condition, mode in (("id = 7", "copy-on-write"), ("id >= 0", "auto")):
        with (
            stopped_at(Phase.WRITTEN, lambda c=condition, m=mode: other.delete(c, mode=m)),
            pytest.raises(CommitConflictError, match="removed 1 data files that it read"),
        ):
            table.delete("id = 8", isolation="snapshot")
        assert no_stray(tmp_path)
    assert ids(table) == set()


@pytest.mark.parametrize("condition", ["id = 8", "id >= 0"])
def test_a_rewrite_or_removal_of_a_file_that_got_marks_meanwhile_is_refused(
    tmp_path, table, other, monkeypatch, condition
):
    with (
        stopped_at(Phase.WRITTEN, lambda: other.delete("id = 7")),
        pytest.raises(CommitConflictError, match="added deletes for data files"),
    ):
        table.delete(condition, mode="copy-on-write")
    assert ids(table) == left(7)
    assert no_stray(tmp_path)


@pytest.mark.not_delta("branches")
def test_marks_on_a_branch_are_merged_with_those_of_the_branch(tmp_path, table, other, monkeypatch):
    table.create_branch("audit")

    def others() -> None:
        other.delete("id = 7", branch="audit")
        other.delete("id = 50")

    with stopped_at(Phase.WRITTEN, others):
        table.delete("id = 8", branch="audit")
    assert ids(table, ref="audit") == left(7, 8)
    assert ids(table) == left(50)
    assert no_stray(tmp_path)


def test_marks_of_untouched_files_stay_where_they_were_written(tmp_path, lake, monkeypatch):
    table = make(lake, "3", ["store"])
    with stopped_at(Phase.WRITTEN, lambda: lake.table(NAME).delete("id = 4")):
        table.delete("id < 4 OR id = 8")
    assert ids(table) == left(0, 1, 2, 3, 4, 8)
    found = table.inspect("delete_files")
    assert sorted(found["record_count"].to_pylist()) == [1, 1, 1, 3]
    # Three vectors are where they were written first; only the merged one is written again.
    locations = found["file_path"].to_pylist()
    assert sorted(locations.count(one) for one in set(locations)) == [1, 3]
    assert no_stray(tmp_path)


@pytest.mark.not_delta("deletes of whole partitions")
@pytest.mark.parametrize("theirs", ["file", "partition"])
def test_marks_of_whole_partitions_apply_beside_each_other(tmp_path, lake, theirs):
    table = make(lake, "2")
    table.append(sales(100, 100))
    first, second = files_of(table)
    ours = marking(table, {first: [5], second: [6]}, granularity="partition")
    marking(lake.table(NAME), {first: [1], second: [2]}, granularity=theirs).commit()
    committed = ours.commit()
    assert isinstance(committed.outcome, Landed)
    assert committed.change.added_deletes is ours.change.added_deletes
    assert lake.table(NAME).arrow().num_rows == 196
    assert no_stray(tmp_path)
    again = marking(lake.table(NAME), {first: [50], second: [60]}, granularity="partition")
    marking(lake.table(NAME), {first: [60, 61]}, granularity=theirs).commit()
    assert isinstance(again.commit().outcome, Landed)
    assert lake.table(NAME).arrow().num_rows == 192
    overlapping = marking(lake.table(NAME), {first: [70], second: [71]}, granularity="partition")
    marking(lake.table(NAME), {second: [71]}, granularity=theirs).commit()
    refused = overlapping.commit().outcome
    assert isinstance(refused, Refused)
    assert refused.files == (second,)
    assert lake.table(NAME).arrow().num_rows == 191


@pytest.mark.not_delta("deletes of whole partitions")
def test_marks_of_one_file_are_written_beside_those_of_a_partition(tmp_path, lake):
    table = make(lake, "2")
    table.append(sales(100, 100))
    first, second = files_of(table)
    ours = marking(table, {first: [5]})
    marking(lake.table(NAME), {first: [1], second: [2]}, granularity="partition").commit()
    assert isinstance(ours.commit().outcome, Landed)
    assert lake.table(NAME).arrow().num_rows == 197
    assert live_deletes_of(lake.table(NAME)) == {None: [2], first: [1]}
    assert no_stray(tmp_path)


def updating(table, gone: list[int], new: pa.Table, **needs):
    """Return a writer that has new versions of rows: marks, and data files."""

    view = table.handle.view(ref="main")
    added = write_rows(view, table._engine, new, WriteOptions()).files
    return marking(table, {files_of(table)[0]: gone}, added=added, **needs)


@pytest.mark.not_delta("tables without a first version")
def test_updates_of_other_rows_of_one_file_both_land(tmp_path, lake, table):
    ours = updating(table, [5], sales(1, 1005))
    theirs = updating(lake.table(NAME), [6], sales(1, 1006))
    assert isinstance(theirs.commit().outcome, Landed)
    committed = ours.commit()
    assert isinstance(committed.outcome, Landed)
    assert committed.retries == 1
    now = lake.table(NAME)
    assert ids(now) == left(5, 6) | {1005, 1006}
    assert [one.operation for one in now.snapshots()[1:]] == ["overwrite", "overwrite"]
    if now.format_version == 3:
        assert next_row_id(now) == 102
    assert no_stray(tmp_path)


def test_the_second_update_of_a_row_is_refused(tmp_path, lake, table):
    ours = updating(table, [5, 7], sales(2, 1000))
    updating(lake.table(NAME), [5, 6], sales(2, 2000)).commit()
    outcome = ours.commit().outcome
    assert isinstance(outcome, Refused)
    assert "(overwrite) changed 1 rows that it changes too" in outcome.cause
    assert ids(lake.table(NAME)) == left(5, 6) | {2000, 2001}
    ours.storage.delete(ours.change.added_deletes["location"].to_pylist())
    ours.storage.delete(ours.change.added_data["location"].to_pylist())
    assert no_stray(tmp_path)


def test_new_rows_of_the_filter_still_refuse_a_serializable_change(lake, table):
    needs = {
        "no_new_data": True,
        "conflict_detection_filter": Leaf(("id",), Op.LT, (10,)),
    }
    ours = updating(table, [5], sales(1, 5), **needs)
    updating(lake.table(NAME), [50], sales(1, 6)).commit()
    outcome = ours.commit().outcome
    assert isinstance(outcome, Refused)
    assert "added data files that may hold rows of its filter" in outcome.cause
    again = updating(lake.table(NAME), [5], sales(1, 5), **needs)
    updating(lake.table(NAME), [51], sales(1, 60)).commit()
    assert isinstance(again.commit().outcome, Landed)


def test_delete_files_that_were_compacted_meanwhile_are_not_removed_twice(tmp_path, lake, table):
    (file,) = files_of(table)
    table.delete("id < 3")
    ours = marking(table, {file: [8]})
    compacted = marking(lake.table(NAME), {file: []})
    compacted.change = _as_replace(compacted.change)
    assert isinstance(compacted.commit().outcome, Landed)
    assert isinstance(ours.commit().outcome, Landed)
    assert ids(lake.table(NAME)) == left(0, 1, 2, 8)
    assert live_deletes_of(lake.table(NAME)) == {file: [4]}
    assert no_stray(tmp_path)


def test_a_compaction_of_delete_files_takes_new_deletes_along(tmp_path, lake, table):
    (file,) = files_of(table)
    table.delete("id < 3")
    compacting = marking(lake.table(NAME), {file: []})
    compacting.change = _as_replace(compacting.change)
    table.delete("id = 8")
    assert isinstance(compacting.commit().outcome, Landed)
    assert ids(lake.table(NAME)) == left(0, 1, 2, 8)
    assert live_deletes_of(lake.table(NAME)) == {file: [4]}
    assert no_stray(tmp_path)


def _as_replace(change: Change) -> Change:
    from dataclasses import replace

    return replace(change, operation=Operation.REPLACE)


def equality_delete(table, store: int, key: int) -> Change:
    """Return a change that deletes rows of a partition by their id."""
    location = f"{table.location}/data/eq-{store}-{key}.parquet"
    field = pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"})
    Storage({}).open_output(location).close()
    pq.write_table(pa.table([pa.array([key])], schema=pa.schema([field])), location)
    row = dict.fromkeys(WRITTEN_FILES.names) | {
        "content": 2,
        "location": location,
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": [store.to_bytes(4, "little")],
        "record_count": 1,
        "file_size_in_bytes": len(Storage({}).read(location)),
        "equality_ids": [1],
    }
    return Change(Operation.DELETE, added_deletes=pa.Table.from_pylist([row], WRITTEN_FILES))


@pytest.mark.not_delta("equality deletes")
@pytest.mark.parametrize("version", ["2", "3"])
def test_equality_deletes_refuse_marks_of_the_same_rows_and_of_others_do_not(lake, version):
    table = make(lake, version, ["store"])
    (file,) = [one for one in files_of(table) if "store=1" in one]
    ours, again = (marking(table, {file: [number]}) for number in (3, 4))
    for store, key in ((2, 6), (1, 5)):
        there = lake.table(NAME)
        Commit(equality_delete(there, store, key), Storage({})).run(there.handle)
    assert isinstance(ours.commit().outcome, Landed)
    assert ids(lake.table(NAME)) == left(5, 6, 13)
    there = lake.table(NAME)
    Commit(equality_delete(there, 1, 17), Storage({})).run(there.handle)
    outcome = again.commit().outcome
    assert isinstance(outcome, Refused)
    assert "changed 1 rows that it changes too" in outcome.cause
    assert ids(lake.table(NAME)) == left(5, 6, 13, 17)


@pytest.mark.not_delta("equality deletes")
def test_equality_deletes_refuse_marks_of_a_file_too_large_to_look(lake, monkeypatch):
    monkeypatch.setattr(deleted_by_value, "MAX_BYTES", 0)
    table = make(lake, "3", ["store"])
    (file,) = [one for one in files_of(table) if "store=1" in one]
    ours, there = marking(table, {file: [3]}), lake.table(NAME)
    Commit(equality_delete(there, 1, 5), Storage({})).run(there.handle)
    outcome = ours.commit().outcome
    assert isinstance(outcome, Refused)
    assert "deleted rows by their values" in outcome.cause


def test_a_change_that_asks_for_nothing_is_not_rebased(lake, table):
    (file,) = files_of(table)
    ours = marking(table, {file: [5]})
    ours.change = Change(Operation.DELETE, added_deletes=ours.change.added_deletes)
    assert ours.change.requirements == Requirements()
    assert isinstance(ours.commit().outcome, Landed)


@pytest.mark.iceberg
def test_a_starting_snapshot_that_expired_refuses(lake, table):
    (file,) = files_of(table)
    ours = marking(table, {file: [5]})
    there = lake.table(NAME)
    there.delete("id = 7")
    there.evolve().maintenance.expire_snapshots().by_id(
        int(str(ours.change.requirements.starting_snapshot_id))
    ).commit()
    outcome = ours.commit().outcome
    assert isinstance(outcome, Refused)
    assert "expired" in outcome.cause


# ---------------------------------------------------------------------- patience


def test_races_lost_to_others_do_not_use_up_the_retries(lake, table, monkeypatch):
    table.set_properties({"commit.retry.num-retries": "1", "commit.retry.min-wait-ms": "1"})
    others = [lambda n=number: lake.table(NAME).delete(f"id = {n}") for number in range(40, 46)]
    with stopped_at(Phase.PRODUCED, *others):
        result = table.delete("id = 8")
    assert result.retries == 6
    assert ids(table) == left(8, *range(40, 46))


def test_without_retries_a_lost_race_is_the_end(tmp_path, lake, table, monkeypatch):
    table.set_properties({"commit.retry.num-retries": "0"})
    with (
        stopped_at(Phase.WRITTEN, lambda: lake.table(NAME).delete("id = 7")),
        pytest.raises(CommitConflictError, match="1 attempts lost") as raised,
    ):
        table.delete("id = 8")
    assert not raised.value.retryable
    assert no_stray(tmp_path)


def test_time_is_up_for_a_writer_that_only_loses(tmp_path, lake, table, monkeypatch):
    table.set_properties({"commit.retry.total-timeout-ms": "0"})
    with (
        stopped_at(Phase.WRITTEN, lambda: lake.table(NAME).delete("id = 7")),
        pytest.raises(CommitConflictError, match="1 attempts lost"),
    ):
        table.delete("id = 8")
    assert no_stray(tmp_path)


# ---------------------------------------------------------------------- faults


@pytest.mark.parametrize("place", ["write", "prepare_again", "produce"])
def test_a_failure_while_marks_are_merged_leaves_nothing(tmp_path, lake, table, monkeypatch, place):
    def fail(*_: Any, **__: Any) -> Any:
        raise StorageError("s3://b/x", "unplugged")

    def other() -> None:
        lake.table(NAME).delete("id = 7")
        owner = PositionDeleteWriter if place == "write" else type(table.handle.format)
        monkeypatch.setattr(owner, place, fail)

    with (
        stopped_at(Phase.PRODUCED, other),
        pytest.raises(StorageError, match="unplugged"),
    ):
        table.delete("id = 8")
    assert ids(lake.table(NAME)) == left(7)
    assert no_stray(tmp_path)


def test_a_merge_that_lost_and_then_lost_for_good_leaves_nothing(
    tmp_path, lake, table, monkeypatch
):
    table.set_properties({"commit.retry.num-retries": "2", "commit.retry.min-wait-ms": "1"})
    its_format = type(table.handle.format)
    swap, calls = its_format.swap, []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == 1:
            with monkeypatch.context() as patch:
                patch.setattr(its_format, "swap", swap)
                lake.table(NAME).delete("id = 7")
        return Conflict("taken")

    monkeypatch.setattr(its_format, "swap", refuse)
    with pytest.raises(CommitConflictError, match="attempts lost"):
        table.delete("id = 8")
    assert ids(lake.table(NAME)) == left(7)
    assert no_stray(tmp_path)


def test_only_what_changed_is_read_again(lake, table, monkeypatch):
    calls: list[str] = []
    read = rebase.live_deletes

    def watched(snapshot: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(snapshot.operation)
        return read(snapshot, *args, **kwargs)

    monkeypatch.setattr(rebase, "live_deletes", watched)
    table.delete("id = 1")
    assert calls == []
    with stopped_at(Phase.WRITTEN, lambda: lake.table(NAME).append(sales(1, 500))):
        table.delete("id = 2", isolation="snapshot")
    assert calls == ["append"]
    assert ids(table) == left(1, 2) | {500}
