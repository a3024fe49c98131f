"""rewrite_manifests: the same entries, clustered, in as few manifests as the target size allows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowlake.commit.phases import Phase
from rowlake.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from rowlake.iceberg.format import IcebergFormat
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.model.outcome import Conflict, Unknown
from rowlake.storage.files import Storage
from tests.lakes import SALES, files_in, rows_of, sales
from tests.parts.failing import stray_files
from tests.parts.stopping import stopped_at
from tests.unit.sql.lake_without_spark import lake_without_spark

pytestmark = pytest.mark.iceberg

NAME = "shop.sales"
KEPT = ["snapshot_id", "sequence_number", "file_sequence_number"]


@pytest.fixture
def lake(tmp_path):
    opened = lake_without_spark(tmp_path)
    opened.create_namespace("shop")
    yield opened
    opened.close()


def created(lake, version="2", partition_by=("store",), **properties):
    given = {"format-version": version, "commit.retry.min-wait-ms": "1", **properties}
    given.setdefault("commit.manifest-merge.enabled", "false")
    return lake.create_table(NAME, SALES, partition_by=list(partition_by), properties=given)


def filled(lake, version="2", times=5, **rest):
    table = created(lake, version, **rest)
    for number in range(times):
        table.append(sales(8, first=8 * number))
    return table


def listed(table) -> pa.Table:
    snapshot = table.handle.metadata.current_snapshot()
    return read_manifest_list(snapshot.manifest_list, Storage({}))


def entries(table) -> Counter:
    """Count what must not change: (path, ids, both sequence numbers, first row id) per entry."""
    found = table.inspect("entries")
    live = found.filter(pc.less(found["status"], 2))
    files = live["data_file"].combine_chunks()
    columns = [files.field("file_path"), files.field("first_row_id")]
    columns += [files.field("content_offset"), *(live[name] for name in KEPT)]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


def statuses(table) -> set[int]:
    return set(table.inspect("entries")["status"].to_pylist())


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_entries_keep_all_that_they_say_in_one_manifest(lake, version, tmp_path):
    table = filled(lake, version)
    rows, before = rows_of(table.arrow()), entries(table)
    next_row_id = getattr(table.handle.metadata, "next_row_id", None)

    report = table.rewrite_manifests()

    assert (report.rewritten_manifests_count, report.added_manifests_count) == (5, 1)
    assert " and 2 more" in str(report)
    assert report.entries_processed == sum(before.values())
    assert entries(table) == before
    assert statuses(table) == {0}
    assert rows_of(table.arrow()) == rows
    head = table.snapshots()[-1]
    assert (head.snapshot_id, head.operation) == (report.snapshot_id, "replace")
    said = {key: head.summary[key] for key in head.summary if key.startswith(("man", "ent"))}
    assert said == {
        "manifests-created": "1",
        "manifests-kept": "0",
        "manifests-replaced": "5",
        "entries-processed": str(sum(before.values())),
    }
    assert head.summary["total-records"] == "40"
    assert head.summary["changed-partition-count"] == "0"
    assert not stray_files(tmp_path, None, NAME)
    if next_row_id is not None:
        assert table.handle.metadata.next_row_id >= next_row_id
        table.append(sales(4, first=100))
        ids = table.arrow(columns=["_row_id"])["_row_id"].to_pylist()
        assert len(set(ids)) == 44


def test_nothing_to_do_commits_nothing(lake):
    table = filled(lake)
    assert table.rewrite_manifests().snapshot_id is not None
    location = table.handle.metadata_location
    files = files_in(table.location)
    report = table.rewrite_manifests()
    assert (report.rewritten_manifests_count, report.added_manifests_count) == (0, 0)
    assert report.snapshot_id is None
    assert (table.handle.metadata_location, files_in(table.location)) == (location, files)


def test_a_table_without_snapshots_has_none_to_rewrite(lake):
    report = created(lake).rewrite_manifests()
    assert report.to_dict()["rewritten_manifests_count"] == 0
    assert report.snapshot_id is None


@pytest.mark.parametrize("version", ["2", "3"])
def test_manifests_of_deletes_are_rewritten_too(lake, version):
    table = filled(lake, version)
    for number in (1, 9, 17):
        table.delete(f"id = {number}", mode="merge-on-read")
    rows, before = rows_of(table.arrow()), entries(table)
    content = Counter(listed(table)["content"].to_pylist())
    assert content == {0: 5, 1: 3}

    report = table.rewrite_manifests()

    assert (report.rewritten_manifests_count, report.added_manifests_count) == (8, 2)
    assert Counter(listed(table)["content"].to_pylist()) == {0: 1, 1: 1}
    assert (rows_of(table.arrow()), entries(table)) == (rows, before)


def test_a_small_target_gives_manifests_of_neighbouring_partitions(lake):
    table = created(lake, **{"commit.manifest.target-size-bytes": "6000"})
    for number in range(30):
        table.append(sales(64, first=64 * number))
    assert spans(table) == [(0, 3)] * 30
    before = entries(table)

    report = table.rewrite_manifests()

    assert 2 <= report.added_manifests_count < 30
    found = sorted(spans(table))
    assert all(left[1] <= right[0] for left, right in pairwise(found))
    assert entries(table) == before
    assert table.rewrite_manifests().snapshot_id is None


def test_one_large_manifest_becomes_several_of_the_target_size(lake):
    table = created(lake)
    for number in range(30):
        table.append(sales(64, first=64 * number))
    table.rewrite_manifests()
    (size,) = listed(table)["manifest_length"].to_pylist()
    before = entries(table)
    table.set_properties({"commit.manifest.target-size-bytes": str(-(-size // 3))})

    report = table.rewrite_manifests()

    assert (report.rewritten_manifests_count, report.added_manifests_count) == (1, 3)
    assert entries(table) == before
    assert table.rewrite_manifests().snapshot_id is None


def spans(table) -> list[tuple[int, int]]:
    bounds = [row["partitions"][0] for row in listed(table).to_pylist()]
    return [
        (int.from_bytes(one["lower_bound"], "little"), int.from_bytes(one["upper_bound"], "little"))
        for one in bounds
    ]


def test_manifests_are_clustered_by_the_fields_that_are_named(lake):
    properties = {"commit.manifest.target-size-bytes": "6000"}
    table = created(lake, partition_by=("store", "bucket(4, id)"), **properties)
    for number in range(12):
        table.append(sales(64, first=64 * number))
    report = table.rewrite_manifests(sort_by=["id_bucket"])
    assert report.added_manifests_count > 1
    buckets = sorted(
        tuple(
            int.from_bytes(row["partitions"][1][end], "little")
            for end in ("lower_bound", "upper_bound")
        )
        for row in listed(table).to_pylist()
    )
    assert all(left[1] <= right[0] for left, right in pairwise(buckets))
    assert table.rewrite_manifests(sort_by=["id_bucket"]).snapshot_id is None
    assert table.rewrite_manifests().snapshot_id is not None


def test_only_manifests_of_the_spec_are_rewritten(lake):
    table = filled(lake, times=3)
    lake.sql(f"ALTER TABLE {NAME} ADD PARTITION FIELD bucket(2, id)")
    for number in range(3, 6):
        table.append(sales(8, first=8 * number))
    rows, before = rows_of(table.arrow()), entries(table)

    newest = table.rewrite_manifests()
    assert (newest.rewritten_manifests_count, newest.added_manifests_count) == (3, 1)
    assert table.snapshots()[-1].summary["manifests-kept"] == "3"
    oldest = table.rewrite_manifests(spec_id=0)
    assert (oldest.rewritten_manifests_count, oldest.added_manifests_count) == (3, 1)
    assert (rows_of(table.arrow()), entries(table)) == (rows, before)
    assert Counter(listed(table)["partition_spec_id"].to_pylist()) == {0: 1, 1: 1}


def test_removed_files_are_not_carried_on(lake):
    table = filled(lake)
    table.delete("store = 1")
    assert 2 in statuses(table)
    before = entries(table)
    table.rewrite_manifests()
    assert (entries(table), statuses(table)) == (before, {0})


def test_unpartitioned_tables_have_their_manifests_joined(lake):
    table = filled(lake, partition_by=())
    before = entries(table)
    assert table.rewrite_manifests().added_manifests_count == 1
    assert entries(table) == before


@pytest.mark.parametrize("column", ["sold_on", "amount", "note"])
def test_partitions_of_any_type_are_sorted_nulls_first(lake, column):
    table = filled(lake, partition_by=(column,), times=3)
    before = entries(table)
    table.rewrite_manifests()
    assert entries(table) == before
    found = table.inspect("entries")["data_file"].combine_chunks().field("partition")
    values = found.field(0).to_pylist()
    known = [value for value in values if value is not None]
    assert values == [None] * (len(values) - len(known)) + sorted(known)


def test_a_branch_that_is_dropped_meanwhile_is_a_conflict(lake, tmp_path):
    table = filled(lake)
    table.create_branch("audit")
    with (
        stopped_at(Phase.PRODUCED, lambda: lake.table(NAME).drop_ref("audit")),
        pytest.raises(CommitConflictError, match="branch audit was dropped"),
    ):
        table.rewrite_manifests(branch="audit")
    assert stray_files(tmp_path, None, NAME) == set()


def test_a_branch_has_its_own_manifests_rewritten(lake):
    table = filled(lake, times=2)
    table.create_branch("audit")
    table.append(sales(8, first=100), branch="audit")
    main = table.handle.metadata.refs["main"].snapshot_id
    report = table.rewrite_manifests(branch="audit")
    assert (report.rewritten_manifests_count, report.added_manifests_count) == (3, 1)
    refs = table.handle.metadata.refs
    assert (refs["main"].snapshot_id, refs["audit"].snapshot_id) == (main, report.snapshot_id)
    with pytest.raises(InvalidStatementError, match="no branch or tag nowhere"):
        table.rewrite_manifests(branch="nowhere")


def test_a_dry_run_says_what_the_real_run_does_and_writes_nothing(lake):
    table = filled(lake)
    table.delete("id = 1", mode="merge-on-read")
    location, files = table.handle.metadata_location, files_in(table.location)
    planned = table.rewrite_manifests(dry_run=True)
    assert (table.handle.metadata_location, files_in(table.location)) == (location, files)
    done = table.rewrite_manifests()
    same = ("rewritten_manifests_count", "added_manifests_count", "entries_processed")
    assert [getattr(planned, name) for name in same] == [getattr(done, name) for name in same]
    assert planned.rewritten_manifests == done.rewritten_manifests
    assert (planned.dry_run, planned.snapshot_id) == (True, None)


@pytest.mark.parametrize("version", ["2", "3"])
def test_what_others_add_meanwhile_is_kept(lake, version, tmp_path):
    table = filled(lake, version)
    with stopped_at(Phase.PRODUCED, lambda: lake.table(NAME).append(sales(8, first=100))):
        report = table.rewrite_manifests()
    assert (report.rewritten_manifests_count, report.added_manifests_count) == (5, 1)
    assert report.retries == 1
    assert listed(table).num_rows == 2
    assert table.arrow().num_rows == 48
    assert not stray_files(tmp_path, None, NAME)
    if version == "3":
        ids = table.arrow(columns=["_row_id"])["_row_id"].to_pylist()
        assert len(set(ids)) == 48


def test_manifests_that_others_replaced_are_rewritten_from_what_is_there(lake, tmp_path):
    table = filled(lake)
    removed = "store = 1"
    with stopped_at(Phase.PRODUCED, lambda: lake.table(NAME).delete(removed)):
        report = table.rewrite_manifests()
    assert report.retries == 1
    assert listed(table).num_rows == 1
    assert table.arrow().num_rows == 30
    assert set(table.arrow()["store"].to_pylist()) == {0, 2, 3}
    assert not stray_files(tmp_path, None, NAME)


def test_a_commit_that_never_lands_leaves_nothing(lake, monkeypatch):
    table = filled(lake, **{"commit.retry.num-retries": "1"})
    location, files = table.handle.metadata_location, files_in(table.location)
    monkeypatch.setattr(IcebergFormat, "swap", lambda *_, **__: Conflict("no"))
    with pytest.raises(CommitConflictError, match="rewrite_manifests"):
        table.rewrite_manifests()
    assert (table.handle.metadata_location, files_in(table.location)) == (location, files)


def test_an_unknown_outcome_leaves_everything(lake, monkeypatch):
    table = filled(lake)
    files = files_in(table.location)
    monkeypatch.setattr(IcebergFormat, "swap", lambda *_, **__: Unknown("504"))
    with pytest.raises(CommitStateUnknownError):
        table.rewrite_manifests()
    assert len(files_in(table.location) - files) == 2


def test_wrong_arguments_are_told(lake):
    table = filled(lake, times=2)
    with pytest.raises(InvalidStatementError, match="no partition spec 7; it has 0"):
        table.rewrite_manifests(spec_id=7)
    with pytest.raises(InvalidStatementError, match="store"):
        table.rewrite_manifests(sort_by=["shop"])
    with pytest.raises(InvalidStatementError, match="must be a list"):
        table.rewrite_manifests(sort_by=[])
    with (
        pytest.raises(UnsupportedFeatureError, match="rewrite_manifests"),
        lake.transaction() as tx,
    ):
        tx.table(NAME).rewrite_manifests()


def test_call_takes_icebergs_arguments(lake):
    filled(lake)
    found = lake.sql(
        f"CALL system.rewrite_manifests(table => '{NAME}', use_caching => true, spec_id => 0)"
    )
    assert found.column_names == ["rewritten_manifests_count", "added_manifests_count"]
    assert found.to_pylist() == [{"rewritten_manifests_count": 5, "added_manifests_count": 1}]
    with pytest.raises(InvalidStatementError, match="sort_by"):
        lake.sql(f"CALL system.rewrite_manifests(table => '{NAME}', sort_by => 'store')")
