"""rewrite_position_delete_files without Spark: which files, what they say, and who else commits."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from rowlake.codecs.puffin import write_puffin
from rowlake.commit.outcome import commit_or_raise
from rowlake.commit.phases import Phase
from rowlake.errors import (
    CommitConflictError,
    InvalidStatementError,
    StorageError,
    UnsupportedFeatureError,
)
from rowlake.maintain.deletes import position_kernel, position_plan
from rowlake.model.change import Change, Operation
from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.storage.files import Storage
from rowlake.verbs.write import WriteOptions, write_rows
from rowlake.write import position_deletes as marks
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.parts.failing import stray_files
from tests.parts.loose_deletes import (
    add_position_deletes,
    delete_files,
    live_sequence_numbers,
    places_of,
)
from tests.parts.marking import files_of
from tests.parts.stopping import stopped_at

NAME = "shop.sales"
ALL = {"rewrite-all": "true"}


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


def make(lake, version="2", partition_by=(), files=2, **properties):
    """A table of some data files of 100 rows each."""
    given = {
        "format-version": version,
        "write.delete.mode": "merge-on-read",
        "commit.retry.min-wait-ms": "1",
        **properties,
    }
    made = lake.create_table(NAME, SALES, partition_by=partition_by, properties=given)
    for number in range(files):
        made.append(sales(100, 100 * number))
    return made


def delete_often(table, times=5, granularity="file", first=0):
    """Delete one more row of every data file by a delete file of its own, so many times."""
    files = files_of(table)
    sets = [{place: [number] for place in files} for number in range(first, first + times)]
    add_position_deletes(table, *sets, granularity=granularity)


def check_same(table, run):
    """Check that a run changes no row and says beforehand what it does; return its report."""
    rows, before = rows_of(table.arrow()), files_in(table.location)
    dry = run(dry_run=True)
    assert (dry.dry_run, dry.snapshot_id, files_in(table.location)) == (True, None, before)
    count = len(table.snapshots())
    report = run()
    assert rows_of(table.arrow()) == rows
    names = ("rewritten_delete_files_count", "added_delete_files_count", "rewritten_bytes_count")
    assert [getattr(dry, name) for name in names] == [getattr(report, name) for name in names]
    if report.snapshot_id is None:
        assert len(table.snapshots()) == count
    else:
        head = table.snapshots()[-1]
        assert (head.snapshot_id, head.operation) == (report.snapshot_id, "replace")
        assert head.summary["total-records"] == table.snapshots()[-2].summary["total-records"]
    return report


def rewrite(table, **given):
    return check_same(table, lambda **more: table.rewrite_position_delete_files(**given, **more))


def test_each_data_file_gets_one_delete_file(lake, tmp_path):
    table = make(lake)
    delete_often(table)
    old = delete_files(table)
    report = rewrite(table)
    new = delete_files(table)
    assert (report.rewritten_delete_files_count, report.added_delete_files_count) == (10, 2)
    assert report.rewritten_bytes_count == sum(row["file_size_in_bytes"] for row in old)
    assert report.added_bytes_count == sum(row["file_size_in_bytes"] for row in new)
    assert [(row["referenced_data_file"], row["record_count"]) for row in new] == [
        (place, 5) for place in sorted(files_of(table))
    ]
    summary = table.snapshots()[-1].summary
    assert (summary["removed-position-deletes"], summary["added-position-deletes"]) == ("10", "10")
    assert stray_files(tmp_path, None, NAME) == set()
    assert rewrite(table).snapshot_id is None, "a second run has nothing to do"


def test_each_partition_gets_one_sorted_delete_file(lake):
    table = make(lake, partition_by=["store"], **{"write.delete.granularity": "partition"})
    files = files_of(table)
    sets = [{place: [number, number - 1] for place in files} for number in (9, 3, 5, 1, 7)]
    add_position_deletes(table, *sets, granularity="partition")
    report = rewrite(table)
    assert (report.rewritten_delete_files_count, report.added_delete_files_count) == (20, 4)
    for row in delete_files(table):
        found = pq.read_table(row["file_path"])
        pairs = list(zip(*[column.to_pylist() for column in found.columns], strict=True))
        assert pairs == sorted(set(pairs))
        assert (len(pairs), len({path for path, _ in pairs})) == (20, 2)
        assert found.schema.field("file_path").metadata[b"PARQUET:field_id"] == b"2147483546"
    assert rewrite(table).snapshot_id is None


@pytest.mark.spec("Position Delete Files: a rewrite keeps the highest data sequence number")
@pytest.mark.parametrize("version", ["2", "3"])
def test_sequence_numbers_are_kept_by_group(lake, version):
    table = make(lake, partition_by=["store"], files=1)
    first, second = files_of(table)[:2]
    for place in (first, second):
        add_position_deletes(table, *[{place: [number]} for number in range(4)])
        add_position_deletes(table, {place: [4]})
    if version == "3":
        table.set_properties({"format-version": "3"})
    rewrite(table)
    found = live_sequence_numbers(table, 1)
    # The vectors of one task share a Puffin file, and with it the number.
    assert found == ([3, 5] if version == "2" else [5, 5])
    table.append(sales(5, 500))
    table.delete("id = 500 OR id = 96")
    assert table.arrow().num_rows == 105 - 10 - 2


def test_groups_follow_the_options(lake):
    table = make(lake, partition_by=["store"], files=1)
    delete_often(table, times=4)
    assert rewrite(table).snapshot_id is None
    assert rewrite(table, options={"min-input-files": "4"}).rewritten_delete_files_count == 16
    delete_often(table, times=2, first=10)
    sizes = {row["file_size_in_bytes"] for row in delete_files(table)}
    within = {"min-file-size-bytes": "1", "target-file-size-bytes": str(max(sizes) + 1)}
    assert rewrite(table, options={**within, "min-input-files": "2"}).snapshot_id is None
    small = {"max-file-group-size-bytes": str(2 * max(sizes)), "min-input-files": "3"}
    assert rewrite(table, options=small).snapshot_id is None, "a group has two files at most"
    assert rewrite(table, options={**small, "max-file-group-input-files": 2}).snapshot_id is None
    much = {"min-file-size-bytes": "0", "target-file-size-bytes": "10", "max-file-size-bytes": "20"}
    assert rewrite(table, options=much).rewritten_delete_files_count == 12
    assert rewrite(table, options=ALL).added_delete_files_count == 4


def test_only_the_partitions_of_a_filter(lake):
    table = make(lake, partition_by=["store"], files=1)
    delete_often(table)
    assert rewrite(table, where="store = 1").rewritten_delete_files_count == 5
    assert rewrite(table, where="store IN (1, 2) AND id > 3").rewritten_delete_files_count == 5
    assert rewrite(table, where="id = 1000000").rewritten_delete_files_count == 10
    with pytest.raises(InvalidStatementError, match="nowhere"):
        table.rewrite_position_delete_files(where="nowhere = 1")


def test_specs_are_kept_apart(lake):
    table = make(lake, partition_by=["store"], files=1)
    with changing(table, "spec") as update:
        update.remove_field("store")
    table.append(sales(100, 100))
    delete_often(table)
    assert rewrite(table).added_delete_files_count == 5
    assert sorted(row["spec_id"] for row in delete_files(table)) == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("version", ["2", "3"])
def test_dangling_positions_are_dropped(lake, version):
    table = make(lake, partition_by=["store"], files=3, **{"write.delete.granularity": "partition"})
    delete_often(table, granularity="partition")
    table.delete("id < 100", mode="copy-on-write")
    table.delete("store = 2", mode="copy-on-write")
    if version == "3":
        table.set_properties({"format-version": "3"})
    report = rewrite(table)
    assert report.rewritten_delete_files_count == 20
    assert report.added_delete_files_count == (3 if version == "2" else 6)
    assert sum(row["record_count"] for row in delete_files(table)) == 3 * 2 * 5


@pytest.mark.spec("Scan Planning: position deletes apply to data files that are not newer")
def test_deletes_that_are_older_than_their_file_stay_without_effect(lake):
    table = make(lake, files=1)
    old = files_of(table)[0]
    place = places_of(table)[old]
    late = write_rows(table.handle.view(), table._engine, sales(10, 900), WriteOptions()).files
    new = late["location"][0].as_py()
    sets = [{new: [number], old: [number]} for number in range(4)]
    add_position_deletes(table, *sets, granularity="partition", places={new: place})
    change = Change(Operation.APPEND, added_data=late)
    table._handle, _ = commit_or_raise(table.handle, change, Storage({}), "append")
    assert table.arrow().num_rows == 110 - 4
    add_position_deletes(table, {new: [7]})
    assert rewrite(table).added_delete_files_count == 2
    assert [row["record_count"] for row in delete_files(table)].count(1) == 1
    assert table.arrow().num_rows == 110 - 5


def test_position_deletes_become_vectors_after_an_upgrade(lake):
    table = make(lake, files=3)
    delete_often(table, times=2)
    delete_often(table, times=2, first=2, granularity="partition")
    table.set_properties({"format-version": "3"})
    table.delete("id = 50")
    vector = [row for row in delete_files(table) if row["file_format"] == "PUFFIN"]
    assert [row["record_count"] for row in vector] == [5]
    report = rewrite(table)
    found = delete_files(table)
    assert {row["file_format"] for row in found} == {"PUFFIN"}
    assert sorted(row["record_count"] for row in found) == [4, 4, 5]
    assert vector[0] in found, "a vector that says all is left alone"
    assert report.added_delete_files_count == 2
    assert rewrite(table).snapshot_id is None
    assert rewrite(table, options=ALL).snapshot_id is None


def test_position_deletes_beside_a_vector_never_applied(lake):
    table = make(lake, version="3", files=1)
    table.delete("id = 50")
    before = rows_of(table.arrow())
    delete_often(table)
    assert rows_of(table.arrow()) == before
    report = rewrite(table)
    assert (report.rewritten_delete_files_count, report.added_delete_files_count) == (5, 0)
    assert [row["record_count"] for row in delete_files(table)] == [1]


def test_options_may_say_which_partitions_become_vectors(lake):
    table = make(lake, partition_by=["store"], files=1)
    delete_often(table, times=3)
    table.set_properties({"format-version": "3"})
    assert rewrite(table, options={"min-input-files": "4"}).snapshot_id is None
    assert rewrite(table, options={"min-input-files": "3"}).added_delete_files_count == 4


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_large_groups_are_cut(lake, monkeypatch, version, granularity):
    monkeypatch.setattr(position_plan, "MOST_ROWS", 7)
    monkeypatch.setattr(position_kernel, "MOST_ROWS", 7)
    table = make(lake, files=6, **{"write.delete.granularity": granularity})
    delete_often(table, granularity="partition")
    delete_often(table, times=1, first=50)
    if version == "3":
        table.set_properties({"format-version": "3"})
    report = rewrite(table)
    assert report.rewritten_delete_files_count == 11
    assert sum(row["record_count"] for row in delete_files(table)) == 36
    assert report.added_delete_files_count == 6


def test_delete_files_of_a_partition_are_closed_near_the_target_size(lake):
    table = make(lake, files=8, **{"write.delete.granularity": "partition"})
    files = files_of(table)
    sets = [dict.fromkeys(files, range(10 * number, 10 * number + 10)) for number in range(6)]
    add_position_deletes(table, *sets, granularity="partition")
    size = sum(row["file_size_in_bytes"] for row in delete_files(table))
    options = {"target-file-size-bytes": str(size // 4 + 1), "min-file-size-bytes": "1"}
    report = rewrite(table, options={**options, **ALL})
    assert report.added_delete_files_count == 4


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nothing": "1"}, "no option nothing"),
        ({"min-input-files": "0"}, "min-input-files"),
        ({"target-file-size-bytes": "5", "min-file-size-bytes": "5"}, "target"),
        ({"rewrite-job-order": "sideways"}, "rewrite-job-order"),
        ({"rewrite-all": "perhaps"}, "rewrite-all"),
        ({"partial-progress.max-commits": "0"}, "max-commits"),
        ({"max-concurrent-file-group-rewrites": "-1"}, "max-concurrent"),
    ],
)
def test_bad_options_are_refused(lake, options, text):
    with pytest.raises(InvalidStatementError, match=text):
        make(lake, files=0).rewrite_position_delete_files(options)


def test_tables_without_deletes_are_left_alone(lake):
    assert rewrite(make(lake, version="1", files=0)).snapshot_id is None
    lake.drop_table(NAME)
    assert rewrite(make(lake, files=1), options=ALL).snapshot_id is None


def test_a_branch_has_its_own_delete_files(lake):
    table = make(lake, files=1)
    delete_often(table)
    table.create_branch("dev")
    report = table.rewrite_position_delete_files(branch="dev")
    assert report.added_delete_files_count == 1
    assert table.rewrite_position_delete_files(dry_run=True).rewritten_delete_files_count == 5
    assert rows_of(table.arrow(ref="dev")) == rows_of(table.arrow())


@pytest.mark.iceberg
def test_not_inside_a_transaction(lake):
    delete_often(make(lake, files=1))
    with pytest.raises(UnsupportedFeatureError), lake.transaction() as tx:
        tx.table(NAME).rewrite_position_delete_files()


# --- others commit meanwhile


def ids(table):
    return set(table.arrow(["id"])["id"].to_pylist())


@pytest.mark.parametrize("phase", [Phase.WRITTEN, Phase.PRODUCED])
@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_deleted_meanwhile_stay_deleted(
    lake, tmp_path, monkeypatch, version, granularity, phase
):
    table = make(lake, **{"write.delete.granularity": granularity})
    delete_often(table, granularity=granularity)
    if version == "3":
        table.set_properties({"format-version": "3"})
    expected = ids(table) - {50, 51, 150}
    other = lake.table(NAME)
    with stopped_at(phase, lambda: other.delete("id IN (50, 51, 150)")):
        report = table.rewrite_position_delete_files()
    assert report.rewritten_delete_files_count == (10 if granularity == "file" else 5)
    assert ids(table) == expected
    assert table.snapshots()[-1].operation == "replace"
    if version == "3" or granularity == "file":
        assert sorted(row["record_count"] for row in delete_files(table)) == [6, 7]
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("version", ["2", "3"])
def test_keys_deleted_meanwhile_stay_deleted_and_new_rows_stay(lake, monkeypatch, version):
    table = make(lake)
    delete_often(table)
    table.set_properties({"format-version": version})
    other = lake.table(NAME)

    def upsert():
        blind_upsert(other.handle, other._engine, sales(20, 90), ["id"], WriteOptions())

    expected = ids(table) | set(range(90, 110))
    with stopped_at(Phase.WRITTEN, upsert):
        assert table.rewrite_position_delete_files().added_delete_files_count == 2
    assert ids(table) == expected
    assert table.arrow().num_rows == len(expected)


@pytest.mark.parametrize("version", ["2", "3"])
def test_data_files_that_go_meanwhile_are_planned_again(lake, tmp_path, monkeypatch, version):
    table = make(lake, partition_by=["store"])
    delete_often(table, times=6)
    table.set_properties({"format-version": version})
    other = lake.table(NAME)
    expected = {number for number in ids(table) if number % 4 != 1}
    with stopped_at(Phase.WRITTEN, lambda: other.delete("store = 1")):
        report = table.rewrite_position_delete_files()
    assert (report.rewritten_delete_files_count, report.added_delete_files_count) == (36, 6)
    assert ids(table) == expected
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("version", ["2", "3"])
def test_a_writer_does_not_fail_because_of_a_rewrite(
    lake, tmp_path, monkeypatch, version, granularity, mode
):
    table = make(lake, **{"write.delete.granularity": granularity})
    delete_often(table, granularity=granularity)
    table.set_properties({"format-version": version})
    expected = ids(table) - {50, 51, 150}
    other = lake.table(NAME)
    with stopped_at(Phase.WRITTEN, other.rewrite_position_delete_files):
        assert table.delete("id IN (50, 51, 150)", mode=mode).rows_deleted == 3
    assert ids(table) == expected
    assert table.snapshots()[-2].operation == "replace"
    assert stray_files(tmp_path, None, NAME) == set()


def test_a_roll_back_meanwhile_brings_back_what_dangling_deletes_delete(lake, monkeypatch):
    table = make(lake)
    delete_often(table, granularity="partition")
    before, head = ids(table), table.snapshots()[-1].snapshot_id
    table.delete("id >= 0", mode="copy-on-write")
    assert len(delete_files(table)) == 5
    other = lake.table(NAME)
    with stopped_at(Phase.WRITTEN, lambda: other.rollback_to(head)):
        report = table.rewrite_position_delete_files()
    assert ids(table) == before
    assert report.added_delete_files_count == 2


def test_two_rewrites_at_once_do_the_work_once(lake, tmp_path, monkeypatch):
    table = make(lake)
    delete_often(table)
    before = ids(table)
    with stopped_at(Phase.WRITTEN, lake.table(NAME).rewrite_position_delete_files):
        table.rewrite_position_delete_files()
    assert ids(table) == before
    assert [row["record_count"] for row in delete_files(table)] == [5, 5]
    assert stray_files(tmp_path, None, NAME) == set()


def test_partial_progress_commits_step_by_step(lake, monkeypatch, tmp_path):
    table = make(lake, partition_by=["store"], files=1)
    delete_often(table)
    step = {"partial-progress.enabled": "true", "partial-progress.max-commits": "3"}
    count, before = len(table.snapshots()), ids(table)
    report = table.rewrite_position_delete_files({**step, "rewrite-job-order": "files-desc"})
    assert (report.rewritten_delete_files_count, report.added_delete_files_count) == (20, 4)
    assert (len(table.snapshots()), ids(table)) == (count + 2, before)
    assert report.snapshot_id == table.snapshots()[-1].snapshot_id

    delete_often(table, first=10)
    other = lake.table(NAME)
    with stopped_at(Phase.WRITTEN, lambda: other.delete("store IN (0, 1)")):
        report = table.rewrite_position_delete_files(step)
    assert report.failed_commits == 1
    assert {number % 4 for number in ids(table)} == {2, 3}
    assert stray_files(tmp_path, None, NAME) == set()


def test_a_step_that_always_loses_is_an_error(lake, monkeypatch, tmp_path):
    table = make(lake, files=1, **{"commit.retry.num-retries": "0"})
    delete_often(table)
    other = lake.table(NAME)
    with (
        stopped_at(Phase.WRITTEN, other.truncate),
        pytest.raises(CommitConflictError),
    ):
        table.rewrite_position_delete_files({"partial-progress.enabled": "true"})
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_failure_leaves_nothing(lake, tmp_path, monkeypatch, version):
    table = make(lake, partition_by=["store"])
    delete_often(table)
    table.set_properties({"format-version": version})
    head, before = table.snapshots()[-1], files_in(table.location)
    calls = []

    def fails(name, whole):
        def wrapped(*args, **kwargs):
            calls.append(name)
            if len(calls) == 2:
                raise StorageError("somewhere", "the disk is full")
            return whole(*args, **kwargs)

        return wrapped

    with monkeypatch.context() as patch:
        if version == "3":
            calls.append("first")
            patch.setattr(marks, "write_puffin", fails("puffin", write_puffin))
        else:
            patch.setattr(marks, "write_positions", fails("positions", marks.write_positions))
        with pytest.raises(StorageError, match="disk is full"):
            table.rewrite_position_delete_files()
    assert files_in(table.location) == before
    assert table.snapshots()[-1] == head
    assert rewrite(table).snapshot_id is not None


@pytest.mark.iceberg
def test_the_procedure_has_icebergs_columns(lake):
    from rowlake.sql.procedures.call import PROCEDURES

    table = make(lake)
    delete_often(table)
    called = PROCEDURES["rewrite_position_delete_files"]
    assert [one.name for one in called.parameters] == ["table", "options", "where"]
    found = called.run(lake, table=NAME, options=ALL, where="store = 1")
    assert found.column_names == [
        "rewritten_delete_files_count",
        "added_delete_files_count",
        "rewritten_bytes_count",
        "added_bytes_count",
    ]
    assert [str(field.type) for field in found.schema] == ["int32", "int32", "int64", "int64"]
    assert found["rewritten_delete_files_count"].to_pylist() == [10]
