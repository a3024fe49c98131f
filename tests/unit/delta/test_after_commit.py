"""After a commit: checksums, checkpoints when they are due, and clean-up of what has expired."""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.delta.after_commit import after_commit
from rowlake.delta.checksum_file import ROW_BINS, SIZE_BINS, checksum, counted, write_checksum
from rowlake.delta.commit_file import find_commit, write_commit
from rowlake.delta.commit_info import CommitInfo
from rowlake.delta.durations import duration_ms
from rowlake.delta.log_cleanup import clean_up
from rowlake.delta.log_files import list_log
from rowlake.delta.state import LogState
from rowlake.errors import InvalidStatementError
from rowlake.storage.files import Storage
from tests.delta_logs import PROTOCOL, features, metadata, people
from tests.delta_writing import NOW_MS, WrittenTable
from tests.parts.memory_s3 import memory_s3

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "delta"
DAY_MS = 86_400_000
MIDNIGHT_MS = NOW_MS // DAY_MS * DAY_MS
# Without those of versions that are read from a checkpoint, which has no commitInfo.
CHECKSUMS = sorted(
    one
    for one in GOLDEN.glob("*/_delta_log/*.crc")
    if not list(one.parent.glob(f"{one.stem}.checkpoint*"))
)


def state_at(folder, version):
    storage = Storage()
    return LogState(str(folder), list_log(str(folder), storage).segment(version), storage)


def plain(found):
    """Return a checksum without what is optional, its domains in order."""
    kept = {name: one for name, one in found.items() if name not in ("allFiles", "domainMetadata")}
    domains = sorted(found["domainMetadata"], key=lambda one: one["domain"])
    return {**kept, "domainMetadata": domains}


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("path", CHECKSUMS, ids=lambda one: f"{one.parts[-3]}-{one.stem[-2:]}")
def test_checksums_are_those_of_delta_on_spark(path, is_loaded):
    state = state_at(path.parents[1], int(path.stem))
    if is_loaded:
        assert state.files is not None
    assert plain(checksum(state, 0)) == plain(json.loads(path.read_text()))


def test_bins_are_those_of_the_protocol():
    theirs = json.loads(CHECKSUMS[0].read_text())["fileSizeHistogram"]["sortedBinBoundaries"]
    assert theirs == SIZE_BINS
    files = WrittenFiles((0, None), (8191, 1), (8192, 9), (8192, 2**31 - 1)).table
    found = counted(files, has_vectors=True)
    assert found["fileSizeHistogram"]["fileCounts"][:3] == [2, 2, 0]
    assert found["fileSizeHistogram"]["totalBytes"][:3] == [8191, 16384, 0]
    histogram = found["deletedRecordCountsHistogramOpt"]["deletedRecordCounts"]
    assert histogram == [1, 2, *[0] * 7, 1]
    assert len(histogram) == len(ROW_BINS)
    assert found["numDeletedRecordsOpt"] == 10 + 2**31 - 1


class WrittenFiles:
    """Live files by (size, deleted rows)."""

    def __init__(self, *pairs):
        sizes, deleted = zip(*pairs, strict=True)
        kinds = [None if one is None else "u" for one in deleted]
        self.table = pa.table(
            {"size": sizes, "vector_cardinality": deleted, "storage_type": pa.array(kinds)}
        )


@pytest.fixture
def table(tmp_path):
    return WrittenTable(tmp_path / "t").create(checkpointInterval="4")


def test_every_commit_has_a_checksum_that_readers_accept(table):
    for number in range(3):
        table.rows(people(number))
    table.remove(table.state.files["location"][0].as_py())
    names = sorted(one.name for one in table.log.glob("*.crc"))
    assert names == [f"{version:020d}.crc" for version in range(5)]
    for version in range(5):
        state = state_at(table.folder, version)
        said = json.loads((table.log / f"{version:020d}.crc").read_text())
        assert said["numFiles"] == state.files.num_rows
        assert said == {**checksum(state, 0), "txnId": said["txnId"]}


def test_a_commit_that_may_add_files_again_is_counted_whole(table):
    table.rows(people(1))
    (add,) = (one["add"] for one in table.actions(1) if "add" in one)
    table.commit("COMPUTE STATS", {"add": {**add, "dataChange": False}})
    said = json.loads((table.log / f"{2:020d}.crc").read_text())
    assert said["numFiles"] == 1
    assert table.state.files.num_rows == 1


def test_a_remove_without_size_is_counted_whole(table):
    table.rows(people(1))
    path = table.state.files["location"][0].as_py()
    gone = {"path": Path(path).name, "deletionTimestamp": 1, "dataChange": True}
    table.commit("DELETE", {"remove": gone})
    assert json.loads((table.log / f"{2:020d}.crc").read_text())["tableSizeBytes"] == 0


def test_a_checksum_is_never_overwritten(table):
    path = table.log / f"{0:020d}.crc"
    path.write_text("{}")
    assert not write_checksum(table.state, 0)
    assert path.read_text() == "{}"


def test_a_damaged_checksum_of_the_version_before_is_not_believed(table):
    table.rows(people(1))
    (table.log / f"{1:020d}.crc").write_text('{"numFiles": "many", "tableSizeBytes": 1}')
    table.rows(people(2))
    assert json.loads((table.log / f"{2:020d}.crc").read_text())["numFiles"] == 2


def test_checkpoints_are_written_when_they_are_due(table):
    for number in range(9):
        table.rows(people(number))
    found = list_log(str(table.folder), table.storage)
    assert sorted(found.checkpoints) == [4, 8]
    assert json.loads((table.log / "_last_checkpoint").read_text())["version"] == 8


@pytest.mark.parametrize(("given", "expected"), [({}, [10]), ({"checkpointInterval": "x"}, [10])])
def test_checkpoints_are_due_every_ten_versions(tmp_path, given, expected):
    table = WrittenTable(tmp_path / "t").create(**given)
    for _ in range(11):
        table.commit("WRITE")
    assert sorted(list_log(str(table.folder), table.storage).checkpoints) == expected


def test_nothing_after_a_commit_fails_it(table, caplog):
    for _ in range(3):
        table.commit("WRITE")

    class Broken(Storage):
        def create(self, *_):
            raise OSError("disk on fire")

    table.commit("WRITE")
    for old in table.log.glob(f"{4:020d}.c*"):
        old.unlink()
    state = LogState(str(table.folder), table.state.segment, Broken())
    with caplog.at_level(logging.WARNING, "rowlake"):
        after_commit(state, NOW_MS)
    said = [one.getMessage() for one in caplog.records]
    assert len(said) == 2
    assert all("the commit itself is in the table" in one for one in said)


def aged(table, *days):
    """Make the files of versions so many days older than midnight."""
    for version, ago in enumerate(days):
        for file in table.log.glob(f"{version:020d}.*"):
            at = (MIDNIGHT_MS - ago * DAY_MS) * 10**6
            os.utime(file, ns=(at, at))


def grown(folder, versions, **given):
    table = WrittenTable(folder).create(**{"checkpointInterval": "2", **given})
    for number in range(versions):
        table.rows(people(number))
    return table


def versions_left(table):
    log = list_log(str(table.folder), table.storage)
    return sorted(log.commits), sorted(log.checkpoints), sorted(log.checksums)


def test_a_log_is_cut_at_the_newest_checkpoint_that_has_expired(tmp_path):
    table = grown(tmp_path / "t", 6)
    aged(table, 40, 39, 38, 37, 36, 35, 20)
    (table.log / f"{0:020d}.{1:020d}.compacted.json").write_text("")
    (table.log / f"{4:020d}.{5:020d}.compacted.json").write_text("")
    expected = table.state.files.sort_by("location")["location"].to_pylist()
    gone = clean_up(table.state, NOW_MS)
    assert versions_left(table) == ([4, 5, 6], [4, 6], [4, 5, 6])
    assert not list(table.log.glob("*.compacted.json"))
    assert f"{0:020d}.json" in {Path(one).name for one in gone}
    assert table.state.files.sort_by("location")["location"].to_pylist() == expected
    assert clean_up(table.state, NOW_MS) == []


@pytest.mark.parametrize(
    "given",
    [
        {"enableExpiredLogCleanup": "false"},
        {"logRetentionDuration": "interval 50 days"},
        {"checkpointInterval": "100"},
    ],
)
def test_a_log_is_left_alone(tmp_path, given):
    table = grown(tmp_path / "t", 6, **given)
    aged(table, 40, 39, 38, 37, 36, 35, 20)
    before = versions_left(table)
    assert clean_up(table.state, NOW_MS) == []
    assert versions_left(table) == before


@pytest.mark.parametrize(("before", "first"), [("3", 4), ("4", 4), ("5", 0), ("x", 0)])
def test_protected_checkpoints_go_all_at_once_or_not(tmp_path, before, first):
    protocol = {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": ["checkpointProtection"],
        }
    }
    given = {"requireCheckpointProtectionBeforeVersion": before, "protocol": protocol}
    table = grown(tmp_path / "t", 6, **given)
    aged(table, 40, 39, 38, 37, 36, 35, 20)
    clean_up(table.state, NOW_MS)
    assert versions_left(table)[0][0] == first


def test_a_young_log_is_not_cleaned_up_by_commits(tmp_path):
    table = grown(tmp_path / "t", 6)
    assert versions_left(table)[0] == list(range(7))


def test_sidecars_go_with_the_checkpoints_that_name_them(tmp_path):
    given = {"protocol": features("v2Checkpoint"), "checkpointPolicy": "v2"}
    table = grown(tmp_path / "t", 6, **given)
    aged(table, 40, 39, 38, 37, 36, 35, 20)
    folder = table.log / "_sidecars"
    (folder / "stray.parquet").write_bytes(b"")
    old = (MIDNIGHT_MS - 3 * DAY_MS) * 10**6
    for file in folder.iterdir():
        os.utime(file, ns=(old, old))
    young = folder / "young.parquet"
    young.write_bytes(b"")
    os.utime(young, ns=(NOW_MS * 10**6, NOW_MS * 10**6))
    clean_up(table.state, NOW_MS)
    assert versions_left(table)[1] == [4, 6]
    left = {one.name for one in folder.iterdir()}
    assert "young.parquet" in left
    assert "stray.parquet" not in left
    assert len(left) == 3
    assert table.state.files.num_rows == 6


def test_a_table_of_delta_on_spark_is_cleaned_up(tmp_path):
    folder = shutil.copytree(GOLDEN / "sidecars_parquet", tmp_path / "t")
    table = WrittenTable(folder)
    files = table.state.files.num_rows
    aged(table, *[60] * 7, 1)
    later = MIDNIGHT_MS + DAY_MS
    clean_up(table.state, later)
    assert versions_left(table)[1] == [6]
    assert table.state.files.num_rows == files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("INTERVAL 30 DAYS", 30 * DAY_MS),
        ("1 day 12 hours", DAY_MS * 3 // 2),
        ("interval 0 hours", 0),
    ],
)
def test_durations_are_those_of_spark(text, expected):
    assert duration_ms({"p": text}, "p", "interval 1 day") == expected


@pytest.mark.parametrize("text", ["", "interval", "interval 1 month", "7", "interval 1 day x"])
def test_other_durations_are_refused(text):
    with pytest.raises(InvalidStatementError, match="must be a duration"):
        duration_ms({"p": text}, "p", "interval 1 day")


def test_a_log_on_a_store_that_tells_no_times_is_kept_whole(monkeypatch):
    folder, storage = "s3://bucket/t", Storage()
    actions = [PROTOCOL, metadata(checkpointInterval="2")]
    with memory_s3(monkeypatch) as store:
        for version in range(3):
            info = CommitInfo("WRITE", str(version), NOW_MS).action()
            assert write_commit(folder, version, [info, *actions], storage)
            assert not write_commit(folder, version, [info, PROTOCOL], storage)
            after_commit(state_at(folder, version), NOW_MS)
            actions = []
        names = {one.rsplit("/", 1)[-1] for one in store.blobs}
        assert find_commit(folder, "1", 0, storage) == 1
    assert {f"{2:020d}.checkpoint.parquet", "_last_checkpoint", f"{2:020d}.crc"} <= names
    assert {f"{version:020d}.json" for version in range(3)} <= names
