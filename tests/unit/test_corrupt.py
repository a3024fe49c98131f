"""Files of a table that are missing or damaged: an error that names the file, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError, RowlakeError, StorageError, UnsupportedFeatureError
from rowlake.iceberg.cache import default_cache
from tests.lakes import SALES, files_in, rows_of, sales

NAME = "shop.sales"


@pytest.fixture(params=[None, "filesystem"], ids=["sqlite", "filesystem"])
def lake(tmp_path, request):
    with connect(str(tmp_path), request.param) as opened:
        opened.create_namespace("shop")
        table = opened.create_table(NAME, SALES)
        table.append(sales(8))
        table.append(sales(8, 8))
        yield opened


def file_of(table, kind: str) -> Path:
    handle = table.handle
    if kind == "metadata":
        return Path(str(handle.metadata_location))
    if kind == "manifest list":
        return Path(str(table.snapshots()[-1].manifest_list))
    if kind == "manifest":
        return Path(table.inspect("manifests")["path"].to_pylist()[0])
    return Path(table.files()["file_path"].to_pylist()[0])


def delete(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scramble(path: Path) -> None:
    path.write_bytes(b"\x00garbage\xff" * 40)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for index in range(len(data) // 3, 2 * len(data) // 3):
        data[index] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("harm", [delete, empty, cut, scramble, flip])
@pytest.mark.parametrize("kind", ["metadata", "manifest list", "manifest", "data file"])
def test_a_harmed_file_is_named(lake, tmp_path, kind, harm) -> None:
    table = lake.table(NAME)
    path = file_of(table, kind)
    if kind == "metadata" and harm is delete and "v3" in path.name:
        pytest.skip("the newest version of the file-system catalog is the one that is there")
    harm(path)
    default_cache().clear()
    before = files_in(str(tmp_path))
    with pytest.raises(CorruptTableError) as raised:
        lake.table(NAME).arrow()
    assert raised.value.location == str(path)
    assert raised.value.cause
    assert str(path) in str(raised.value)
    assert str(raised.value).count(". ") >= 1, "says what to do"
    assert files_in(str(tmp_path)) == before


@pytest.mark.parametrize("kind", ["manifest list", "manifest"])
def test_an_overwrite_of_a_harmed_table_fails_whole(lake, tmp_path, kind) -> None:
    path = file_of(lake.table(NAME), kind)
    scramble(path)
    default_cache().clear()
    before = files_in(str(tmp_path))
    with pytest.raises(CorruptTableError):
        lake.table(NAME).overwrite(sales(4))
    assert files_in(str(tmp_path)) == before


def test_older_snapshots_of_a_harmed_table_can_be_read_and_rolled_back_to(lake) -> None:
    table = lake.table(NAME)
    scramble(file_of(table, "manifest list"))
    default_cache().clear()
    first = table.snapshots()[0].snapshot_id
    assert rows_of(table.arrow(snapshot_id=first)) == rows_of(sales(8))
    table.rollback_to(first)
    assert rows_of(table.arrow()) == rows_of(sales(8))


@pytest.mark.parametrize("text", ["", "x", "-1", "999", "9" * 5000, "2\ngarbage", "\x00"])
def test_a_version_hint_that_lies_costs_time_not_truth(tmp_path, text) -> None:
    with connect(str(tmp_path), "filesystem") as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SALES)
        table.append(sales(8))
        (Path(table.location) / "metadata" / "version-hint.text").write_text(text)
        assert rows_of(lake.table(NAME).arrow()) == rows_of(sales(8))
        lake.table(NAME).append(sales(1, 50))
        assert lake.table(NAME).arrow().num_rows == 9


@pytest.mark.parametrize("version", [4, 99])
def test_a_table_of_a_later_format_version_is_refused(lake, version) -> None:
    path = file_of(lake.table(NAME), "metadata")
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"format-version": version}))
    with pytest.raises(UnsupportedFeatureError) as raised:
        lake.table(NAME)
    assert str(version) in str(raised.value)


@pytest.mark.parametrize("missing", ["schemas", "location", "partition-specs", "format-version"])
def test_metadata_without_what_it_must_have_is_damaged(lake, missing) -> None:
    path = file_of(lake.table(NAME), "metadata")
    found = json.loads(path.read_text())
    del found[missing]
    path.write_text(json.dumps(found))
    with pytest.raises(RowlakeError) as raised:
        lake.table(NAME).arrow()
    assert isinstance(raised.value, (CorruptTableError, UnsupportedFeatureError))
    assert str(path) in str(raised.value)


def test_metadata_may_be_looked_at_while_a_data_file_is_missing(lake) -> None:
    table = lake.table(NAME)
    file_of(table, "data file").unlink()
    assert table.files().num_rows == 2


def test_a_missing_delete_file_is_named(tmp_path) -> None:
    for version in ("2", "3"):
        with connect(str(tmp_path / version)) as lake:
            lake.create_namespace("shop")
            table = lake.create_table(NAME, SALES, properties={"format-version": version})
            table.append(sales(1000))
            table.delete("id = 3", mode="merge-on-read")
            (path,) = lake.table(NAME).inspect("delete_files")["file_path"].to_pylist()
            scramble(Path(path))
            with pytest.raises(CorruptTableError) as raised:
                lake.table(NAME).arrow()
            assert raised.value.location == path
            Path(path).unlink()
            with pytest.raises(CorruptTableError) as raised:
                lake.table(NAME).arrow()
            assert raised.value.location == path


@pytest.mark.parametrize("content", [b"not a database", b"SQLite format 3\x00" + b"\x07" * 200])
def test_a_catalog_that_is_no_database_is_refused(tmp_path, content) -> None:
    (tmp_path / "catalog.db").write_bytes(content)
    with pytest.raises(StorageError) as raised, connect(str(tmp_path)) as lake:
        lake.tables()
    assert "catalog.db" in str(raised.value)
    assert (tmp_path / "catalog.db").read_bytes() == content


def test_a_folder_of_plain_files_is_no_table(tmp_path) -> None:
    (tmp_path / "shop" / "plain").mkdir(parents=True)
    pq.write_table(sales(3), tmp_path / "shop" / "plain" / "a.parquet")
    with connect(str(tmp_path), "filesystem") as lake, pytest.raises(RowlakeError):
        lake.table("shop.plain")
