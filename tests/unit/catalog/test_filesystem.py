from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table.update import SetPropertiesUpdate
from pyiceberg.types import LongType, NestedField

from rowlake.catalog import tables, versions
from rowlake.catalog.commit import commit_updates
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.catalog.open import open_catalog
from rowlake.errors import InvalidStatementError, StorageError
from rowlake.model.outcome import Landed
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.metadata_files import Definition


@pytest.fixture
def files(tmp_path: Path) -> FileSystemCatalog:
    opened = open_catalog(str(tmp_path / "wh"), "filesystem")
    assert isinstance(opened, FileSystemCatalog)
    tables.create_namespace(opened, "ns")
    return opened


@pytest.fixture
def made(files: FileSystemCatalog, definition: Definition) -> IcebergHandle:
    return tables.create_table(files, "ns.t", definition)


def advance(handle: IcebergHandle, times: int = 1) -> IcebergHandle:
    for number in range(times):
        updates = [SetPropertiesUpdate(updates={"n": str(number)})]
        outcome = commit_updates(handle, updates, [])
        assert isinstance(outcome, Landed)
        handle = outcome.handle
    return handle


def metadata_folder(files: FileSystemCatalog) -> Path:
    return Path(files.warehouse) / "ns" / "t" / "metadata"


def test_the_layout_is_that_of_javas_hadoop_catalog(
    files: FileSystemCatalog, made: IcebergHandle
) -> None:
    advance(made, 2)
    names = sorted(path.name for path in metadata_folder(files).iterdir())
    assert names == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json", versions.HINT]
    assert (metadata_folder(files) / versions.HINT).read_text() == "3"


@pytest.mark.parametrize("hint", [None, "", "garbage", "1", "2\n", "-1", "99", "²", "1.5", "3"])
def test_no_hint_can_hide_the_newest_version(
    files: FileSystemCatalog, made: IcebergHandle, hint: str | None
) -> None:
    after = advance(made, 2)
    path = metadata_folder(files) / versions.HINT
    path.unlink() if hint is None else path.write_text(hint)
    assert tables.load_table(files, "ns.t").metadata == after.metadata
    again = advance(tables.load_table(files, "ns.t"))
    assert str(again.metadata_location).endswith("/v4.metadata.json")


def test_a_hint_far_behind_is_caught_up(
    files: FileSystemCatalog, made: IcebergHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "_PROBES", 3)
    after = advance(made, 9)
    (metadata_folder(files) / versions.HINT).write_text("1")
    assert tables.load_table(files, "ns.t").metadata_location == after.metadata_location


def test_a_hint_that_cannot_be_written_does_not_fail_the_commit(
    files: FileSystemCatalog, made: IcebergHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Storage, location: str, __: bytes) -> None:
        raise StorageError(location, "permission denied")

    monkeypatch.setattr(Storage, "write", refuse)
    after = advance(made)
    assert (metadata_folder(files) / versions.HINT).read_text() == "1"
    assert tables.load_table(files, "ns.t").metadata == after.metadata


def test_hadoops_checksum_of_an_old_hint_goes_with_it(
    files: FileSystemCatalog, made: IcebergHandle
) -> None:
    (metadata_folder(files) / ".version-hint.text.crc").write_bytes(b"crc\0")
    advance(made)
    assert not (metadata_folder(files) / ".version-hint.text.crc").exists()


@pytest.mark.parametrize("name", ["v2.gz.metadata.json", "v2.metadata.json.gz"])
def test_both_names_of_compressed_versions_are_found(
    files: FileSystemCatalog, made: IcebergHandle, name: str
) -> None:
    plain = Path(str(made.metadata_location)).read_bytes()
    (metadata_folder(files) / name).write_bytes(gzip.compress(plain))
    assert str(tables.load_table(files, "ns.t").metadata_location).endswith(name)
    assert str(advance(made).metadata_location).endswith("/v3.metadata.json")


def test_writers_of_one_version_meet_at_one_name_while_the_codec_changes(
    files: FileSystemCatalog, made: IcebergHandle
) -> None:
    codec = [SetPropertiesUpdate(updates={"write.metadata.compression-codec": "gzip"})]
    first = commit_updates(made, codec, [])
    assert isinstance(first, Landed)
    assert str(first.handle.metadata_location).endswith("/v2.metadata.json")
    assert str(advance(first.handle).metadata_location).endswith("/v3.gz.metadata.json")


def test_the_loser_of_a_version_fails_to_commit(
    files: FileSystemCatalog, made: IcebergHandle
) -> None:
    files.write_version("ns.t", 2, made.metadata, made.metadata)
    with pytest.raises(CommitFailedException, match="version 2"):
        files.write_version("ns.t", 2, made.metadata, made.metadata)


def test_folders_that_are_no_tables_are_namespaces(
    files: FileSystemCatalog, made: IcebergHandle
) -> None:
    for name in ("sub", ".hidden", "_temporary"):
        (Path(files.warehouse) / "ns" / name).mkdir()
    (Path(files.warehouse) / "ns" / "file").write_text("")
    assert tables.list_tables(files, "ns") == [("ns", "t")]
    assert tables.list_namespaces(files, "ns") == [("ns", "sub")]
    assert not tables.namespace_exists(files, "ns.t")
    with pytest.raises(InvalidStatementError, match="exists already"):
        tables.create_namespace(files, "ns.t")


def test_pyicebergs_own_methods_work_on_it(files: FileSystemCatalog) -> None:
    schema = Schema(NestedField(1, "x", LongType()))
    made = files.create_table(("ns", "own"), schema, properties={"format-version": "2", "a": "b"})
    with made.transaction() as change:
        change.set_properties({"k": "v"})
    assert files.load_table("ns.own").properties == {"a": "b", "k": "v"}
    with files.create_table_transaction("ns.later", schema) as staged:
        staged.set_properties({"k": "v"})
    assert files.load_table("ns.later").properties == {"k": "v"}
    assert files.load_table("ns.later").metadata_location.endswith("/v1.metadata.json")
    files.drop_table("ns.own")
    with pytest.raises(NoSuchTableError):
        files.load_table("ns.own")
    assert files.list_views("ns") == []
    assert not files.view_exists("ns.v")


def test_it_needs_a_warehouse() -> None:
    with pytest.raises(InvalidStatementError, match="warehouse"):
        FileSystemCatalog("x")
