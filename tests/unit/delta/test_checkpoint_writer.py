"""Checkpoints: a version read from one is the version read from its commits."""

from __future__ import annotations

import datetime
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rowlake.delta import checkpoint_writer, live_files
from rowlake.delta.checkpoint_rows import FileRows
from rowlake.delta.checkpoint_writer import live_removes, write_checkpoint
from rowlake.delta.last_checkpoint import canonical, checksum_of, write_last_checkpoint
from rowlake.delta.live_files import with_stats
from rowlake.delta.log_files import list_log
from rowlake.delta.schema import columns_of
from rowlake.delta.state import LogState
from rowlake.delta.statistics import Statistics, all_ids
from rowlake.storage.files import Storage
from tests.delta_logs import features
from tests.delta_writing import NOW_MS, WrittenTable

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "delta"
TABLES = sorted(one.parent.name for one in GOLDEN.glob("*/expected.json"))
WEEK_MS = 7 * 86_400_000
UTC = datetime.timezone.utc
V2 = features("deletionVectors", "v2Checkpoint")


def state_of(folder):
    storage = Storage()
    return LogState(str(folder), list_log(str(folder), storage).segment(), storage)


def content(state):
    """Return all that a version is made of, without where it was read."""
    columns = columns_of(state.metadata, state.table)
    files = with_stats(state.files, state, columns).drop_columns(["source", "row", "data_change"])
    tracked = pc.is_valid(files["base_row_id"])
    index = files.schema.get_field_index("commit_version")
    versions = pc.if_else(tracked, files["commit_version"], None)
    files = files.set_column(index, "commit_version", versions).sort_by("location")
    return state.metadata, state.protocol, state.actions.domains, files.to_pylist()


@pytest.mark.parametrize("name", TABLES)
def test_a_checkpoint_holds_what_the_version_is_made_of(tmp_path, name):
    folder = shutil.copytree(GOLDEN / name, tmp_path / "t")
    before = state_of(folder)
    expected, statistics = content(before), bounds(before)
    for old in (folder / "_delta_log").glob(f"{before.version:020d}.checkpoint*"):
        old.unlink()
    write_checkpoint(state_of(folder), NOW_MS)
    after = state_of(folder)
    assert not after.segment.commits
    found = content(after)
    assert found[:3] == expected[:3]
    if name == "several_parts":  # its statistics were columns, and are formatted again
        assert [one[0] for one in bounds(after)] == [one[0] for one in statistics]
    else:
        assert bounds(after) == statistics
        assert found[3] == expected[3]


def bounds(state):
    columns = columns_of(state.metadata, state.table)
    maps = Statistics(state.files, state, columns, all_ids(columns)).maps()
    places = state.files["location"].to_pylist()
    rows = zip(places, *(one.to_pylist() for one in maps.values()), strict=True)
    return sorted(rows, key=lambda one: one[0])


def grown(folder, protocol=None, **configuration):
    given = {} if protocol is None else {"protocol": protocol}
    table = WrittenTable(folder).create(
        [("id", "long"), ("day", "date")],
        ("day",),
        checkpointInterval="100",
        **given,
        **configuration,
    )
    for number in range(3):
        table.rows(pa.table({"id": [number]}), day=datetime.date(2024, 1, 1 + number))
    return table


def checkpoint_of(table):
    (found,) = list_log(str(table.folder), table.storage).checkpoints.values()
    return pq.read_table(found.files[0].location)


def test_columns_are_those_of_the_protocol(tmp_path):
    table = grown(tmp_path / "t")
    write_checkpoint(table.state, NOW_MS)
    rows = checkpoint_of(table)
    assert rows.num_rows == 5
    (first, *_) = [one for one in rows["add"].to_pylist() if one]
    assert first["partitionValues_parsed"] == {"day": datetime.date(2024, 1, 1)}
    assert first["stats_parsed"] == {
        "numRecords": 1,
        "minValues": {"id": 0},
        "maxValues": {"id": 0},
        "nullCount": {"id": 0},
    }
    assert first["dataChange"] is False
    assert json.loads(first["stats"])["numRecords"] == 1
    for row in rows.to_pylist():
        assert sum(one is not None for one in row.values()) == 1


@pytest.mark.parametrize(
    ("as_json", "as_struct", "expected"),
    [
        ("true", "false", {"stats"}),
        ("false", "true", {"stats_parsed", "partitionValues_parsed"}),
        ("false", "false", {"stats"}),  # without any, files could not be pruned, nor counted
    ],
)
def test_statistics_have_the_form_that_properties_ask_for(tmp_path, as_json, as_struct, expected):
    chosen = {"checkpoint.writeStatsAsJson": as_json, "checkpoint.writeStatsAsStruct": as_struct}
    table = grown(tmp_path / "t", **chosen)
    before = bounds(table.state)
    write_checkpoint(table.state, NOW_MS)
    known = {one.name for one in checkpoint_of(table).schema.field("add").type}
    both = {"stats", "stats_parsed", "partitionValues_parsed"}
    assert known & both == expected
    assert bounds(table.state) == before
    table.rows(pa.table({"id": [9]}), day=None)
    write_checkpoint(table.state, NOW_MS)
    places = {one[0] for one in before}
    assert [one for one in bounds(table.state) if one[0] in places] == before


def test_a_second_checkpoint_takes_over_from_the_first(tmp_path):
    table = grown(tmp_path / "t")
    table.commit("WRITE", {"txn": {"appId": "a", "version": 3, "lastUpdated": 5}})
    write_checkpoint(table.state, NOW_MS)
    table.remove(table.state.files["location"][1].as_py())
    table.rows(pa.table({"id": [9]}), day=None)
    expected = content(table.state)
    write_checkpoint(table.state, NOW_MS)
    table.forget_commits()
    state = table.state
    assert content(state) == expected
    assert state.actions.transactions == {"a": 3}
    assert state.actions.transaction_times == {"a": 5}
    assert state.files.num_rows == 3
    assert live_removes(state, NOW_MS).num_rows == 1


@pytest.mark.parametrize(("age_ms", "is_kept"), [(WEEK_MS - 1, True), (WEEK_MS, False)])
def test_removes_are_kept_until_files_may_be_deleted(tmp_path, age_ms, is_kept):
    table = grown(tmp_path / "t")
    place = table.state.files["location"][0].as_py()
    table.remove(place)
    write_checkpoint(table.state, NOW_MS + age_ms)
    removed = [one for one in checkpoint_of(table)["remove"].to_pylist() if one]
    assert [one["path"] for one in removed] == ([Path(place).name] if is_kept else [])
    # Another checkpoint finds them in the first.
    table.commit("WRITE")
    assert live_removes(table.state, NOW_MS + age_ms).num_rows == len(removed)


def test_a_file_that_is_added_again_is_removed_no_more(tmp_path):
    table = grown(tmp_path / "t")
    (add,) = (one["add"] for one in table.actions(1) if "add" in one)
    table.remove(str(table.folder / add["path"]))
    write_checkpoint(table.state, NOW_MS)
    table.commit("RESTORE", {"add": add})
    assert not live_removes(table.state, NOW_MS).num_rows


def test_transactions_expire_where_the_table_says_so(tmp_path):
    table = grown(tmp_path / "t", setTransactionRetentionDuration="interval 1 day")
    for name, at in (("old", 5), ("new", NOW_MS), ("untold", None)):
        table.commit("WRITE", {"txn": {"appId": name, "version": 1, "lastUpdated": at}})
    write_checkpoint(table.state, NOW_MS)
    table.forget_commits()
    assert set(table.state.actions.transactions) == {"new", "untold"}


def test_v2_checkpoints_keep_files_in_sidecars(tmp_path):
    table = grown(tmp_path / "t", V2, checkpointPolicy="v2")
    expected = content(table.state)
    write_checkpoint(table.state, NOW_MS)
    (sidecar,) = (table.log / "_sidecars").iterdir()
    (top,) = table.log.glob("*.checkpoint.*.parquet")
    rows = pq.read_table(top)
    (named,) = [one for one in rows["sidecar"].to_pylist() if one]
    assert named["path"] == sidecar.name
    assert named["sizeInBytes"] == sidecar.stat().st_size
    (meta,) = [one for one in rows["checkpointMetadata"].to_pylist() if one]
    assert meta["version"] == 3
    assert not [one for one in rows["add"].to_pylist() if one]
    table.forget_commits()
    assert content(table.state) == expected


def test_v2_checkpoints_need_the_feature(tmp_path):
    table = grown(tmp_path / "t", checkpointPolicy="v2")
    write_checkpoint(table.state, NOW_MS)
    assert [one.name for one in table.log.glob("*.checkpoint*")] == [f"{3:020d}.checkpoint.parquet"]


def test_many_files_go_to_several_sidecars(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_ROWS", 2)
    monkeypatch.setattr(live_files, "STATS_ROWS", 1)
    table = grown(tmp_path / "t", V2, checkpointPolicy="v2")
    expected = content(table.state)
    write_checkpoint(table.state, NOW_MS)
    assert len(list((table.log / "_sidecars").iterdir())) == 2
    assert content(table.state) == expected


def test_a_table_without_files_has_a_checkpoint(tmp_path):
    for number, given in enumerate(({}, {"protocol": V2, "checkpointPolicy": "v2"})):
        table = WrittenTable(tmp_path / f"t{number}").create(**given)
        table.commit("WRITE")
        write_checkpoint(table.state, NOW_MS)
        table.forget_commits()
        assert table.state.files.num_rows == 0
        assert table.state.metadata.schema["fields"]


def test_a_table_without_statistics_has_a_checkpoint(tmp_path):
    table = grown(tmp_path / "t", dataSkippingNumIndexedCols="0")
    write_checkpoint(table.state, NOW_MS)
    (first, *_) = [one for one in checkpoint_of(table)["add"].to_pylist() if one]
    assert first["stats_parsed"] == {"numRecords": 1}


def test_the_layout_of_adds_does_not_depend_on_the_files(tmp_path):
    table = grown(tmp_path / "t")
    rows = FileRows(table.state, table.columns)
    assert rows.add_type.field("stats_parsed").type == rows.parsed_type


def hint(table):
    return json.loads((table.log / "_last_checkpoint").read_text())


def test_the_hint_names_the_checkpoint(tmp_path):
    table = grown(tmp_path / "t")
    write_checkpoint(table.state, NOW_MS)
    found = hint(table)
    (file,) = table.log.glob("*.checkpoint.parquet")
    expected = {
        "version": 3,
        "size": 5,
        "sizeInBytes": file.stat().st_size,
        "numOfAddFiles": 3,
    }
    assert found == {**expected, "checksum": checksum_of(expected)}


def test_the_hint_never_goes_back(tmp_path):
    table = grown(tmp_path / "t")
    for version in (7, 5):
        write_last_checkpoint(str(table.folder), {"version": version}, table.storage)
    assert hint(table)["version"] == 7
    (table.log / "_last_checkpoint").write_text("no json")
    write_last_checkpoint(str(table.folder), {"version": 6}, table.storage)
    assert hint(table)["version"] == 6


def test_the_hint_takes_hadoops_checksum_of_an_older_one_away(tmp_path):
    table = grown(tmp_path / "t")
    (table.log / "._last_checkpoint.crc").write_bytes(b"crc")
    write_checkpoint(table.state, NOW_MS)
    assert not (table.log / "._last_checkpoint.crc").exists()


def test_the_checksum_is_that_of_the_protocol():
    sample = {
        "k0": "'v 0'",
        "checksum": "adsaskfljadfkjadfkj",
        "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
    }
    assert checksum_of(sample) == "6a92d155a59bf2eecbd4b4ec7fd1f875"
    assert canonical({"a": [None, True, 2.5], "b": "é "}) == (
        '"a"+0=null,"a"+1=true,"a"+2=2.5,"b"="%C3%A9%20"'
    )


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/_delta_log/_last_checkpoint")), ids=str)
def test_the_checksum_is_that_of_delta_on_spark(path):
    found = json.loads(path.read_text())
    assert checksum_of(found) == found["checksum"]
