from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rowlake.errors import MissingFileError, StorageError, UnsupportedFeatureError
from rowlake.storage import local
from rowlake.storage.failures import storage_failure
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from pathlib import Path

ODD_NAMES = ["plain", "a b", "50%25", "é ü 日本", "k=v", "x#y?z&w", "semi;colon", "it's", "a:b"]


@pytest.fixture
def storage() -> Storage:
    return Storage({})


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_round_trip(storage: Storage, tmp_path: Path, form: str, name: str) -> None:
    location = form.format(tmp_path / name / f"{name}.bin")
    storage.write(location, b"bytes")
    assert (tmp_path / name / f"{name}.bin").read_bytes() == b"bytes"
    assert storage.read(location) == b"bytes"
    assert storage.exists(location)
    listed = list(storage.list(form.format(tmp_path)))
    assert [found.location for found in listed] == [location]
    assert listed[0].size_in_bytes == 5
    assert listed[0].modified_ms > 1_600_000_000_000
    assert storage.delete([location]) == []
    assert not storage.exists(location)


def test_streams_read_what_streams_wrote(storage: Storage, tmp_path: Path) -> None:
    location = f"{tmp_path}/deep/er/x.gz"
    with storage.open_output(location) as out:
        out.write(b"0123456789")
    with storage.open_input(location) as stream:
        stream.seek(4)
        assert stream.read(3) == b"456"
        assert stream.size() == 10


def test_create_makes_one_file_and_keeps_it(storage: Storage, tmp_path: Path) -> None:
    location = f"{tmp_path}/metadata/v1.metadata.json"
    assert storage.create(location, b"first")
    assert not storage.create(location, b"second")
    assert storage.read(location) == b"first"
    assert [path.name for path in (tmp_path / "metadata").iterdir()] == ["v1.metadata.json"]


def test_create_without_hard_links_still_has_one_winner(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(local.os, "link", refuse)
    location = f"{tmp_path}/v1"
    assert storage.create(location, b"first")
    assert not storage.create(location, b"second")
    assert storage.read(location) == b"first"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = f"{tmp_path}/hint"
    storage.write(location, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local.os, "fsync", fail)
    with pytest.raises(StorageError, match="no space left"):
        storage.write(location, b"new")
    assert (tmp_path / "hint").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_create_is_refused_where_it_cannot_be_atomic(storage: Storage) -> None:
    with pytest.raises(UnsupportedFeatureError, match="put-if-absent"):
        storage.create("gs://bucket/v1.metadata.json", b"")


def test_a_missing_file_says_so(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no such file") as caught:
        storage.read(f"{tmp_path}/none")
    assert caught.value.location == f"{tmp_path}/none"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(StorageError, match="permission denied"):
        storage.read(f"{tmp_path}/secret")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("When reading: AWS Error NO_SUCH_BUCKET during GetObject operation", "no such bucket"),
        ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", "denied"),
        ("AWS Error NETWORK_CONNECTION: curlCode: 7, Couldn't connect to server", "no connection"),
        ("Path does not exist 'bucket/key'", "no such file"),
    ],
)
def test_what_object_stores_say_is_understood(text: str, cause: str) -> None:
    assert cause in str(storage_failure("s3://b/k", OSError(text)))


def test_a_folder_in_place_of_a_file_is_a_storage_error(storage: Storage, tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        storage.read(str(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError):
        storage.write(f"{tmp_path}/file/below", b"")


def test_delete_reports_what_stays_and_takes_missing_as_deleted(
    storage: Storage, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_bytes(b"")
    locations = [f"{tmp_path}/a", f"{tmp_path}/none", f"{tmp_path}/folder"]
    assert storage.delete(locations) == [f"{tmp_path}/folder"]
    assert storage.delete([]) == []


def test_listing_where_nothing_is_gives_nothing(storage: Storage, tmp_path: Path) -> None:
    assert list(storage.list(f"{tmp_path}/none")) == []
    assert storage.folders(f"{tmp_path}/none") == []


def test_folders_and_children_are_one_level(storage: Storage, tmp_path: Path) -> None:
    storage.write(f"{tmp_path}/a/x", b"")
    storage.write(f"{tmp_path}/b/c/x", b"")
    storage.write(f"{tmp_path}/y", b"1")
    assert storage.folders(f"file:{tmp_path}") == ["a", "b"]
    assert [found.location for found in storage.children(f"file:{tmp_path}")] == [
        f"file:{tmp_path}/y"
    ]
    storage.delete_folder(f"{tmp_path}/b")
    assert storage.folders(str(tmp_path)) == ["a"]


def test_a_storage_travels_with_io_properties_only() -> None:
    given = {"s3.region": "r", "uri": "postgresql://u:secret@h", "s3.endpoint": "http://e"}
    travelled = pickle.loads(pickle.dumps(Storage(given)))
    assert travelled.properties == {"s3.region": "r", "s3.endpoint": "http://e"}
    assert "http://e" not in repr(travelled)


def test_the_module_is_light_enough_for_a_worker() -> None:
    code = (
        "import sys, rowlake.storage.files\n"
        "heavy = {'pyiceberg', 'obstore', 'pandas', 'datafusion', 'sqlglot', 'pyspark'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
