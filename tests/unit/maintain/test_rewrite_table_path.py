"""rewrite_table_path: the staged copy, once its files are copied, is the same table elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg import path_rewrite
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.prefixes import Prefixes
from rowlake.maintain.iceberg import table_path
from rowlake.maintain.iceberg.path_kernel import PathTask, path_kernel
from rowlake.model.files import Content, DeleteFile
from rowlake.scan.deletes import all_positions
from rowlake.storage.files import Storage
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.scanning import write_avro
from tests.unit.sql.lake_without_spark import lake_without_spark

pytestmark = pytest.mark.iceberg

NAME = "shop.sales"


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


def filled(lake, version="2", **properties):
    given = {"format-version": version, **properties}
    table = lake.create_table(NAME, SALES, partition_by=["store"], properties=given)
    table.append(sales(20))
    table.append(sales(20, first=20))
    return table


def changed(table):
    """Leave deletes of all kinds, statistics and removed files behind."""
    table.delete("id IN (1, 5, 9)", mode="merge-on-read")
    table.upsert(sales(2), keys=["id"], deletes="equality")
    table.compute_table_stats(columns=["id"])
    table.compute_partition_stats()
    table.delete("store = 3")
    table.rewrite_manifests()
    table.append(sales(4, first=100))


def copied(report) -> None:
    for source, target in report.files:
        place = Path(target.removeprefix("file://"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source.removeprefix("file://"), place)


def moved(lake, table, report, target):
    """Register the copy, without the original being there."""
    away = Path(table.location.removeprefix("file://"))
    hidden = away.rename(away.with_name("hidden"))
    metadata = f"{target}/metadata/{report.latest_version}"
    found = lake.register_table("shop.moved", metadata)
    hidden_rows = rows_of(found.arrow())
    hidden.rename(away)
    return found, hidden_rows


def all_locations(table) -> set[str]:
    metadata = table.handle.metadata
    found = {str(one.manifest_list) for one in metadata.snapshots}
    found |= {entry.metadata_file for entry in metadata.metadata_log}
    found |= {one.statistics_path for one in metadata.statistics}
    found |= {one.statistics_path for one in metadata.partition_statistics}
    found |= set(table.inspect("all_manifests")["path"].to_pylist())
    return found | set(table.inspect("all_files")["file_path"].to_pylist())


def check_lengths(table):
    for snapshot in table.handle.metadata.snapshots:
        for row in read_manifest_list(snapshot.manifest_list, Storage({})).to_pylist():
            assert len(Storage({}).read(row["location"])) == row["manifest_length"]
    files = table.inspect("files")
    for place, size in zip(
        files["file_path"].to_pylist(), files["file_size_in_bytes"].to_pylist(), strict=True
    ):
        assert len(Storage({}).read(place)) == size


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_the_copy_is_the_same_table(lake, tmp_path, version):
    table = filled(lake, version)
    if version != "1":
        changed(table)
    rows, before = rows_of(table.arrow()), files_in(table.location)
    snapshots = table.snapshots()
    target = f"file://{tmp_path}/elsewhere/t"

    report = table.rewrite_table_path(table.location, target, staging_location=f"{tmp_path}/stage")

    assert files_in(table.location) == before
    assert report.latest_version == table.handle.metadata_location.rsplit("/", 1)[-1]
    assert report.file_list_location == f"{tmp_path}/stage/file-list"
    lines = Path(report.file_list_location).read_text().splitlines()
    assert lines == [",".join(pair) for pair in report.files]
    listed = set(table.inspect("all_manifests")["path"].to_pylist())
    assert report.rewritten_manifest_file_paths_count == len(listed)
    deletes = table.inspect("all_delete_files")
    positions = {
        (row["file_path"], row["content_offset"])
        for row in deletes.to_pylist()
        if row["content"] == 1
    }
    assert report.rewritten_delete_file_paths_count == len(positions)

    copied(report)
    found, seen = moved(lake, table, report, target)
    assert seen == rows
    assert all(place.startswith(f"{target}/") for place in all_locations(found))
    assert [one.snapshot_id for one in found.snapshots()] == [one.snapshot_id for one in snapshots]
    for snapshot in snapshots:
        at = {"snapshot_id": snapshot.snapshot_id}
        assert rows_of(found.arrow(**at)) == rows_of(table.arrow(**at))
    if version == "3":
        ids = ["id", "_row_id", "_last_updated_sequence_number"]
        assert rows_of(found.arrow(columns=ids)) == rows_of(table.arrow(columns=ids))
    check_lengths(found)
    found.append(sales(3, first=200))
    assert found.arrow().num_rows == len(rows) + 3


@pytest.mark.parametrize("version", ["2", "3"])
def test_what_came_after_a_version_is_staged_alone(lake, tmp_path, version):
    table = filled(lake, version)
    table.delete("id = 1", mode="merge-on-read")
    target = f"{tmp_path}/elsewhere/t"
    middle = table.handle.metadata_location.rsplit("/", 1)[-1]
    first = table.rewrite_table_path(table.location, target)
    copied(first)
    changed(table)
    rows = rows_of(table.arrow())

    second = table.rewrite_table_path(table.location, target, start_version=middle)

    new_sources = {source for source, _ in second.files}
    assert not new_sources & {source for source, _ in first.files}
    targets = {pair[1] for pair in first.files} & {pair[1] for pair in second.files}
    assert targets == set()
    assert second.rewritten_manifest_file_paths_count > 0
    copied(second)
    found, seen = moved(lake, table, second, target)
    assert seen == rows
    check_lengths(found)


def test_an_end_version_leaves_out_what_came_after(lake, tmp_path):
    table = filled(lake)
    end = table.handle.metadata_location
    rows = rows_of(table.arrow())
    changed(table)
    target = f"{tmp_path}/elsewhere/t"
    for wanted in (end, end.rsplit("/", 1)[-1]):
        report = table.rewrite_table_path(table.location, target, end_version=wanted)
        assert report.latest_version == end.rsplit("/", 1)[-1]
        assert report.rewritten_delete_file_paths_count == 0
    copied(report)
    assert moved(lake, table, report, target)[1] == rows


def test_files_of_expired_snapshots_that_live_on_are_listed(lake, tmp_path):
    properties = {"write.metadata.previous-versions-max": "1"}
    table = filled(lake, **properties)
    table.rewrite_manifests()
    table.expire_snapshots(older_than=table.snapshots()[-1].timestamp_ms + 1, retain_last=1)
    table.append(sales(1, first=300))
    table.append(sales(1, first=301))
    target = f"{tmp_path}/elsewhere/t"
    report = table.rewrite_table_path(table.location, target)
    copied(report)
    rows = rows_of(table.arrow())
    assert moved(lake, table, report, target)[1] == rows


def test_a_dry_run_lists_what_the_real_run_stages(lake, tmp_path):
    table = filled(lake)
    changed(table)
    before = files_in(str(tmp_path))
    arguments = (table.location, "s3://bucket/t")
    staging = f"{tmp_path}/stage"
    planned = table.rewrite_table_path(*arguments, staging_location=staging, dry_run=True)
    assert files_in(str(tmp_path)) == before
    done = table.rewrite_table_path(*arguments, staging_location=staging)
    same = [name for name in planned.to_dict() if name not in ("dry_run", "seconds")]
    assert [getattr(planned, name) for name in same] == [getattr(done, name) for name in same]
    staged = {source for source, _ in done.files if source.startswith(staging)}
    assert files_in(staging) == {*staged, done.file_list_location}
    assert f"files to copy                        {len(done.files)}" in str(done)


def test_a_failure_leaves_nothing_staged(lake, tmp_path, monkeypatch):
    table = filled(lake)
    changed(table)
    before = files_in(str(tmp_path))

    def failing(*_):
        raise UnsupportedFeatureError("no")

    monkeypatch.setattr(table_path, "stage_manifest_list", failing)
    with pytest.raises(UnsupportedFeatureError):
        table.rewrite_table_path(table.location, "s3://bucket/t")
    assert files_in(str(tmp_path)) == before


def test_wrong_arguments_are_told(lake):
    table = filled(lake)
    with pytest.raises(InvalidStatementError, match="not be empty"):
        table.rewrite_table_path("", "b")
    with pytest.raises(InvalidStatementError, match="same"):
        table.rewrite_table_path("a/", "a")
    with pytest.raises(InvalidStatementError, match="not below the source prefix /nowhere"):
        table.rewrite_table_path("/nowhere", "/b")
    with pytest.raises(InvalidStatementError, match=r"no version v9\.metadata\.json"):
        table.rewrite_table_path(table.location, "/b", start_version="v9.metadata.json")
    newest = table.handle.metadata_location
    with pytest.raises(InvalidStatementError, match="is not before"):
        table.rewrite_table_path(table.location, "/b", start_version=newest)


def test_call_takes_icebergs_arguments(tmp_path):
    lake = lake_without_spark(tmp_path / "lake")
    lake.create_namespace("shop")
    table = filled(lake)
    found = lake.sql(
        f"CALL system.rewrite_table_path('{NAME}', '{table.location}', '/elsewhere', "
        f"staging_location => '{tmp_path}/stage', create_file_list => false)"
    )
    assert found.to_pylist() == [
        {
            "latest_version": table.handle.metadata_location.rsplit("/", 1)[-1],
            "file_list_location": "N/A",
            "rewritten_manifest_file_paths_count": 2,
            "rewritten_delete_file_paths_count": 0,
        }
    ]
    lake.close()


def test_bounds_of_paths_move_and_cut_ones_go():
    prefixes = Prefixes("/old", "/quite/new", "/stage")
    bounds = pa.array(
        [
            [(2147483546, b"/old/a"), (2147483545, b"1")],
            None,
            [(2147483546, b"/ol")],
            [],
            [(1, b"/old/a")],
        ],
        path_rewrite.BOUNDS,
    )
    positions = pa.chunked_array([[True, True, True, True, False]])
    found = path_rewrite._moved_bounds(pa.chunked_array([bounds]), positions, prefixes)
    assert found.to_pylist() == [
        [(2147483546, b"/quite/new/a"), (2147483545, b"1")],
        None,
        [],
        [],
        [(1, b"/old/a")],
    ]


def test_position_deletes_in_other_formats_become_parquet(tmp_path):
    fields = [
        {"name": "file_path", "type": "string", "field-id": 2147483546},
        {"name": "pos", "type": "long", "field-id": 2147483545},
    ]
    rows = [{"file_path": f"{tmp_path}/data/{name}", "pos": 3} for name in "ba"]
    schema = {"type": "record", "name": "t", "fields": fields}
    path = write_avro(tmp_path / "deletes.avro", schema, rows)
    delete = DeleteFile(Content.POSITION_DELETES, path, "AVRO", 1, 2)
    prefixes = Prefixes(str(tmp_path), "/new", f"{tmp_path}/stage")
    (batch,) = path_kernel(PathTask((delete,), prefixes, {}))
    (row,) = batch.to_pylist()
    assert row["new_location"] == "/new/deletes.avro.parquet"
    staged = f"{tmp_path}/stage/deletes.avro.parquet"
    assert row["file_size_in_bytes"] == len(Storage({}).read(staged))
    moved = DeleteFile(Content.POSITION_DELETES, staged, row["file_format"], 1, 2)
    found = all_positions(moved, Storage({}))
    assert {name: list(at) for name, at in found.items()} == {
        "/new/data/a": [3],
        "/new/data/b": [3],
    }
