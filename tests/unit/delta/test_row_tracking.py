"""Rows of Delta tables keep their ids and the versions of their last change."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import rowlake
from tests.delta_logs import actions, people

TRACKED = {"delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


@pytest.fixture
def lake(tmp_path):
    with rowlake.connect(tmp_path / "warehouse") as made:
        yield made


@pytest.fixture
def path(tmp_path):
    return ("delta", str(tmp_path / "t"))


def lineage(table) -> dict[int, tuple[int, int]]:
    rows = table.arrow(columns=LINEAGE).to_pylist()
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}


def tracked(lake, path, *, mode: str, **more: str):
    properties = {**TRACKED, **(VECTORS if mode == "merge-on-read" else {}), **more}
    table = lake.create_table(path, people(1).schema, properties=properties)
    table.append(people(0, 1, 2, 3))
    table.append(people(4, 5, 6, 7))
    return table


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_rows_that_are_rewritten_keep_their_ids(lake, path, mode, mapping):
    more = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    table = tracked(lake, path, mode=mode, **more)
    expected = {n: (n, 1 if n < 4 else 2) for n in range(8)}
    assert lineage(table) == expected
    table.update({"name": "'u'"}, where="id = 1", mode=mode)
    expected[1] = (1, 3)
    assert lineage(table) == expected
    table.delete("id = 5", mode=mode)
    del expected[5]
    assert lineage(table) == expected
    table.upsert(people(2, 6, 20).set_column(1, "name", [["x"] * 3]), keys=["id"], mode=mode)
    new = lineage(table).pop(20)
    assert new[1] == 5 and new[0] >= 8
    expected |= {2: (2, 5), 6: (6, 5), 20: new}
    assert lineage(table) == expected
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert lineage(table) == expected
    table.rewrite_data_files("zorder", "name, id", options={"rewrite-all": "true"})
    assert lineage(table) == expected
    assert lineage(lake.table(path)) == expected


def test_the_mark_covers_every_file_and_ids_are_never_given_twice(lake, path):
    table = tracked(lake, path, mode="copy-on-write")
    table.update({"name": "'u'"}, where="id < 6")
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.append(people(8))
    mark = -1
    for version in range(1, table.snapshots()[-1].snapshot_id + 1):
        found = actions(path, version)
        for add in found.get("add", ()):
            assert add["baseRowId"] > mark and add["defaultRowCommitVersion"] == version
            mark = add["baseRowId"] + json.loads(add["stats"])["numRecords"] - 1
        (domain,) = found["domainMetadata"]
        assert json.loads(domain["configuration"])["rowIdHighWaterMark"] == mark
        assert found["commitInfo"][0]["tags"]["delta.rowTracking.preserved"] == "true"
    assert lineage(table)[8][0] == mark


def test_a_lost_race_gives_new_ids_to_new_rows_alone(lake, path):
    table = tracked(lake, path, mode="merge-on-read")
    other = lake.table(path)
    table.update({"name": "'x'"}, where="id = 0")
    other.update({"name": "'y'"}, where="id = 3")
    found = lineage(lake.table(path))
    assert found[0] == (0, 3) and found[3] == (3, 4)
    assert len({one for one, _ in found.values()}) == len(found)


def test_a_table_that_exists_begins_to_track_rows(lake, path):
    table = lake.create_table(path, people(1).schema, properties=VECTORS)
    table.append(people(0, 1, 2))
    table.append(people(3, 4))
    table.delete("id = 1", mode="merge-on-read")
    assert set(lineage(table).values()) == {(None, None)}
    table.set_properties(TRACKED)
    table = lake.table(path)
    assert sorted(one for one, _ in lineage(table).values()) in ([0, 2, 3, 4], [0, 1, 2, 4])
    assert {one for _, one in lineage(table).values()} == {4}
    before = lineage(table)
    table.update({"name": "'x'"}, where="id = 3")
    assert lineage(table) == {**before, 3: (before[3][0], 5)}
    assert {row["id"] for row in table.arrow().to_pylist()} == {0, 2, 3, 4}


def test_updates_are_paired_by_row_ids(lake, path):
    table = tracked(lake, path, mode="copy-on-write")
    table.update({"id": "101", "name": "'u'"}, where="id = 1")
    table.delete("id = 7")
    rows = table.changes(start=2, end=4).toArrow().to_pylist()
    found = sorted((row["_change_type"], row["id"]) for row in rows)
    assert found == [("delete", 7), ("update_postimage", 101), ("update_preimage", 1)]


def test_change_data_files_hold_no_row_ids(lake, path):
    table = tracked(lake, path, mode="copy-on-write", **{"delta.enableChangeDataFeed": "true"})
    table.update({"name": "'u'"}, where="id = 1")
    (cdc,) = actions(path, 3)["cdc"]
    assert pq.read_schema(Path(path[1]) / cdc["path"]).names == ["id", "name", "_change_type"]


@pytest.mark.parametrize("net", [False, True])
def test_changes_are_read_from_change_data_files_beside_row_ids(lake, path, net):
    table = tracked(lake, path, mode="merge-on-read", **{"delta.enableChangeDataFeed": "true"})
    table.update({"name": "'u'"}, where="id = 1")
    table.delete("id = 6", mode="merge-on-read")
    rows = table.changes(start=2, net=net).toArrow().to_pylist()
    found = sorted((row["_change_type"], row["id"]) for row in rows)
    update = ["delete", "insert"] if net else ["update_postimage", "update_preimage"]
    assert found == sorted([("delete", 6), *((kind, 1) for kind in update)])


def test_statistics_know_no_row_ids(lake, path):
    table = tracked(lake, path, mode="copy-on-write")
    table.update({"name": "'u'"}, where="id = 1")
    (add,) = actions(path, 3)["add"]
    assert set(json.loads(add["stats"])["minValues"]) == {"id", "name"}
