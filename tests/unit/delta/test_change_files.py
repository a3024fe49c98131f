"""Change data files that rowlake writes where `delta.enableChangeDataFeed` is true."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.errors import CommitConflictError, UnsupportedFeatureError
from rowlake.rowlevel import change as row_change
from tests.delta_logs import actions, people

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
LAYOUTS = {
    "plain": ({}, None),
    "vectors": (VECTORS, None),
    "partitioned": ({}, "name"),
    "mapped": ({"delta.columnMapping.mode": "name", **VECTORS}, "name"),
    "mapped by id": ({"delta.columnMapping.mode": "id"}, None),
}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def path(tmp_path):
    return ("delta", str(tmp_path / "t"))


@pytest.fixture
def table(lake, path):
    found = lake.create_table(path, people(1).schema, properties=FEED)
    found.append(people(1, 2, 3))
    return found


def images(path, version):
    """Return (type, id) of the rows in the change data files of a version."""
    found = []
    for action in actions(path, version).get("cdc", ()):
        assert action["dataChange"] is False
        assert action["path"].startswith("_change_data/")
        file = Path(path[1]) / action["path"]
        assert file.name.startswith("cdc-") and file.stat().st_size == action["size"]
        rows = pq.read_table(file, partitioning=None).to_pylist()
        found += [(row["_change_type"], row["id"]) for row in rows]
    return sorted(found)


def told(table, start, **asked):
    rows = table.changes_arrow(start=start, **asked).to_pylist()
    return sorted((row["_change_type"], row["id"], row["name"]) for row in rows)


def test_an_update_shows_both_images(table, path):
    table.update({"name": "'x'"}, where="id = 2")
    assert images(path, 2) == [("update_postimage", 2), ("update_preimage", 2)]
    assert told(table, 1) == [("update_postimage", 2, "x"), ("update_preimage", 2, "n2")]
    metrics = actions(path, 2)["commitInfo"][0]["operationMetrics"]
    assert metrics["numAddedChangeFiles"] == "1"


def test_a_rewrite_shows_the_rows_that_it_deletes(table, path):
    table.delete("id = 2", mode="copy-on-write")
    assert images(path, 2) == [("delete", 2)]


def test_a_merge_shows_all_that_it_does(table, path):
    source = pa.table({"id": [1, 2, 9], "name": ["x", None, "new"]})
    merge = table.merge(source, on=["id"]).when_matched_delete("s.name IS NULL")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert images(path, 2) == [
        ("delete", 2),
        ("insert", 9),
        ("update_postimage", 1),
        ("update_preimage", 1),
    ]
    assert "numTargetChangeFilesAdded" in actions(path, 2)["commitInfo"][0]["operationMetrics"]


def test_files_that_only_come_or_only_go_need_none(lake, path, tmp_path):
    table = lake.create_table(path, people(1).schema, properties={**FEED, **VECTORS})
    table.append(people(1, 2, 3))
    table.append(people(4))
    table.delete("id = 4")
    table.delete("id = 2", mode="merge-on-read")
    table.upsert(people(7), keys=["id"])
    assert not list((tmp_path / "t").rglob("cdc-*"))
    assert not any("cdc" in actions(path, version) for version in range(6))
    assert told(table, 2) == [("delete", 2, "n2"), ("delete", 4, "n4"), ("insert", 7, "n7")]


def test_whole_files_that_go_beside_a_rewrite_are_shown_too(table, path):
    table.append(people(11, 12))
    table.delete("id >= 3", mode="copy-on-write")
    assert images(path, 3) == [("delete", 3), ("delete", 11), ("delete", 12)]


def test_an_overwrite_is_deletes_and_inserts(table, path):
    table.overwrite(people(8))
    assert "cdc" not in actions(path, 2)
    assert told(table, 1) == [
        ("delete", 1, "n1"),
        ("delete", 2, "n2"),
        ("delete", 3, "n3"),
        ("insert", 8, "n8"),
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_feed_is_that_of_a_table_without_change_files(lake, tmp_path, layout):
    properties, partition_by = LAYOUTS[layout]
    found = []
    for number, more in enumerate(({}, FEED)):
        table = lake.create_table(
            ("delta", str(tmp_path / f"t{number}")),
            people(1).schema,
            properties={**properties, **more},
            partition_by=partition_by or (),
        )
        table.append(people(*range(8)))
        table.append(people(*range(8, 12)))
        table.update({"name": "'moved'"}, where="id in (1, 9)")
        table.delete("id in (2, 3)")
        table.upsert(pa.table({"id": [5, 20], "name": ["n5", "new"]}), keys=["id"])
        merge = table.merge(people(6, 30), on=["id"]).when_matched_delete()
        merge.when_not_matched_insert_all().execute()
        table.rewrite_data_files(options={"rewrite-all": "true"})
        found.append(told(table, 2, keys=["id"]))
    assert found[0] == found[1]
    assert any((tmp_path / "t1" / "_change_data").rglob("cdc-*"))


def replayed(rows, changes):
    """Return rows after changes, which come by commit, deletes first."""
    left = Counter(rows)
    for row in changes.to_pylist():
        value = (row["id"], row["name"])
        if row["_change_type"] in ("delete", "update_preimage"):
            assert left[value] > 0, f"{value} is not there to be deleted"
            left[value] -= 1
        else:
            left[value] += 1
    return sorted(left.elements())


def some_change(table, random, modes):
    """Make one random change."""
    mode, key = random.choice(modes), random.randrange(30)
    some = people(*random.sample(range(30), 4))
    merge = table.merge(some, on=["id"], mode=mode).when_matched_update_all()
    removing = table.merge(some, on=["id"], mode=mode).when_matched_delete()
    random.choice(
        [
            lambda: table.append(some),
            lambda: table.update({"name": f"'u{key}'"}, where=f"id < {key}", mode=mode),
            lambda: table.update({"id": "77"}, where=f"id = {key}", mode=mode),
            lambda: table.delete(f"id % 7 = {key % 7}", mode=mode),
            lambda: table.delete(f"id >= {key}", mode=mode),
            lambda: merge.when_not_matched_insert_all().execute(),
            lambda: removing.when_not_matched_insert_all().execute(),
            lambda: table.rewrite_data_files(options={"rewrite-all": "true"}),
            lambda: table.overwrite(people(key)) if key < 4 else None,
        ]
    )()


@pytest.mark.parametrize("seed", range(5))
def test_random_histories_replay_from_their_changes(lake, path, seed):
    random = Random(seed)
    properties, partition_by = LAYOUTS[random.choice(list(LAYOUTS))]
    given = {**properties, "delta.enableChangeDataFeed": random.choice(["true", "false"])}
    table = lake.create_table(
        path, people(1).schema, properties=given, partition_by=partition_by or ()
    )
    modes = ["auto"]
    if VECTORS.items() <= given.items():
        modes += ["copy-on-write", "merge-on-read"]
    table.append(people(*range(10)))
    for _ in range(10):
        some_change(table, random, modes)
    now = sorted((row["id"], row["name"]) for row in table.arrow().to_pylist())
    assert replayed([], table.changes_arrow()) == now
    assert replayed([], table.changes_arrow(net=True)) == now
    middle = random.randrange(1, table.handle.snapshot_version + 1)
    then = replayed([], table.changes_arrow(end=middle))
    held = table.arrow(snapshot_id=middle).to_pylist()
    assert then == sorted((row["id"], row["name"]) for row in held)
    for asked in ({}, {"net": True}, {"keys": ["id"]}):
        assert replayed(then, table.changes_arrow(start=middle, **asked)) == now


def test_a_commit_that_fails_leaves_no_change_files(table, tmp_path):
    before = sorted((tmp_path / "t").rglob("*"))
    lost = CommitConflictError("UPDATE", "t", "another writer")
    with (
        mock.patch.object(row_change, "_operation", side_effect=lost),
        pytest.raises(CommitConflictError),
    ):
        table.update({"name": "'x'"}, where="id = 2")
    left = [one for one in sorted((tmp_path / "t").rglob("*")) if one.is_file()]
    assert left == [one for one in before if one.is_file()]


def test_writers_of_different_rows_both_show_theirs(lake, path):
    table = lake.create_table(path, people(1).schema, properties={**FEED, **VECTORS})
    table.append(people(1, 2, 3, 4))
    other = lake.table(path)
    table.update({"name": "'a'"}, where="id = 1", mode="merge-on-read")
    other.update({"name": "'b'"}, where="id = 2", mode="merge-on-read")
    assert images(path, 2) == [("update_postimage", 1), ("update_preimage", 1)]
    assert images(path, 3) == [("update_postimage", 2), ("update_preimage", 2)]


def test_rows_of_a_merge_without_change_files_are_refused(table):
    with (
        mock.patch.object(row_change.Done, "images", property(lambda done: done.files[:0])),
        pytest.raises(UnsupportedFeatureError, match="no change data files"),
    ):
        table.update({"name": "'x'"}, where="id = 2")
