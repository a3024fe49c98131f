"""remove_orphan_files: what is found, what is left alone, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.errors import (
    CommitConflictError,
    CorruptTableError,
    InvalidStatementError,
    StorageError,
    UnsupportedFeatureError,
)
from rowlake.iceberg.cache import default_cache
from rowlake.maintain.cleanup import orphans
from rowlake.model.partition import PartitionBy
from rowlake.storage import local
from rowlake.storage.files import Storage
from tests.lakes import SALES, files_in, make_lake, rows_of, sales

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.table import Table

DAY = 24 * 60 * 60
OLD = 10 * DAY


@pytest.fixture
def lake(tmp_path: Path, table_format: str) -> Lake:
    found = make_lake(tmp_path / "wh")
    found.create_namespace("db")
    return found


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("db.t", SALES)
    made.append(sales(8))
    made.append(sales(8, 8))
    return made


def put(folder: Any, name: str, data: bytes = b"1234", *, seconds: float = OLD) -> str:
    """Write a file that is as old as this."""
    path = Path(str(folder)) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    when = time.time() - seconds
    os.utime(path, (when, when))
    return str(path)


def age(folder: Any) -> None:
    """Make every file old."""
    when = time.time() - OLD
    for path in Path(str(folder)).rglob("*"):
        os.utime(path, (when, when))


def names(report: Any) -> set[str]:
    return {Path(location).name for location in report.orphan_file_location}


# -- what is found


def test_files_that_no_metadata_names_are_found_and_removed(table: Table) -> None:
    orphan = put(table.location, "data/orphan.parquet")
    manifest = put(table.location, "metadata/left-m0.avro")
    age(table.location)
    before, rows = files_in(table.location), rows_of(table.arrow())
    planned = table.remove_orphan_files()
    assert planned.orphan_file_location == tuple(sorted([orphan, manifest]))
    assert (planned.orphan_files_count, planned.size_in_bytes) == (2, 8)
    assert (planned.dry_run, planned.deleted_files_count) == (True, 0)
    assert files_in(table.location) == before
    done = table.remove_orphan_files(dry_run=False)
    assert done.orphan_file_location == planned.orphan_file_location
    assert (done.deleted_files_count, done.failures, done.dry_run) == (2, (), False)
    assert files_in(table.location) == before - {orphan, manifest}
    assert rows_of(table.arrow()) == rows
    assert table.remove_orphan_files().orphan_files_count == 0


def test_young_and_undated_files_are_left_alone(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(table.location, "data/young", seconds=2 * DAY)
    put(table.location, "data/future", seconds=-2 * DAY)
    put(table.location, "data/old", seconds=4 * DAY)
    assert names(table.remove_orphan_files()) == {"old"}
    a_day_ago = dt.datetime.now() - dt.timedelta(hours=25)
    assert names(table.remove_orphan_files(older_than=a_day_ago)) == {"old", "young"}
    known = Storage.listing

    def undated(self: Storage, *args: Any, **kwargs: Any) -> Any:
        for found in known(self, *args, **kwargs):
            yield found.set_column(2, "modified_ms", pa.nulls(found.num_rows, pa.int64()))

    monkeypatch.setattr(Storage, "listing", undated)
    assert table.remove_orphan_files(force=True, older_than=dt.datetime.now()).rows()
    assert names(table.remove_orphan_files()) == set()


def test_a_day_is_the_least_without_force(table: Table) -> None:
    put(table.location, "data/new", seconds=60)
    now = dt.datetime.now()
    with pytest.raises(InvalidStatementError, match="less than 24 hours"):
        table.remove_orphan_files(older_than=now - dt.timedelta(hours=23))
    assert names(table.remove_orphan_files(older_than=now, force=True)) == {"new"}


def test_hidden_names_are_left_alone_but_for_partitions(lake: Lake) -> None:
    table = lake.create_table("db.h", SALES, partition_by=[PartitionBy(("store",), name="_store")])
    table.append(sales(4))
    for name in ("_x/a", ".x/b", "data/_c", "data/.d", "data/_stores=1/e", "data/a/b/c/d/e/_f/g"):
        put(table.location, name)
    shown = {put(table.location, "data/_store=1/f"), put(table.location, "data/_store=_x/g")}
    put(table.location, "data/_store=1/_h")
    age(table.location)
    for flat in (False, True):
        report = table.remove_orphan_files(prefix_listing=flat)
        assert set(report.orphan_file_location) == shown


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_every_kind_of_file_is_known(lake: Lake, version: str) -> None:
    table = lake.create_table(
        "db.k",
        SALES,
        partition_by=["store"],
        properties={"format-version": version, "write.metadata.compression-codec": "gzip"},
    )
    table.append(sales(8))
    table.create_tag("kept")
    table.create_branch("b")
    table.append(sales(8, 8), branch="b")
    table.append(sales(8, 16), stage_only=True)
    if version != "1":
        table.delete("id = 1", mode="merge-on-read")
    if version == "2":
        table.delete("id = 2", deletes="equality")
    table.delete("id = 3", mode="copy-on-write")
    table.overwrite(sales(4))
    age(table.location)
    assert table.remove_orphan_files().orphan_file_location == ()


def test_an_empty_table_and_one_without_a_folder(lake: Lake) -> None:
    table = lake.create_table("db.e", SALES)
    assert table.remove_orphan_files().orphan_files_count == 0
    orphan = put(table.location, "data/x")
    assert table.remove_orphan_files().orphan_file_location == (orphan,)


def test_a_file_that_a_summary_names_is_known(table: Table) -> None:
    named = put(table.location, "data/map.parquet")
    put(table.location, "data/unnamed.parquet")
    table.append(sales(1), properties={"rowlake.position-map-file": f"file:{named}"})
    assert names(table.remove_orphan_files()) == {"unnamed.parquet"}


# -- where it is looked for


def test_a_location_limits_the_search_in_every_form(table: Table) -> None:
    inside = put(table.location, "data/sub dir/é%20.parquet")
    put(table.location, "metadata/x")
    for form in ("{}/data", "{}/data/", "file:{}/data", "file://{}/data", "{}/data/sub dir"):
        location = form.format(table.location)
        found = table.remove_orphan_files(location=location).orphan_file_location
        assert [one.removeprefix("file:").removeprefix("//") for one in found] == [inside]


@pytest.mark.iceberg
def test_folders_of_properties_are_searched_too(lake: Lake, tmp_path: Path) -> None:
    outside = {"write.data.path": f"{tmp_path}/d", "write.metadata.path": f"{tmp_path}/m"}
    table = lake.create_table("db.o", SALES, properties=outside)
    table.append(sales(4))
    left = {put(tmp_path, "m/y"), put(table.location, "z")}
    there = put(tmp_path, "d/x")
    age(tmp_path / "d")
    age(tmp_path / "m")
    report = table.remove_orphan_files()
    assert set(report.orphan_file_location) == left
    (skipped,) = report.skipped_folders
    assert skipped.startswith(f"{tmp_path}/d: outside of the table's own folders")
    report = table.remove_orphan_files(dry_run=False, also_below=f"{tmp_path}/d")
    assert set(report.orphan_file_location) == {*left, there}
    assert table.arrow().num_rows == 4


def test_a_folder_that_another_table_writes_to_is_left_alone(lake: Lake, tmp_path: Path) -> None:
    shared = {"write.data.path": f"{tmp_path}/d"}
    table = lake.create_table("db.o", SALES, properties=shared)
    lake.create_table("db.p", SALES, properties=shared).append(sales(4))
    put(tmp_path, "d/x")
    age(tmp_path / "d")
    report = table.remove_orphan_files(also_below=[str(tmp_path)])
    assert report.orphan_file_location == ()
    assert report.skipped_folders == (f"{tmp_path}/d: shared with db.p",)


@pytest.mark.iceberg
def test_tables_below_the_location_are_left_alone(lake: Lake, table: Table) -> None:
    inner = lake.create_table("db.inner", SALES, location=f"{table.location}/data/inner")
    inner.append(sales(4))
    put(inner.location, "data/x")
    orphan = put(table.location, "data/y")
    age(table.location)
    report = table.remove_orphan_files(dry_run=False)
    assert report.orphan_file_location == (orphan,)
    assert report.skipped_folders == (f"{inner.location}: another table's",)
    assert inner.arrow().num_rows == 4
    assert names(inner.remove_orphan_files()) == {"x"}


def test_neighbours_with_a_longer_name_are_not_below(lake: Lake, table: Table) -> None:
    other = lake.create_table("db.t2", SALES)
    other.append(sales(4))
    age(other.location)
    listed = pa.table(
        {
            "file_path": sorted(files_in(other.location)),
            "last_modified": pa.array([0] * len(files_in(other.location)), pa.timestamp("us")),
        }
    )
    assert table.remove_orphan_files(file_list_view=listed).orphan_file_location == ()


@pytest.mark.iceberg
def test_two_tables_in_one_folder_are_refused(lake: Lake, table: Table) -> None:
    lake.create_table("db.same", SALES, location=table.location).append(sales(4))
    age(table.location)
    before = files_in(table.location)
    with pytest.raises(InvalidStatementError, match="two tables share this folder"):
        table.remove_orphan_files(dry_run=False)
    assert files_in(table.location) == before


@pytest.mark.iceberg
def test_tables_of_other_formats_are_left_alone(table: Table) -> None:
    put(table.location, "data/delta/_delta_log/0.json")
    put(table.location, "data/a/b/c/d/e/hudi/.hoodie/x")
    put(table.location, "data/a/b/c/d/e/hudi/x.parquet")
    put(table.location, "data/delta/x.parquet")
    orphan = put(table.location, "data/a/b/x")
    for flat in (False, True):
        report = table.remove_orphan_files(prefix_listing=flat)
        assert report.orphan_file_location == (orphan,)
        assert len(report.skipped_folders) == 2
    put(table.location, "_delta_log/0.json")
    with pytest.raises(InvalidStatementError, match="table of another format"):
        table.remove_orphan_files()
    assert table.remove_orphan_files(force=True).orphan_file_location == (orphan,)


@pytest.mark.iceberg
def test_old_versions_of_the_table_itself_are_orphans(table: Table) -> None:
    own = json.dumps({"table-uuid": str(table.handle.metadata.table_uuid)}).encode()
    put(table.location, "metadata/00000-old.metadata.json", own)
    put(table.location, "metadata/00001-cut.metadata.json", b'{"format-ver')
    found = names(table.remove_orphan_files())
    assert found == {"00000-old.metadata.json", "00001-cut.metadata.json"}


def test_a_location_elsewhere_must_have_files_of_the_table(
    lake: Lake, table: Table, tmp_path: Path
) -> None:
    stray = put(tmp_path, "elsewhere/x")
    with pytest.raises(InvalidStatementError, match="not a folder of the table"):
        table.remove_orphan_files(location=f"{tmp_path}/elsewhere")
    forced = table.remove_orphan_files(location=f"{tmp_path}/elsewhere", force=True)
    assert forced.orphan_file_location == (stray,)
    elsewhere = pa.table(
        {
            "file_path": [f"s3://backup{table.location}/x"],
            "last_modified": [dt.datetime(2020, 1, 1)],
        }
    )
    with pytest.raises(InvalidStatementError, match="not a folder of the table"):
        table.remove_orphan_files(location=f"s3://backup{table.location}", file_list_view=elsewhere)
    other = lake.create_table("db.u", SALES)
    other.append(sales(2))
    age(other.location)
    with pytest.raises(InvalidStatementError, match=r"a folder of db\.u"):
        table.remove_orphan_files(location=f"{other.location}/data")
    warehouse = Path(table.location).parent.parent
    age(warehouse)
    above = table.remove_orphan_files(location=str(warehouse), dry_run=False)
    assert above.orphan_file_location == ()
    assert other.arrow().num_rows == 2


def test_files_that_are_known_through_links_are_no_orphans(table: Table, tmp_path: Path) -> None:
    orphan = put(table.location, "data/x")
    age(table.location)
    (tmp_path / "link").symlink_to(Path(table.location).parent)
    by_link = f"{tmp_path}/link/t/data"
    report = table.remove_orphan_files(location=by_link, force=True, dry_run=False)
    assert report.orphan_file_location == (f"{by_link}/x",)
    assert not Path(orphan).exists()
    assert table.arrow().num_rows == 16


def test_a_list_of_files_replaces_the_listing(table: Table) -> None:
    orphan = put(table.location, "data/listed")
    put(table.location, "data/not listed")
    live = sorted(files_in(f"{table.location}/data"))
    old, young = dt.datetime(2020, 1, 1), dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
    files = pa.table(
        {
            "file_path": [
                f"file:{orphan}",
                f"{table.location}/data/young",
                *live[:1],
                "/x/y",
                None,
            ],
            "last_modified": pa.array([old, young, old, old, old], pa.timestamp("us")),
        }
    )
    report = table.remove_orphan_files(file_list_view=files, dry_run=False)
    assert report.orphan_file_location == (f"file:{orphan}",)
    assert not Path(orphan).exists()
    for bad, message in (
        (files.rename_columns(["path", "last_modified"]), "no column file_path"),
        (files.set_column(0, "file_path", pa.nulls(5, pa.int64())), "Invalid file_path column"),
        (files.set_column(1, "last_modified", files["file_path"]), "Invalid last_modified column"),
        (7, "name of a view"),
    ):
        with pytest.raises(InvalidStatementError, match=message):
            table.remove_orphan_files(file_list_view=bad)


@pytest.mark.parametrize("mode", ["error", "IGNORE", "delete"])
def test_files_with_another_prefix_are_as_the_mode_says(table: Table, mode: str) -> None:
    live = sorted(files_in(f"{table.location}/data"))[0]
    listed = pa.table(
        {"file_path": [f"hdfs://nn{live}"], "last_modified": pa.array([0], pa.timestamp("us"))}
    )
    table.set_properties({"write.data.path": f"file:{table.location}/data"})
    table.append(sales(1, 50))
    named = next(one for one in table.files()["file_path"].to_pylist() if one.startswith("file:"))
    both = pa.concat_tables([listed.slice(0, 0), listed]).set_column(
        0, "file_path", [[f"hdfs://nn{named.removeprefix('file:')}"]]
    )
    options: dict[str, Any] = {"file_list_view": both, "prefix_mismatch_mode": mode}
    location = f"hdfs://nn{table.location}"
    if mode == "error":
        with pytest.raises(InvalidStatementError, match=r"schemes: \[\(file, hdfs\)\]"):
            table.remove_orphan_files(location=location, force=True, **options)
    else:
        found = table.remove_orphan_files(location=location, force=True, **options)
        assert found.orphan_files_count == (1 if mode == "delete" else 0)
    equal = {"equal_schemes": {"hdfs": "file"}}
    same = table.remove_orphan_files(location=location, force=True, **options, **equal)
    assert same.orphan_files_count == 0


# -- what is refused, and what goes wrong


def test_bad_arguments_are_refused(table: Table) -> None:
    for options, message in (
        ({"prefix_mismatch_mode": "NONE"}, "prefix_mismatch_mode"),
        ({"max_concurrent_deletes": 0}, "max_concurrent_deletes should have value > 0, value: 0"),
        ({"max_concurrent_deletes": "2"}, "max_concurrent_deletes"),
        ({"location": " "}, "must be a folder"),
        ({"location": 7}, "must be a folder"),
        ({"older_than": "yesterday"}, "not a time"),
        ({"equal_schemes": {"a": None}}, "equal_schemes"),
    ):
        with pytest.raises(InvalidStatementError, match=message):
            table.remove_orphan_files(**options)


def test_a_table_that_keeps_its_files_is_refused(table: Table) -> None:
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidStatementError, match=r"gc\.enabled"):
        table.remove_orphan_files()


@pytest.mark.iceberg
def test_not_inside_a_transaction(lake: Lake, table: Table) -> None:
    del table
    with lake.transaction() as tx, pytest.raises(UnsupportedFeatureError, match="transaction"):
        tx.table("db.t").remove_orphan_files()


@pytest.mark.iceberg
@pytest.mark.parametrize("damage", ["manifest", "manifest list"])
def test_damaged_metadata_removes_nothing(table: Table, damage: str) -> None:
    orphan = put(table.location, "data/x")
    pattern = "*-m0.avro" if damage == "manifest" else "snap-*.avro"
    broken = next((Path(table.location) / "metadata").glob(pattern))
    broken.write_bytes(broken.read_bytes()[:100])
    default_cache().clear()
    with pytest.raises((CorruptTableError, StorageError)):
        table.remove_orphan_files(dry_run=False)
    assert Path(orphan).exists()
    broken.unlink()
    with pytest.raises((CorruptTableError, StorageError)):
        table.remove_orphan_files(dry_run=False)
    assert Path(orphan).exists()


def test_files_that_cannot_be_deleted_are_told(table: Table, monkeypatch: Any) -> None:
    stuck, other = put(table.location, "data/a"), put(table.location, "data/b")
    known = local.delete

    def delete(path: str) -> None:
        if path == stuck:
            raise PermissionError(path)
        known(path)

    monkeypatch.setattr(local, "delete", delete)
    report = table.remove_orphan_files(dry_run=False, max_concurrent_deletes=1)
    assert (report.failures, report.deleted_files_count) == ((stuck,), 1)
    assert (Path(stuck).exists(), Path(other).exists()) == (True, False)


def test_a_commit_before_the_deletion_is_seen(table: Table, monkeypatch: Any) -> None:
    orphan = put(table.location, "data/x")
    when = time.time() - OLD
    known = orphans.sifted

    def then_append(*args: Any) -> Any:
        found = known(*args)
        before = files_in(table.location)
        table.append(sales(4, 100))
        for one in files_in(table.location) - before:
            os.utime(one, (when, when))
        return found.of(
            pa.concat_tables([found.files, *Storage().listing(f"{table.location}/data")])
        )

    monkeypatch.setattr(orphans, "sifted", then_append)
    monkeypatch.setattr(orphans, "BATCH", 1)
    # As if the new data file had been listed: only the second look saves it.
    newest = {Path(one).name for one in files_in(f"{table.location}/data")}
    report = table.remove_orphan_files(dry_run=False)
    assert orphan in report.orphan_file_location
    added = {Path(one).name for one in files_in(f"{table.location}/data")} - newest
    assert len(added) == 1
    assert not added & names(report)


def test_a_table_made_anew_in_its_place_stops_the_work(lake: Lake, monkeypatch: Any) -> None:
    table = lake.create_table("db.r", SALES)
    orphan = put(table.location, "data/x")
    known = orphans.search

    def then_replace(*args: Any) -> Any:
        found = known(*args)
        lake.drop_table("db.r")
        lake.create_table("db.r", SALES)
        return found

    monkeypatch.setattr(orphans, "search", then_replace)
    with pytest.raises(CommitConflictError, match="created in its place"):
        table.remove_orphan_files(dry_run=False)
    assert Path(orphan).exists()


def test_the_report_is_short_and_streams_a_sample(table: Table, monkeypatch: Any) -> None:
    for number in range(6):
        put(table.location, f"data/{number}")
    monkeypatch.setattr(orphans, "STREAMED", 2)
    report = table.remove_orphan_files(stream_results=True, dry_run=False)
    assert len(report.orphan_file_location) == 2
    assert (report.orphan_files_count, report.deleted_files_count) == (6, 6)
    put(table.location, "data/x")
    assert "data/x" in str(table.remove_orphan_files())


def test_progress_is_told(table: Table) -> None:
    put(table.location, "data/x")
    seen: list[Any] = []
    table._engine.progress = seen.append
    table.remove_orphan_files(dry_run=False)
    assert {one.label for one in seen} >= {"listing files", "removing orphan files"}
