"""A table whose metadata names files of others: they are reported and left alone."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from rowlake import connect
from rowlake.errors import InvalidStatementError
from tests.hostile_tables import age, contents, edit, make_victim, statistics
from tests.lakes import SALES, make_lake, sales
from tests.metadata_files import add_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.table import Table

pytestmark = pytest.mark.iceberg

LATER = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)
DROPS_OLD = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    return make_victim(tmp_path / "victim")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = make_lake(tmp_path / "wh")
    found.create_namespace("db")
    return found


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("db.t", SALES)


def edited(table: Table, change: Callable[[dict[str, Any]], None]) -> Table:
    """Change the newest metadata file of a table, and load it as somebody else would."""
    edit(str(table.handle.metadata_location), change)
    return connect(warehouse=table.handle.catalog.properties["warehouse"]).table(table.name)


def expired(table: Table, **given: Any) -> Any:
    return table.expire_snapshots(LATER, **given)


def with_foreign_data(table: Table, victim: Path) -> Table:
    """Return a table of which only an old snapshot has a data file of another."""
    add_files(table, [100], at=[str(victim / "data" / "a.parquet")])
    table.truncate()
    return table


# -- the metadata log --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "filesystem"])
def test_an_append_deletes_no_file_of_others_that_the_metadata_log_names(
    tmp_path: Path, victim: Path, kind: str | None
) -> None:
    before = contents(victim)
    lake = connect(warehouse=str(tmp_path / "wh"), catalog=kind)
    lake.create_namespace("db")
    table = lake.create_table("db.t", SALES, properties=DROPS_OLD)
    table.append(sales(2))
    named = victim / "metadata" / "v1.metadata.json"

    def name_it(raw: dict[str, Any]) -> None:
        entry = {"timestamp-ms": 1, "metadata-file": str(named)}
        raw["metadata-log"] = [entry, *raw["metadata-log"]]

    edit(str(table.handle.metadata_location), name_it)
    again = connect(warehouse=str(tmp_path / "wh"), catalog=kind).table("db.t")
    old = again.handle.metadata.metadata_log[-1].metadata_file
    again.append(sales(2, 2))
    assert contents(victim) == before
    assert not Path(old).exists()
    assert again.arrow().num_rows == 4


def test_a_schema_change_deletes_no_file_of_others_either(table: Table, victim: Path) -> None:
    before = contents(victim)
    table.set_properties(DROPS_OLD)
    table.append(sales(2))
    named = victim / "metadata" / "v1.metadata.json"

    def name_it(raw: dict[str, Any]) -> None:
        entry = {"timestamp-ms": 1, "metadata-file": str(named)}
        raw["metadata-log"] = [entry, *raw["metadata-log"]]

    again = edited(table, name_it)
    with again.evolve().update_schema() as update:
        update.add_column("more", StringType())
    assert contents(victim) == before
    assert "more" in again.arrow().column_names


def test_a_log_that_names_the_newest_metadata_file_does_not_take_it_away(table: Table) -> None:
    table.set_properties(DROPS_OLD)
    folder = Path(str(table.handle.metadata_location)).parent
    keep = [str(path) for path in folder.iterdir() if path.suffix == ".avro"]
    entries = [{"timestamp-ms": 1, "metadata-file": name} for name in keep]
    table.append(sales(2))
    again = edited(table, lambda raw: raw.update({"metadata-log": entries}))
    again.append(sales(2, 2))
    assert all(Path(name).exists() for name in keep)
    assert again.arrow().num_rows == 4


# -- expire_snapshots --------------------------------------------------------------------------


def test_expiry_leaves_data_files_of_others(table: Table, victim: Path) -> None:
    before = contents(victim)
    report = expired(with_foreign_data(table, victim))
    assert contents(victim) == before
    assert report.deleted_data_files_count == 0
    assert report.left_foreign == (str(victim / "data" / "a.parquet"),)
    assert report.left_foreign_count == 1
    assert "left foreign" in str(report)
    assert report.deleted_manifest_lists_count == 1


@pytest.mark.parametrize(
    "spelled", ["{wh}/db/t/../../../victim", "file:{victim}", "file://{victim}/"]
)
def test_no_spelling_makes_a_file_of_others_the_tables(
    table: Table, tmp_path: Path, victim: Path, spelled: str
) -> None:
    before = contents(victim)
    folder = spelled.format(wh=tmp_path / "wh", victim=victim)
    add_files(table, [100], at=[f"{folder}/data/a.parquet"])
    table.truncate()
    assert expired(table).left_foreign_count == 1
    assert contents(victim) == before


def test_a_link_in_the_tables_folder_leads_to_files_of_others(table: Table, victim: Path) -> None:
    before = contents(victim)
    table.append(sales(1))
    (Path(table.location) / "data" / "link").symlink_to(victim / "data")
    add_files(table, [100], at=[f"{table.location}/data/link/a.parquet"])
    table.truncate()
    assert expired(table).left_foreign_count == 1
    assert contents(victim) == before


def test_a_dry_run_tells_what_would_be_left(table: Table, victim: Path) -> None:
    report = expired(with_foreign_data(table, victim), dry_run=True)
    assert (report.deleted_data_files_count, report.left_foreign_count) == (0, 1)


@pytest.mark.parametrize("kind", ["statistics", "partition-statistics"])
def test_expiry_leaves_statistics_of_others(table: Table, victim: Path, kind: str) -> None:
    before = contents(victim)
    table.append(sales(2))
    old = table.handle.metadata.current_snapshot_id
    table.append(sales(2, 2))
    named = statistics(old, victim / "metadata" / "s.stats")
    again = edited(table, lambda raw: raw.update({kind: [named]}))
    report = expired(again)
    assert contents(victim) == before
    assert report.left_foreign == (str(victim / "metadata" / "s.stats"),)
    assert report.deleted_statistics_files_count == 0


def test_expiry_leaves_manifest_lists_of_others(table: Table, victim: Path) -> None:
    before = contents(victim)
    table.append(sales(2))
    table.append(sales(2, 2))
    named = victim / "metadata" / "l.avro"
    again = edited(table, lambda raw: raw["snapshots"][0].update({"manifest-list": str(named)}))
    report = expired(again)
    assert contents(victim) == before
    assert report.left_foreign == (str(named),)
    assert again.arrow().num_rows == 4


def test_statistics_that_name_a_data_file_of_the_table_take_none_away(table: Table) -> None:
    table.append(sales(2))
    old = table.handle.metadata.current_snapshot_id
    table.append(sales(2, 2))
    file = next(iter((Path(table.location) / "data").glob("*.parquet")))
    named = statistics(old, file)
    again = edited(table, lambda raw: raw.update({"statistics": [named]}))
    expired(again)
    assert again.arrow().num_rows == 4


def test_an_expired_manifest_list_that_is_metadata_in_use_stays(table: Table) -> None:
    table.append(sales(2))
    table.append(sales(2, 2))
    pointer = str(table.handle.metadata_location)
    again = edited(table, lambda raw: raw["snapshots"][0].update({"manifest-list": pointer}))
    expired(again)
    assert Path(pointer).exists()
    assert again.arrow().num_rows == 4


def test_also_below_lifts_it(table: Table, victim: Path) -> None:
    report = expired(with_foreign_data(table, victim), also_below=[str(victim / "data")])
    assert report.left_foreign_count == 0
    assert not (victim / "data" / "a.parquet").exists()
    assert (victim / "metadata" / "s.stats").exists()


def test_also_below_is_folders(table: Table) -> None:
    with pytest.raises(InvalidStatementError, match="also_below"):
        expired(table, also_below=[7])


def test_allowed_locations_of_the_catalog_lift_it(tmp_path: Path, victim: Path) -> None:
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": str(tmp_path / "wh"),
        "rowlake.allowed-locations": f"/nowhere, file:{victim}/data/",
    }
    lake = connect(catalog=properties)
    lake.create_namespace("db")
    table = with_foreign_data(lake.create_table("db.t", SALES), victim)
    assert expired(table).left_foreign_count == 0
    assert not (victim / "data" / "a.parquet").exists()


def test_allowed_locations_among_the_tables_properties_lift_nothing(
    table: Table, victim: Path
) -> None:
    table.set_properties({"rowlake.allowed-locations": "/"})
    before = contents(victim)
    assert expired(with_foreign_data(table, victim)).left_foreign_count == 1
    assert contents(victim) == before


def test_very_many_files_are_told_apart_quickly(table: Table, victim: Path) -> None:
    count = 50_000
    add_files(table, [1] * count, at=[f"{victim}/data/{i}.parquet" for i in range(count)])
    table.truncate()
    report = expired(table, dry_run=True)
    assert report.left_foreign_count == count
    assert len(report.left_foreign) == 20


# -- remove_orphan_files -----------------------------------------------------------------------


def moved(raw: dict[str, Any], victim: Path, key: str | None) -> None:
    if key is None:
        raw["location"] = str(victim)
    else:
        raw["properties"][key] = str(victim)


@pytest.mark.parametrize(
    "key", [None, "write.data.path", "write.metadata.path", "write.object-storage.path"]
)
def test_orphans_are_not_looked_for_among_files_of_others(
    table: Table, victim: Path, key: str | None
) -> None:
    table.append(sales(2))
    before = contents(victim)
    again = edited(table, lambda raw: moved(raw, victim, key))
    report = again.remove_orphan_files(dry_run=False)
    assert contents(victim) == before
    assert report.orphan_file_location == ()
    assert any(f"{victim}: outside of the table's own" in one for one in report.skipped_folders)
    assert again.vacuum(dry_run=False).orphan_files_count == 0
    assert contents(victim) == before
    lifted = again.remove_orphan_files(also_below=str(victim))
    assert not any("outside of the table's own" in one for one in lifted.skipped_folders)


def test_links_are_not_followed_by_orphan_removal(table: Table, victim: Path) -> None:
    table.append(sales(2))
    before = contents(victim)
    data = Path(table.location) / "data"
    (data / "folder").symlink_to(victim)
    (data / "file").symlink_to(victim / "data" / "a.parquet")
    age(table.location)
    report = table.remove_orphan_files(dry_run=False)
    assert contents(victim) == before
    assert report.orphan_file_location == ()
    assert report.left_foreign == (str(data / "file"), str(data / "folder"))
    assert (data / "file").is_symlink()


def test_a_list_of_files_does_not_lead_through_links(table: Table, victim: Path) -> None:
    table.append(sales(2))
    before = contents(victim)
    link = Path(table.location) / "data" / "link"
    link.symlink_to(victim)
    files = [f"{link}/data/a.parquet"]
    listed = pa.table({"file_path": files, "last_modified": pa.array([0], pa.timestamp("us"))})
    report = table.remove_orphan_files(file_list_view=listed, dry_run=False)
    assert contents(victim) == before
    assert (report.orphan_file_location, report.left_foreign) == ((), tuple(files))


def test_files_that_the_metadata_names_by_a_link_are_no_orphans(table: Table) -> None:
    table.append(sales(2))
    data = Path(table.location) / "data"
    data.rename(data.with_name("real"))
    data.symlink_to(data.with_name("real"))
    age(table.location)
    assert table.remove_orphan_files(dry_run=False).orphan_file_location == ()
    assert table.arrow().num_rows == 2


def test_what_a_killed_writer_left_is_removed(table: Table) -> None:
    table.append(sales(2))
    folder = Path(table.location) / "metadata"
    left = folder / f".{'0a' * 16}.tmp"
    others = [folder / ".0a.tmp", folder / ".hidden", folder / f".{'0a' * 16}.tmp.crc"]
    for path in (left, *others):
        path.write_text("x")
    assert table.remove_orphan_files().orphan_file_location == ()
    age(table.location)
    report = table.remove_orphan_files(dry_run=False)
    assert report.orphan_file_location == (str(left),)
    assert all(path.exists() for path in others)


def test_a_warehouse_behind_a_link_is_the_tables_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    lake = make_lake(tmp_path / "link")
    lake.create_namespace("db")
    table = lake.create_table("db.t", SALES)
    table.append(sales(2))
    table.truncate()
    assert expired(table).deleted_data_files_count == 1
    orphan = Path(table.location) / "data" / "x"
    orphan.write_text("x")
    age(table.location)
    assert table.remove_orphan_files(dry_run=False).orphan_file_location == (str(orphan),)
    assert not orphan.exists()


# -- purge -------------------------------------------------------------------------------------


def test_purge_leaves_files_of_others_and_says_so(
    lake: Lake, table: Table, victim: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = contents(victim)
    table.append(sales(2))
    add_files(table, [100], at=[str(victim / "data" / "a.parquet")])
    home, current = Path(table.location), table.handle.metadata.current_snapshot_id
    named = statistics(current, victim / "metadata" / "s.stats")
    log = {"timestamp-ms": 1, "metadata-file": str(victim / "metadata" / "v1.metadata.json")}
    again = edited(table, lambda raw: raw.update({"statistics": [named], "metadata-log": [log]}))
    with caplog.at_level(logging.WARNING, "rowlake"):
        again.lake.drop_table("db.t", purge=True)
    assert contents(victim) == before
    assert "3 files were left alone" in caplog.text
    assert not lake.exists("db.t")
    assert not list(home.glob("data/*"))


def test_purge_leaves_a_foreign_location_with_nothing_but_folders(
    table: Table, tmp_path: Path
) -> None:
    (tmp_path / "theirs" / "empty").mkdir(parents=True)
    again = edited(table, lambda raw: raw.update({"location": str(tmp_path / "theirs")}))
    again.lake.drop_table("db.t", purge=True)
    assert (tmp_path / "theirs" / "empty").is_dir()


def test_purge_takes_what_also_below_allows(lake: Lake, table: Table, victim: Path) -> None:
    add_files(table, [100], at=[str(victim / "data" / "a.parquet")])
    home = Path(table.location)
    lake.drop_table("db.t", purge=True, also_below=str(victim / "data"))
    assert not (victim / "data" / "a.parquet").exists()
    assert not home.exists()


# -- a pointer that would move -----------------------------------------------------------------


@pytest.mark.parametrize("key", ["location", "write.metadata.path", "unset"])
def test_a_registered_table_does_not_come_to_own_what_its_metadata_names(
    lake: Lake, table: Table, tmp_path: Path, victim: Path, key: str
) -> None:
    """The first commit would write into the foreign folder, which then looked like the table's."""
    before = contents(victim)
    table.append(sales(2))
    with_foreign_data(table, victim)
    upload = tmp_path / "upload" / "metadata" / "00001-x.metadata.json"
    upload.parent.mkdir(parents=True)
    upload.write_bytes(Path(str(table.handle.metadata_location)).read_bytes())

    def claim(raw: dict[str, Any]) -> None:
        raw["location"] = str(victim if key != "write.metadata.path" else raw["location"])
        if key == "write.metadata.path":
            raw["properties"][key] = str(victim / "metadata")
        if key == "unset":
            raw["properties"]["write.metadata.path"] = "/nowhere"

    edit(str(upload), claim)
    lake.create_namespace("other")
    hostile = lake.register_table("other.h", str(upload))
    hostile.set_properties({"a": "b"})
    if key == "unset":
        hostile.unset_properties(["write.metadata.path"])
    hostile.create_tag("x")
    hostile.drop_ref("x")
    with hostile.evolve().update_schema() as update:
        update.add_column("more", StringType())
    assert Path(str(hostile.handle.metadata_location)).parent == upload.parent
    expired(hostile)
    assert contents(victim) == before
    lake.drop_table("other.h", purge=True)
    assert contents(victim) == before


def test_a_metadata_path_that_the_user_sets_is_followed(table: Table, tmp_path: Path) -> None:
    table.set_properties({"write.metadata.path": str(tmp_path / "m")})
    assert Path(str(table.handle.metadata_location)).parent == tmp_path / "m"
    table.append(sales(2))
    table.truncate()
    assert expired(table).left_foreign_count == 0
    table.unset_properties(["write.metadata.path"])
    home = Path(table.location) / "metadata"
    assert Path(str(table.handle.metadata_location)).parent == home


def test_a_metadata_file_beside_the_tables_of_a_namespace_does_not_own_them(
    lake: Lake, table: Table, tmp_path: Path
) -> None:
    table.append(sales(2))
    before = contents(Path(table.location))
    beside = tmp_path / "wh" / "db" / "metadata" / "00001-x.metadata.json"
    beside.parent.mkdir()
    beside.write_bytes(Path(str(table.handle.metadata_location)).read_bytes())
    lake.register_table("db.copy", str(beside))
    lake.drop_table("db.copy", purge=True)
    assert contents(Path(table.location)) == before


def test_the_place_of_a_name_is_not_the_tables_where_another_table_is(
    lake: Lake, table: Table, tmp_path: Path
) -> None:
    table.append(sales(2))
    pointer, home = Path(str(table.handle.metadata_location)), Path(table.location)
    lake.rename_table("db.t", "db.kept")
    before = contents(home)
    upload = tmp_path / "upload" / "metadata" / "00001-x.metadata.json"
    upload.parent.mkdir(parents=True)
    upload.write_bytes(pointer.read_bytes())
    lake.register_table("db.t", str(upload))
    lake.drop_table("db.t", purge=True)
    assert contents(home) == before
