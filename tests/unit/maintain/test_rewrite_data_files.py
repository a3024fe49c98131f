"""Compaction without Spark: which files, what comes out, and what others did meanwhile."""

from __future__ import annotations

import random
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.transforms import BucketTransform, IdentityTransform

from rowlake.commit import compaction_rebase
from rowlake.commit.phases import Phase
from rowlake.errors import (
    CommitConflictError,
    EngineError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from rowlake.model.outcome import Conflict
from tests.any_format import changing, read_by_others
from tests.lakes import files_in, make_lake, rows_of
from tests.parts.failing import stray_files
from tests.parts.stopping import meanwhile, stopped_at

pytestmark = pytest.mark.delta

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.string())])
ALL = {"rewrite-all": "true"}


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["1", "2", "3"], ids="v{}".format)
def version(request):
    return request.param


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "p": [i % 2 for i in ids], "v": [f"v{i}" for i in ids]}, COLUMNS
    )


def create(lake, version="2", partition_by=(), files=6, **properties):
    table = lake.create_table(
        "shop.t",
        COLUMNS,
        partition_by=partition_by,
        properties={"format-version": version, **properties},
    )
    for number in range(files):
        table.append(rows(*range(number * 10, number * 10 + 10)))
    return table


def read(table, **at) -> list[tuple]:
    """Return the rows, and see that another library reads the same."""
    ours = rows_of(table.arrow(**at))
    if not at:
        for found in read_by_others(table):
            assert rows_of(found) == ours
    return ours


def ids(table) -> list[int]:
    return sorted(table.arrow()["id"].to_pylist())


def test_small_files_become_one(lake, version):
    table = create(lake, version)
    before = read(table)
    report = table.rewrite_data_files()
    assert (report.rewritten_data_files_count, report.added_data_files_count) == (6, 1)
    assert read(table) == before
    newest = table.snapshots()[-1]
    assert newest.operation == "replace"
    assert len(table.files()) == 1


def test_a_second_run_finds_nothing(lake, version):
    table = create(lake, version)
    table.rewrite_data_files()
    count = len(table.snapshots())
    report = table.rewrite_data_files()
    assert report.rewritten_data_files_count == 0
    assert len(table.snapshots()) == count


@pytest.mark.parametrize("share", [0.3, 0.75, 1.3, 2.2, 5.5])
def test_files_of_any_size_come_out_fine(lake, share):
    table = create(lake, files=0)
    for number in range(8):
        held = rows(*range(number * 5000, number * 5000 + 5000))
        texts = [random.randbytes(16).hex() for _ in range(len(held))]
        table.append(held.set_column(2, "v", pa.array(texts)))
    table.delete("id < 100", mode="merge-on-read")
    before = read(table)
    size = table.files()["file_size_in_bytes"][0].as_py()
    options = {"target-file-size-bytes": str(int(size * share)), "delete-ratio-threshold": "1"}
    foreseen = table.rewrite_data_files(options={**options, **ALL}, dry_run=True)
    done = table.rewrite_data_files(options={**options, **ALL})
    assert foreseen.added_data_files_count == done.added_data_files_count
    assert read(table) == before
    sizes = table.files()["file_size_in_bytes"].to_pylist()
    assert max(sizes) <= 1.8 * size * share
    assert table.rewrite_data_files(options=options).rewritten_data_files_count == 0


def test_four_small_files_are_too_few_unless_asked(lake):
    table = create(lake, files=4)
    assert table.rewrite_data_files().rewritten_data_files_count == 0
    report = table.rewrite_data_files(options={"min-input-files": "2"})
    assert report.rewritten_data_files_count == 4


def test_a_dry_run_says_what_the_run_does(lake, version):
    table = create(lake, version)
    count = len(table.snapshots())
    foreseen = table.rewrite_data_files(dry_run=True)
    assert len(table.snapshots()) == count
    done = table.rewrite_data_files()
    assert sorted(foreseen.files) == sorted(done.files)
    assert foreseen.rewritten_bytes_count == done.rewritten_bytes_count
    assert foreseen.added_data_files_count == done.added_data_files_count
    assert foreseen.dry_run and not done.dry_run


def test_partitions_stay_apart(lake, version):
    table = create(lake, version, partition_by=["p"])
    before = read(table)
    report = table.rewrite_data_files()
    assert (report.rewritten_data_files_count, report.added_data_files_count) == (12, 2)
    assert read(table) == before


def test_a_filter_chooses_files(lake):
    table = create(lake, partition_by=["p"])
    report = table.rewrite_data_files(where="p = 1")
    assert (report.rewritten_data_files_count, report.added_data_files_count) == (6, 1)
    with pytest.raises(InvalidStatementError, match="compare columns"):
        table.rewrite_data_files(where="abs(p) = 1")
    with pytest.raises(InvalidStatementError, match="q"):
        table.rewrite_data_files(where="q = 1")


@pytest.mark.not_delta("delete files apart from their data files")
@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_are_folded_in(lake, version):
    table = create(lake, version)
    table.delete("id IN (3, 33, 34)", mode="merge-on-read")
    before = read(table)
    report = table.rewrite_data_files()
    assert report.removed_delete_files_count == 2
    assert read(table) == before
    assert table.files()["content"].to_pylist() == [0]


def test_a_table_that_cannot_hold_deletes_gives_way_to_rewrites_of_others(lake, version):
    table = create(lake, version)
    other = lake.table("shop.t")
    with meanwhile(lambda: other.delete("id = 3", mode="copy-on-write")):
        table.rewrite_data_files(options=ALL)
    assert ids(table) == [number for number in range(60) if number != 3]
    table.rewrite_data_files(options=ALL)
    assert len(read(table)) == 59


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_with_many_deletes_are_picked_whatever_their_size(lake, version):
    table = create(lake, version, files=1)
    table.delete("id < 5", mode="merge-on-read")
    report = table.rewrite_data_files()
    assert report.rewritten_data_files_count == 1
    assert len(read(table)) == 5


@pytest.mark.not_delta("equality deletes")
@pytest.mark.parametrize("version", ["2", "3"])
def test_equality_deletes_are_folded_in_and_newer_ones_still_apply(lake, version):
    table = create(lake, version)
    table.upsert(rows(1, 2), keys=["id"], deletes="equality")
    other = lake.table("shop.t")
    with meanwhile(lambda: other.delete("id = 7", deletes="equality")):
        report = table.rewrite_data_files()
    assert report.given_up_files_count == 0
    assert ids(table) == [i for i in range(60) if i != 7]


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("layout", [(), ("p",)], ids=["plain", "partitioned"])
def test_rows_that_others_delete_meanwhile_stay_deleted(lake, version, layout):
    table = create(lake, version, partition_by=layout)
    table.delete("id IN (5, 6)", mode="merge-on-read")
    other = lake.table("shop.t")
    with meanwhile(
        lambda: other.delete("id IN (4, 7, 59)", mode="merge-on-read"),
        lambda: other.update({"v": "'new'"}, "id = 30", mode="merge-on-read"),
        lambda: other.append(rows(100)),
    ):
        report = table.rewrite_data_files()
    assert report.given_up_files_count == 0
    assert report.rewritten_data_files_count == (12 if layout else 6)
    found = read(table)
    assert ids(table) == [i for i in range(60) if i not in (4, 5, 6, 7, 59)] + [100]
    assert {row[0]: row[2] for row in found}[30] == "new"


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_that_others_rewrite_meanwhile_are_not_doubled(lake, version):
    table = create(lake, version)
    other = lake.table("shop.t")
    with meanwhile(
        lambda: other.delete("id = 4", mode="copy-on-write"),
        lambda: other.delete("id >= 50"),
    ):
        report = table.rewrite_data_files()
    assert (report.rewritten_data_files_count, report.given_up_files_count) == (4, 2)
    assert ids(table) == [i for i in range(50) if i != 4]


@pytest.mark.parametrize("version", ["2", "3"])
def test_who_loses_often_looks_at_each_commit_once(lake, version, monkeypatch):
    table = create(lake, version, **{"commit.retry.min-wait-ms": "1"})
    other = lake.table("shop.t")
    looked, files_landed = [], compaction_rebase.files_landed

    def look(commits, *args, **kwargs):
        looked.extend(commit.snapshot.snapshot_id for commit in commits)
        return files_landed(commits, *args, **kwargs)

    monkeypatch.setattr(compaction_rebase, "files_landed", look)
    with stopped_at(
        Phase.PRODUCED,
        lambda: other.delete("id = 4", mode="merge-on-read"),
        lambda: other.delete("id = 5", mode="merge-on-read"),
        lambda: other.append(rows(100)),
        lambda: other.delete("id IN (7, 33)", mode="merge-on-read"),
        lambda: other.delete("id >= 50 AND id < 60"),
    ):
        report = table.rewrite_data_files()
    assert (report.rewritten_data_files_count, report.given_up_files_count) == (5, 1)
    assert len(looked) == len(set(looked)) == 5
    read(table)
    assert ids(table) == [i for i in range(50) if i not in (4, 5, 7, 33)] + [100]


@pytest.mark.not_delta("rollbacks")
def test_a_branch_that_is_rolled_back_meanwhile_is_looked_at_anew(lake):
    table = create(lake, **{"commit.retry.min-wait-ms": "1"})
    other, start = lake.table("shop.t"), table.handle.current_snapshot_id
    with stopped_at(
        Phase.PRODUCED,
        lambda: other.delete("id = 4", mode="merge-on-read"),
        lambda: other.rollback_to(snapshot_id=start),
        lambda: other.delete("id = 5", mode="merge-on-read"),
    ):
        assert table.rewrite_data_files().rewritten_data_files_count == 6
    assert ids(table) == [i for i in range(60) if i != 5]


@pytest.mark.not_delta("branches")
def test_a_branch_that_is_dropped_meanwhile_is_a_conflict(lake):
    table = create(lake)
    table.create_branch("b")
    with (
        meanwhile(lambda: lake.table(table.name).drop_ref("b")),
        pytest.raises(CommitConflictError, match="branch b was dropped"),
    ):
        table.rewrite_data_files(branch="b")
    assert len(table.arrow()) == 60


@pytest.mark.iceberg
def test_manifests_of_which_no_file_is_left_become_one(lake, version):
    table = create(lake, version)
    table.rewrite_data_files()
    manifests = table.inspect("manifests")
    counts = ("added_data_files_count", "existing_data_files_count", "deleted_data_files_count")
    found = sorted(zip(*(manifests[name].to_pylist() for name in counts), strict=True))
    assert found == [(0, 0, 6), (1, 0, 0)]


def test_two_compactions_at_once_leave_every_row_once(lake, version):
    table = create(lake, version)
    before = read(table)
    other = lake.table("shop.t")
    with meanwhile(lambda: other.rewrite_data_files()):
        report = table.rewrite_data_files()
    assert report.given_up_files_count == 6
    assert read(table) == before


def test_row_ids_stay(lake):
    table = create(lake, "3")
    table.update({"v": "'new'"}, "id = 30")
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = rows_of(table.arrow(columns=columns))
    table.rewrite_data_files(options=ALL)
    assert rows_of(table.arrow(columns=columns)) == before


@pytest.mark.not_delta("partition specs that change")
def test_old_specs_go_into_the_new_one(lake, version):
    table = create(lake, version)
    with changing(table, "spec") as update:
        update.add_identity("p")
    before = read(table)
    report = table.rewrite_data_files()
    assert (report.rewritten_data_files_count, report.added_data_files_count) == (6, 2)
    assert read(table) == before


@pytest.mark.not_delta("partition specs that change")
@pytest.mark.parametrize("version", ["2", "3"])
def test_files_of_several_old_specs_are_one_group(lake, version):
    table = create(lake, version, files=3)
    for number, (field, by) in enumerate((("p", IdentityTransform()), ("id", BucketTransform(2)))):
        with changing(table, "spec") as update:
            update.add_field(field, by, f"by_{field}")
        table = lake.table("shop.t")
        table.append(rows(100 + 2 * number, 101 + 2 * number))
    before = read(table)
    assert table.optimize(dry_run=True).planned[0].verb == "rewrite_data_files"
    report = table.rewrite_data_files()
    # Three files without a partition and two by `p`; those of the newest spec are few.
    assert (report.groups, report.rewritten_data_files_count) == (1, 5)
    assert set(table.files()["spec_id"].to_pylist()) == {2}
    assert read(table) == before
    assert table.rewrite_data_files().rewritten_data_files_count == 0


@pytest.mark.not_delta("partition specs that change")
def test_files_of_old_specs_go_with_those_of_no_partition(lake):
    table = create(lake, files=3)
    with changing(table, "spec") as update:
        update.add_identity("p")
    table = lake.table("shop.t")
    for number in (100, 101):
        table.append(rows(number).set_column(1, "p", pa.array([None], pa.int32())))
        table.append(rows(2 * number))
    report = table.rewrite_data_files()
    assert (report.groups, report.rewritten_data_files_count) == (1, 5)
    assert table.rewrite_data_files().rewritten_data_files_count == 0


@pytest.mark.not_delta("partition specs that change")
def test_rows_of_many_files_meet_in_their_new_partitions(lake):
    table = create(lake, files=0)
    for number in range(8):
        held = rows(*range(number * 5000, number * 5000 + 5000))
        texts = [random.randbytes(16).hex() for _ in range(len(held))]
        table.append(held.set_column(2, "v", pa.array(texts)))
    with changing(table, "spec") as update:
        update.add_field("id", BucketTransform(5), "by_id")
    table = lake.table("shop.t")
    before = read(table)
    size = 2 * table.files()["file_size_in_bytes"][0].as_py()
    options = {"target-file-size-bytes": str(size), "min-input-files": "2"}
    report = table.rewrite_data_files(options=options)
    # Four new files' worth of rows, and each of five partitions gets one file.
    assert (report.rewritten_data_files_count, report.added_data_files_count) == (8, 5)
    assert read(table) == before
    assert table.rewrite_data_files(options=options).rewritten_data_files_count == 0


def test_rows_come_out_sorted(lake, version):
    table = create(lake, version)
    before = read(table)
    table.rewrite_data_files("sort", "p, id DESC")
    found = table.arrow()
    keys = list(zip(found["p"].to_pylist(), found["id"].to_pylist(), strict=True))
    assert keys == sorted(keys, key=lambda key: (key[0], -key[1]))
    assert read(table) == before


def test_partial_progress_lands_in_parts(lake):
    table = create(lake, partition_by=["id"], files=1)
    known = len(table.snapshots())
    options = {**ALL, "partial-progress.enabled": "true", "partial-progress.max-commits": "3"}
    report = table.rewrite_data_files(options=options)
    assert report.rewritten_data_files_count == 10
    assert len(report.snapshot_ids) == len(table.snapshots()) - known == 3
    assert len(read(table)) == 10


def lose_some_commits(monkeypatch, table, *lost):
    """Have the commits of these numbers lose their race."""
    its_format = type(table.handle.format)
    swap, numbers = its_format.swap, count()

    def swapped(*args, **kwargs):
        return Conflict("no") if next(numbers) in lost else swap(*args, **kwargs)

    monkeypatch.setattr(its_format, "swap", swapped)


@pytest.mark.parametrize("allowed", [None, "2"])
def test_some_commits_may_fail_with_partial_progress(lake, monkeypatch, allowed):
    table = create(lake, partition_by=["id"], files=1, **{"commit.retry.num-retries": "0"})
    lose_some_commits(monkeypatch, table, 1, 3)
    options = {**ALL, "partial-progress.enabled": "true", "partial-progress.max-commits": "5"}
    if allowed is not None:
        options["partial-progress.max-failed-commits"] = allowed
    report = table.rewrite_data_files(options=options)
    assert (report.rewritten_data_files_count, report.given_up_files_count) == (6, 4)
    assert len(report.snapshot_ids) == 3


def test_more_failed_commits_than_allowed_are_an_error(lake, monkeypatch, tmp_path):
    table = create(lake, partition_by=["id"], files=1, **{"commit.retry.num-retries": "0"})
    before, known = read(table), len(table.snapshots())
    lose_some_commits(monkeypatch, table, 1, 3)
    options = {
        **ALL,
        "partial-progress.enabled": "true",
        "partial-progress.max-commits": "5",
        "partial-progress.max-failed-commits": "1",
    }
    with pytest.raises(EngineError, match="2 commits failed") as error:
        table.rewrite_data_files(options=options)
    assert "max-failed-commits is 1" in str(error.value)
    assert "(3 commits)" in str(error.value)
    assert len(table.snapshots()) == known + 3
    assert read(table) == before
    assert not stray_files(tmp_path / "lake", None, "shop.t")


def test_budgets_bound_the_work(lake):
    table = create(lake, partition_by=["id"], files=1)
    report = table.rewrite_data_files(options=ALL, max_bytes=1)
    assert report.rewritten_data_files_count == 1
    report = table.rewrite_data_files(options=ALL, max_seconds=0)
    assert report.rewritten_data_files_count == 5


def test_work_in_a_given_order(lake):
    table = create(lake, partition_by=["p"], files=1)
    table.append(rows(1, 3, 5))
    options = {**ALL, "rewrite-job-order": "files-desc", "max-files-to-rewrite": "2"}
    report = table.rewrite_data_files(options=options)
    assert report.rewritten_data_files_count == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "1"}, "no option target"),
        ({"target-file-size-bytes": "x"}, "not a whole number"),
        ({"min-file-size-bytes": "999999999999"}, "between them"),
        ({"delete-ratio-threshold": "2"}, "up to 1"),
        ({"rewrite-all": "perhaps"}, "true or false"),
        ({"rewrite-job-order": "up"}, "one of none"),
        ({"partial-progress.max-failed-commits": "-1"}, "a whole number from 0"),
        ({"output-spec-id": "7"}, "no partition spec 7"),
    ],
)
def test_wrong_options_are_told(lake, options, words):
    table = create(lake)
    with pytest.raises(InvalidStatementError, match=words):
        table.rewrite_data_files(options=options)


def test_an_unknown_strategy_or_order_is_told(lake):
    table = create(lake, files=1)
    with pytest.raises(InvalidStatementError, match="binpack, sort, zorder"):
        table.rewrite_data_files("squeeze")
    with pytest.raises(InvalidStatementError, match="no sort order"):
        table.rewrite_data_files("sort")
    with pytest.raises(InvalidStatementError, match="nope"):
        table.rewrite_data_files("sort", "nope")


def test_an_empty_table_has_nothing_to_rewrite(lake):
    table = create(lake, files=0)
    assert table.rewrite_data_files(options=ALL).rewritten_data_files_count == 0


@pytest.mark.not_delta("branches")
def test_a_branch_is_compacted_by_itself(lake):
    table = create(lake)
    table.create_branch("side")
    table.append(rows(99), branch="side")
    report = table.rewrite_data_files(branch="side")
    assert report.rewritten_data_files_count == 7
    assert len(table.arrow(ref="side")) == 61
    assert len(table.arrow()) == 60


@pytest.mark.iceberg
def test_not_inside_a_transaction(lake):
    create(lake)
    with pytest.raises(UnsupportedFeatureError, match="transaction"), lake.transaction() as tx:
        tx.table("shop.t").rewrite_data_files()


def test_a_failed_write_leaves_nothing(lake, tmp_path, monkeypatch):
    table = create(lake)
    before = files_in(str(tmp_path))

    def fail(*_args, **_kwargs):
        raise OSError("the disk is full")

    monkeypatch.setattr("rowlake.write.output.OpenFile.close", fail)
    with pytest.raises(OSError, match="full"):
        table.rewrite_data_files()
    assert files_in(str(tmp_path)) == before


@pytest.mark.not_delta("delete files apart from their data files")
@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_of_files_that_are_gone_can_be_removed(lake, version):
    table = create(lake, version, **{"write.delete.granularity": "partition"})
    table.delete("id IN (3, 33)", mode="merge-on-read")
    before = read(table)
    report = table.rewrite_data_files(options={"remove-dangling-deletes": "true"})
    assert report.removed_delete_files_count == (2 if version == "3" else 1)
    assert read(table) == before
    assert pc.sum(table.files()["content"]).as_py() == 0


@pytest.mark.not_delta("such names without column mapping")
def test_a_list_names_columns_as_they_are(lake):
    columns = pa.schema([("a b", pa.int64()), ("c.d", pa.int64()), ("order", pa.int64())])
    table = lake.create_table("shop.odd", columns)
    table.append(pa.table({"a b": [3, 1, 2], "c.d": [1, 1, 2], "order": [1, 2, 3]}, columns))
    table.rewrite_data_files("sort", ["c.d", "a b"], options=ALL)
    assert table.arrow()["a b"].to_pylist() == [1, 3, 2]
    table.rewrite_data_files("sort", ["order DESC"], options=ALL)
    assert table.arrow()["order"].to_pylist() == [3, 2, 1]
    assert table.rewrite_data_files("zorder", ["a b", "order"], options=ALL).groups == 1
