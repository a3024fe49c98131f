"""What the metadata of a table reaches, against a plain walk through all of its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import (
    RemoveSnapshotsUpdate,
    SetPartitionStatisticsUpdate,
    SetStatisticsUpdate,
)

from rowlake.catalog.commit import commit_updates
from rowlake.catalog.io import StorageFileIO
from rowlake.iceberg import reachable as module
from rowlake.iceberg.reachable import files_in, manifests_of, metadata_files
from rowlake.maintain.iceberg.purge import locations_of
from rowlake.model.predicate import Leaf, Op
from rowlake.model.reachable import REACHABLE, Kind, distinct, of_kind, places, without
from tests.lakes import SALES, make_lake, sales

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.catalog.handle import IcebergHandle


@pytest.fixture(scope="module", params=["1", "2", "3"], ids=["v1", "v2", "v3"])
def table(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """A table with two specs, a branch, a tag, a rollback, a staged snapshot and deletes."""
    with make_lake(tmp_path_factory.mktemp("lake")) as lake:
        lake.create_namespace("db")
        made = lake.create_table(
            "db.t",
            SALES,
            partition_by=["store"],
            properties={"format-version": request.param, "write.delete.mode": "merge-on-read"},
        )
        made.append(sales(20))
        made.create_tag("first")
        with made.evolve().update_spec() as update:
            update.add_field("sold_on", "month", "sold_month")
        made.append(sales(20, 20))
        made.delete(Leaf(("id",), Op.LT, (3,)), mode="copy-on-write")
        if request.param != "1":
            made.delete(Leaf(("id",), Op.GE, (39,)))
        made.create_branch("audit")
        made.append(sales(5, 100), branch="audit")
        made.append(sales(5, 200), stage_only=True)
        dropped = made.append(sales(5, 300)).snapshot_id
        made.rollback_to(
            snapshot_id=made.handle.metadata.snapshot_by_id(dropped).parent_snapshot_id
        )
        add_statistics(made)
        yield made


def locations(found: pa.Table, *kinds: Kind) -> list[str]:
    rows = found.to_pylist()
    return [row["location"] for row in rows if not kinds or row["kind"] in kinds]


def add_statistics(table: Any) -> None:
    snapshot_id = table.snapshots()[0].snapshot_id
    made = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=f"{table.location}/metadata/a.stats",
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=[],
    )
    of_partitions = PartitionStatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=f"{table.location}/metadata/b.parquet",
        file_size_in_bytes=1,
    )
    updates = [
        SetStatisticsUpdate(statistics=made),
        SetPartitionStatisticsUpdate(partition_statistics=of_partitions),
    ]
    commit_updates(table.handle, updates, ())


def reachable(handle: IcebergHandle) -> pa.Table:
    return pa.concat_tables(handle.format.file_history(handle).reachable())


def walked(handle: IcebergHandle) -> set[str]:
    """Return what a plain walk through the metadata finds, one object after the other."""
    metadata, io = handle.metadata, StorageFileIO(dict(handle.io_properties))
    found = {entry.metadata_file for entry in metadata.metadata_log}
    found |= {handle.metadata_location, f"{metadata.location}/metadata/version-hint.text"}
    found |= {one.statistics_path for one in metadata.statistics}
    found |= {one.statistics_path for one in metadata.partition_statistics}
    for snapshot in metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(io):
            found.add(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(io, discard_deleted=False)
            found |= {entry.data_file.file_path for entry in entries}
    return found


def test_purging_takes_all_that_a_walk_finds(table):
    found = locations_of(table.handle)
    assert len(found) == len(set(found))
    assert set(found) == walked(table.handle)


def test_purging_takes_files_whose_snapshot_is_gone(tmp_path):
    with make_lake(tmp_path / "lake") as lake:
        lake.create_namespace("db")
        made = lake.create_table("db.t", SALES)
        made.append(sales(5))
        first = made.handle.metadata.current_snapshot_id
        (removed,) = made.files()["file_path"].to_pylist()
        made.append(sales(5, 10))
        made.delete("id < 5")
        commit_updates(made.handle, [RemoveSnapshotsUpdate(snapshot_ids=[first])], ())
        handle = lake.table("db.t").handle
        assert removed in locations_of(handle)
        assert set(locations_of(handle)) == walked(handle)
        lake.drop_table("db.t", purge=True)
        assert not Path(removed).exists()


def test_all_that_any_snapshot_names_is_reached_once(table):
    found = reachable(table.handle)
    assert found.schema == REACHABLE
    assert len(set(locations(found))) == found.num_rows
    assert set(locations(found)) == walked(table.handle)
    assert {name.rpartition("/")[2] for name in locations(found, Kind.STATISTICS)} == {
        "a.stats",
        "b.parquet",
    }


def test_the_kinds_of_files_are_told_apart(table):
    handle = table.handle
    found = reachable(handle)
    lists = {snapshot.manifest_list for snapshot in handle.metadata.snapshots}
    assert set(locations(found, Kind.MANIFEST_LIST)) == lists
    assert handle.metadata_location in locations(found, Kind.METADATA)
    assert len(locations(found, Kind.METADATA)) == len(handle.metadata.metadata_log) + 2
    deletes = locations(found, Kind.POSITION_DELETES)
    assert len(deletes) == (0 if table.format_version == 1 else 1)
    data = locations(found, Kind.DATA)
    assert all(name.endswith(".parquet") for name in data)
    assert all("/data/" in name for name in data)
    assert metadata_files(handle).num_rows == len(locations(found)) - len(data) - len(
        deletes
    ) - len(locations(found, Kind.MANIFEST))


def test_a_snapshot_reaches_what_it_reads(table):
    handle = table.handle
    for snapshot in handle.metadata.snapshots:
        manifests = manifests_of(handle, [snapshot.snapshot_id])
        found = locations(files_in(handle, manifests), Kind.DATA)
        told = table.inspect("data_files", snapshot_id=snapshot.snapshot_id)
        assert sorted(found) == sorted(told["file_path"].to_pylist())


def test_manifests_of_several_snapshots_come_once(table):
    every = manifests_of(table.handle)["location"].to_pylist()
    told = table.inspect("all_manifests")["path"].to_pylist()
    assert sorted(every) == sorted(set(told))
    assert manifests_of(table.handle, []).num_rows == 0


def test_reading_part_by_part_finds_the_same(table, monkeypatch):
    manifests = manifests_of(table.handle)
    whole = files_in(table.handle, manifests)
    monkeypatch.setattr(module, "PART_BYTES", 1)
    assert sum(1 for _ in module.some_at_a_time(manifests)) == manifests.num_rows
    assert sorted(locations(files_in(table.handle, manifests))) == sorted(locations(whole))


def test_an_empty_table_reaches_its_metadata_only(tmp_path):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("db")
        made = lake.create_table("db.t", SALES)
        found = reachable(made.handle)
        assert set(found["kind"].to_pylist()) == {int(Kind.METADATA)}
        assert files_in(made.handle, manifests_of(made.handle)).num_rows == 0


def test_a_difference_sees_through_spellings():
    ours = of_kind(["s3a://b/x", "s3a://b/y", "file:/a/b", "/a/c", "gs://b/z"], Kind.DATA)
    others = of_kind(["s3://b/x", "file:///a/c", "/a/b", "gcs://b/z"], Kind.DATA)
    assert locations(without(ours, others)) == ["s3a://b/y"]
    assert locations(without(ours, REACHABLE.empty_table())) == locations(ours)
    odd = ["S3N://b/s3a://x", "file:///p%20q", "hdfs://h/file:/x", "ABFSS://c@h/x", "s3data/y"]
    plain = ["s3://b/s3a://x", "/p%20q", "hdfs://h/file:/x", "abfs://c@h/x", "s3data/y"]
    assert places(pa.chunked_array([odd])).to_pylist() == plain


def test_files_that_come_twice_are_one():
    twice = pa.concat_tables([of_kind(["a", "b", "a"], Kind.DATA), of_kind(["p"], Kind(1))] * 2)
    assert distinct(twice).to_pylist() == [
        {"location": "a", "kind": 0},
        {"location": "b", "kind": 0},
        {"location": "p", "kind": 1},
    ]
