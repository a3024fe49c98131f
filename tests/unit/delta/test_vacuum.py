"""VACUUM of Delta tables: what no version within the retention refers to goes, nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.delta_logs import PROTOCOL
from tests.delta_writing import WrittenTable
from tests.lakes import rows_of

VECTORS = {"delta.enableDeletionVectors": "true"}
LONG_AGO = time.time() - 30 * 86_400


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        found.create_namespace("ns")
        yield found


def people(*ids: int) -> pa.Table:
    names = pa.array([f"c{i % 2}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def make(lake, *, partition_by=(), **properties):
    properties = {key.replace("__", "."): one for key, one in properties.items()} | VECTORS
    return lake.create_table(
        "ns.t", people().schema, partition_by=partition_by, properties=properties, format="delta"
    )


def age(*paths) -> None:
    """Make files look as if they were written long ago."""
    for path in paths:
        os.utime(path, (LONG_AGO, LONG_AGO))


def age_all(table) -> None:
    age(*(one for one in Path(table.location).rglob("*") if one.is_file()))


def data_files(table) -> set[str]:
    root = Path(table.location)
    return {str(one) for one in root.rglob("*") if one.is_file() and "_delta_log" not in one.parts}


def vacuum_now(table, **options):
    return table.vacuum(retention_hours=0, enforce_retention_duration=False, **options)


@pytest.mark.parametrize("partition_by", [(), "name"])
def test_removed_files_and_vectors_go_and_live_ones_stay(lake, partition_by):
    table = make(lake, partition_by=partition_by)
    table.append(people(*range(20)))
    table.append(people(*range(20, 40)))
    table.delete("id = 3")
    table.delete("id = 4")
    table.delete("id >= 20")
    age_all(table)
    before, live = rows_of(table.arrow()), set(table.files()["file_path"].to_pylist())
    listed = vacuum_now(table)
    assert listed.dry_run
    assert data_files(table) >= set(listed.path) > set()
    assert table.handle.snapshot_version == 5
    done = vacuum_now(table, dry_run=False)
    assert set(done.path) == set(listed.path)
    assert (done.orphan_files_count, done.failures) == (0, ())
    left = data_files(table)
    assert left.isdisjoint(done.path)
    assert left == live
    assert rows_of(table.arrow()) == before
    assert lake.table("ns.t").vacuum(dry_run=False).files_count == 0


def test_history_tells_of_it_as_delta_does(lake):
    table = make(lake)
    table.append(people(1))
    table.truncate()
    age_all(table)
    vacuum_now(table, dry_run=False)
    end, start = table.history().slice(0, 2).to_pylist()
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert dict(start["operationParameters"]) == {
        "retentionCheckEnabled": "false",
        "defaultRetentionMillis": "604800000",
        "specifiedRetentionMillis": "0",
    }
    assert dict(start["operationMetrics"])["numFilesToDelete"] == "1"
    assert dict(end["operationParameters"]) == {"status": "COMPLETED"}
    assert dict(end["operationMetrics"])["numDeletedFiles"] == "1"
    assert table.arrow().num_rows == 0


def test_versions_within_the_retention_stay_readable(lake):
    table = make(lake)
    table.append(people(*range(10)))
    table.delete("id = 3")
    table.delete("id > 3")
    age_all(table)  # written long ago, removed just now
    assert table.vacuum(dry_run=False).path == ()
    assert [table.arrow(snapshot_id=at).num_rows for at in (1, 2, 3)] == [10, 9, 3]


def test_a_longer_retention_than_the_table_has_is_kept_too(lake):
    table = make(lake, delta__checkpointInterval="2")
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    for first in range(4):
        table.append(people(first))
    table.truncate()
    table.append(people(9))  # a checkpoint that has forgotten the removes
    age(*data_files(table))
    assert table.vacuum(retention_hours=24, dry_run=False).path == ()
    assert table.vacuum(dry_run=False).files_count == 4
    assert rows_of(table.arrow()) == [(9, "c1")]


def test_untracked_files_go_when_they_are_old(lake):
    table = make(lake, partition_by="name")
    table.append(people(1, 2))
    root = Path(table.location)
    stray, young = root / "name=c1" / "stray.parquet", root / "young.parquet"
    change = root / "_change_data" / "cdc-1.parquet"
    hidden = [root / "_temporary" / "x.parquet", root / ".hidden", root / "_SUCCESS"]
    for path in (stray, young, change, *hidden):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    age(stray, change, *hidden)
    done = table.vacuum(dry_run=False)
    assert set(done.path) == {str(stray), str(change)}
    assert not stray.exists()
    assert all(path.exists() for path in (young, *hidden))


def test_change_files_of_recent_commits_stay(tmp_path, lake):
    made = WrittenTable(tmp_path / "t").create()
    body = {"path": "_change_data/a%20b.parquet", "partitionValues": {}, "size": 1}
    made.commit("UPDATE", {"cdc": {**body, "dataChange": False}})
    (made.folder / "_change_data").mkdir()
    paths = [made.folder / "_change_data" / name for name in ("a b.parquet", "c.parquet")]
    for path in paths:
        path.write_bytes(b"x")
    age(*paths)
    assert lake.table(made.name).vacuum(dry_run=False).path == (str(paths[1]),)


def test_nothing_of_another_table_below_goes(lake, tmp_path):
    table = make(lake)
    table.append(people(1))
    inner = f"delta.`{table.location}/inner`"
    lake.create_table(inner, people().schema).append(people(2))
    iceberg = lake.create_table("ns.i", people().schema, location=f"{table.location}/deep/i")
    iceberg.append(people(3))
    age_all(table)
    done = vacuum_now(table, dry_run=False)
    assert done.path == ()
    assert len(done.skipped_folders) == 2
    assert rows_of(lake.table(inner).arrow()) == rows_of(people(2))
    assert rows_of(iceberg.arrow()) == rows_of(people(3))


def test_an_iceberg_table_in_the_same_folder_keeps_its_files(lake):
    table = make(lake)
    table.append(people(1))
    table.truncate()
    iceberg = lake.create_table("ns.i", people().schema, location=table.location)
    iceberg.append(people(3))
    age_all(table)
    assert vacuum_now(table, dry_run=False).files_count == 1  # that of the Delta log
    assert rows_of(iceberg.arrow()) == rows_of(people(3))


def test_links_are_not_followed_and_linked_files_stay(lake, tmp_path):
    table = make(lake)
    root, outside = Path(table.location), tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.parquet").write_bytes(b"x")
    (root / "link").symlink_to(outside)
    (root / "real").mkdir()
    table.append(people(1))
    moved = Path(table.files()["file_path"][0].as_py())
    moved.rename(root / "real" / moved.name)  # where the log says, by way of a link
    moved.symlink_to(root / "real" / moved.name)
    (root / "also").symlink_to(root / "real")
    age_all(table)
    age(outside / "precious.parquet")
    done = vacuum_now(table, dry_run=False)
    assert (outside / "precious.parquet").exists()
    assert done.left_foreign_count == 3


def test_files_that_the_log_names_through_a_link_stay(tmp_path, lake):
    made = WrittenTable(tmp_path / "t").create()
    (made.folder / "real").mkdir()
    (made.folder / "also").symlink_to(made.folder / "real")
    made.append(made.write(people(1), file="also/a.parquet"))
    odd = made.write(people(2), file="real/b.parquet")
    place = str(made.folder / "real" / ".." / "real" / "b.parquet")
    odd = odd.set_column(odd.schema.get_field_index("location"), "location", pa.array([place]))
    made.append(odd)
    stray = made.folder / "real" / "stray.parquet"
    stray.write_bytes(b"x")
    age(*made.folder.rglob("*.parquet"))
    assert vacuum_now(lake.table(made.name), dry_run=False).path == (str(stray),)


def test_a_retention_below_the_tables_own_is_refused(lake):
    table = make(lake)
    with pytest.raises(InvalidStatementError, match="168 hours"):
        table.vacuum(retention_hours=24)
    with pytest.raises(InvalidStatementError, match="negative"):
        table.vacuum(retention_hours=-1, enforce_retention_duration=False)
    with pytest.raises(InvalidStatementError, match="not both"):
        table.vacuum(24, retention_hours=24)
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 12 hours"})
    assert table.vacuum(retention_hours=12).path == ()


def test_unknown_features_of_writers_are_refused(tmp_path, lake):
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []}
    protocol = {"protocol": {**features, "writerFeatures": ["someFutureFeature"]}}
    made = WrittenTable(tmp_path / "t").create(protocol=protocol)
    with pytest.raises(UnsupportedFeatureError, match="someFutureFeature"):
        lake.table(made.name).vacuum()


def test_a_folder_that_holds_the_warehouse_is_refused(tmp_path):
    made = WrittenTable(tmp_path).create(protocol=PROTOCOL)
    stray = tmp_path / "stray.parquet"
    stray.write_bytes(b"x")
    age(stray)
    with (
        connect(str(tmp_path / "lake")) as lake,
        pytest.raises(UnsupportedFeatureError, match="warehouse"),
    ):
        vacuum_now(lake.table(made.name), dry_run=False)
    assert stray.exists()


def test_files_outside_of_the_folder_never_go(tmp_path, lake):
    source = WrittenTable(tmp_path / "source").create()
    source.rows(people(1))
    clone = WrittenTable(tmp_path / "clone").create()
    written = source.write(people(2))
    clone.append(written)
    place = written["location"][0].as_py()
    clone.remove(place)
    age(place)
    assert vacuum_now(lake.table(clone.name), dry_run=False).path == ()
    assert Path(place).exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_another_writer_brings_back_meanwhile_stays(tmp_path, lake, monkeypatch, when):
    from rowlake.maintain.delta import vacuum as vacuuming

    made = WrittenTable(tmp_path / "t").create()
    first, second = made.write(people(1)), made.write(people(2))
    made.append(first, second)
    places = [one["location"][0].as_py() for one in (first, second)]
    made.remove(*places)
    age(*places)
    table = lake.table(made.name)
    told = vacuuming._told

    def told_late(handle, said):
        if said.operation == "VACUUM START" and when == "before":
            made.append(first)
        after = told(handle, said)
        if said.operation == "VACUUM START" and when == "after":
            made.append(first)
        return after

    monkeypatch.setattr(vacuuming, "_told", told_late)
    assert vacuum_now(table, dry_run=False).path == (places[1],)
    assert rows_of(table.arrow()) == rows_of(people(1))


def test_a_failure_is_told_and_raised(lake, monkeypatch):
    from rowlake.maintain.delta import vacuum as vacuuming

    table = make(lake)
    table.append(people(1))
    table.truncate()
    age_all(table)

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(vacuuming, "_looked_at_again", fail)
    with pytest.raises(KeyboardInterrupt):
        vacuum_now(table, dry_run=False)
    told = lake.table("ns.t").history().to_pylist()[0]
    assert dict(told["operationParameters"]) == {"status": "FAILED"}
