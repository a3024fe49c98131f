"""Versions: when they were, what each did, and what the table tells about them."""

from __future__ import annotations

import datetime
import json
import pickle

import pytest

from rowlake import connect
from rowlake.cli import app as cli
from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.model.format import FileAction
from tests.delta_logs import HandMade, column, metadata, people

START = 1_700_000_000_000


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def made(tmp_path):
    """A table of five versions, whose files say that clocks went back twice."""
    table = HandMade(tmp_path / "t").create(modified_ms=START)
    table.commit(table.add("a.parquet", people(1, 2)), modified_ms=START + 5000)
    table.commit(
        {"commitInfo": {"operation": "DELETE", "operationMetrics": {"numDeletedRows": "1"}}},
        table.remove("a.parquet"),
        table.add("b.parquet", people(2)),
        modified_ms=START + 1000,
    )
    compacted = table.add("c.parquet", people(2), dataChange=False)
    table.commit(table.remove("b.parquet", dataChange=False), compacted, modified_ms=START)
    table.commit(table.remove("c.parquet"), modified_ms=START + 9000)
    return table


def test_times_of_versions_only_rise(lake, made):
    times = [one.timestamp_ms - START for one in lake.table(made.name).snapshots()]
    assert times == [0, 5000, 5001, 5002, 9000]


@pytest.mark.parametrize(
    ("after", "ids"), [(0, []), (4999, []), (5000, [1, 2]), (5001, [2]), (8999, [2]), (10**9, [])]
)
def test_a_time_means_the_last_version_before_it(lake, made, after, ids):
    found = lake.table(made.name).arrow(["id"], as_of=START + after)
    assert sorted(found["id"].to_pylist()) == ids


def test_a_time_before_the_first_version_is_refused(lake, made):
    with pytest.raises(InvalidStatementError, match="no version as old as"):
        lake.table(made.name).arrow(as_of=START - 1)


def test_in_commit_times_count_from_the_version_that_began_them(lake, tmp_path):
    set_on = metadata(enableInCommitTimestamps="true", inCommitTimestampEnablementVersion="1")
    table = HandMade(tmp_path / "t").create(modified_ms=START)
    for version in (1, 2):
        info = {"commitInfo": {"inCommitTimestamp": START + version * 1000}}
        actions = [set_on] if version == 1 else [table.add("a.parquet", people(1))]
        table.commit(info, *actions, modified_ms=START + 77)
    found = lake.table(table.name)
    assert [one.timestamp_ms - START for one in found.snapshots()] == [0, 1000, 2000]
    assert found.arrow(as_of=START + 1999).num_rows == 0
    assert found.arrow(as_of=START + 2000).num_rows == 1
    table.commit(table.remove("a.parquet"))
    with pytest.raises(CorruptTableError, match="no inCommitTimestamp"):
        found.snapshots()


def test_operations_are_named_by_what_they_did_to_rows(lake, made):
    operations = [one.operation for one in lake.table(made.name).snapshots()]
    assert operations == ["replace", "append", "overwrite", "replace", "delete"]
    summary = lake.table(made.name).snapshots()[2].summary
    assert summary["added-data-files"] == summary["deleted-data-files"] == "1"
    assert summary["delta.operation"] == "DELETE"
    assert summary["delta.metrics.numDeletedRows"] == "1"


def test_commits_since_a_version_come_oldest_first(lake, made):
    handle = lake.table(made.name).handle
    found = handle.format.commits_since(handle, "main", 1)
    assert [one.snapshot.snapshot_id for one in found] == [2, 3, 4]
    assert [one.changes_rows for one in found] == [True, False, True]
    added = found[0].read(FileAction.ADDED_DATA)[0]
    removed = found[0].read(FileAction.REMOVED_DATA)[0]
    assert added["location"].to_pylist() == [str(made.folder / "b.parquet")]
    assert added["record_count"].to_pylist() == [1]
    assert removed["location"].to_pylist() == [str(made.folder / "a.parquet")]
    assert added["data_sequence_number"].to_pylist() == [2]
    assert handle.format.commits_since(handle, "main", 4) == []
    assert handle.format.commits_since(handle, "main", 9) is None


def test_history_broke_off_where_commits_are_gone(lake, made):
    handle = lake.table(made.name).handle
    assert len(handle.format.commits_since(handle, "main", None)) == 5
    log = {version: file for version, file in handle.log.commits.items() if version > 1}
    object.__setattr__(handle.log, "commits", log)
    assert handle.format.commits_since(handle, "main", None) is None
    assert len(handle.format.commits_since(handle, "main", 2)) == 2


def test_history_has_the_columns_of_delta(lake, made):
    found = lake.table(made.name).history()
    assert found["version"].to_pylist() == [4, 3, 2, 1, 0]
    row = found.slice(2, 1).to_pylist()[0]
    assert row["operation"] == "DELETE"
    assert row["operationMetrics"] == [("numDeletedRows", "1")]
    time = datetime.datetime.fromtimestamp((START + 5001) / 1000, datetime.timezone.utc)
    assert row["timestamp"] == time


def test_odd_commit_infos_are_shown_as_far_as_they_fit(lake, tmp_path):
    table = HandMade(tmp_path / "t").create(
        {"commitInfo": {"operation": 5, "operationParameters": {"a": [1]}, "job": "x"}}
    )
    table.commit({"commitInfo": {"readVersion": "1", "isBlindAppend": 1, "operationMetrics": 3}})
    rows = lake.table(table.name).history().to_pylist()
    assert rows[1]["operation"] is None
    assert rows[1]["operationParameters"] == [("a", json.dumps([1]))]
    assert rows[0]["readVersion"] is rows[0]["isBlindAppend"] is rows[0]["operationMetrics"] is None


def test_each_version_is_read_with_its_own_schema(lake, tmp_path):
    table = HandMade(tmp_path / "t").create()
    table.commit(table.add("a.parquet", people(1)))
    table.commit(metadata([column("id", "long"), column("more", "integer")]))
    found = lake.table(table.name)
    assert found.arrow().to_pylist() == [{"id": 1, "more": None}]
    assert found.arrow(snapshot_id=1).to_pylist() == [{"id": 1, "name": "n1"}]


def test_metadata_tables_are_those_that_make_sense(lake, made):
    found = lake.table(made.name)
    assert found.inspect("snapshots")["snapshot_id"].to_pylist() == [0, 1, 2, 3, 4]
    assert found.refs().to_pylist() == [{"name": "main", "type": "BRANCH", "snapshot_id": 4}]
    assert found.inspect("files", snapshot_id=1)["record_count"].to_pylist() == [2]
    whole = found.inspect("partitions", snapshot_id=3).to_pylist()
    assert [row["file_count"] for row in whole] == [1]
    with pytest.raises(InvalidStatementError, match="expected one of: data_files"):
        found.inspect("manifests")


def test_a_view_reads_the_same_in_another_process(lake, made):
    view = lake.table(made.name).handle.view(snapshot_id=1)
    assert pickle.loads(pickle.dumps(view)).state.files.num_rows == 1


def test_the_command_line_shows_a_table_by_its_path(made, tmp_path, monkeypatch, capsys):
    shown = {}
    for command in ("describe", "history", "snapshots", "files", "health"):
        arguments = [command, str(made.folder), "--warehouse", str(tmp_path / "lake")]
        monkeypatch.setattr("sys.argv", ["rowlake", *arguments, "--output", "json"])
        with pytest.raises(SystemExit) as done:
            cli.main()
        assert not done.value.code
        shown[command] = json.loads(capsys.readouterr().out)
    assert {"name": "# format", "value": "delta", "comment": ""} in shown["describe"]
    assert [row["snapshot_id"] for row in shown["history"]] == ["4", "3", "2", "1", "0"]
    assert len(shown["snapshots"]) == 5
    assert shown["files"] == []
