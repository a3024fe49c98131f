"""What a path may be other than a regular file, and paths that no file can have."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from rowlake.errors import MissingFileError, StorageError
from rowlake.storage.files import Storage
from tests.in_time import failure_in_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUL = "/tmp/a\0b.parquet"


@pytest.fixture(params=["pipe", "socket", "device", "folder"])
def odd_file(request, tmp_path: Path, monkeypatch) -> tuple[str, str]:
    if request.param == "device":
        return "/dev/zero", "a device"
    if request.param == "folder":
        return str(tmp_path), "a folder"
    path = tmp_path / request.param
    if request.param == "pipe":
        os.mkfifo(path)
        return str(path), "a named pipe"
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(request.param)
    return str(path), "a socket"


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize("way", ["open_input", "read"])
def test_only_regular_files_are_opened(odd_file: tuple[str, str], form: str, way: str) -> None:
    path, kind = odd_file
    location = form.format(path)
    error = failure_in_time(lambda: getattr(Storage(), way)(location))
    assert isinstance(error, StorageError)
    assert not isinstance(error, MissingFileError)
    assert error.location == location
    assert kind in error.cause


def test_a_link_to_a_file_is_opened_and_a_link_to_a_pipe_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"bytes")
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "pipe"):
        (tmp_path / f"link to {name}").symlink_to(tmp_path / name)
    assert Storage().read(str(tmp_path / "link to file")) == b"bytes"
    error = failure_in_time(lambda: Storage().read(str(tmp_path / "link to pipe")))
    assert isinstance(error, StorageError)


def test_a_missing_file_is_still_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        Storage().read(str(tmp_path / "none"))


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "s3://bucket{}", "relative{}"])
@pytest.mark.parametrize(
    "act",
    [
        lambda at: Storage().open_input(at),
        lambda at: Storage().open_output(at),
        lambda at: Storage().read(at),
        lambda at: Storage().write(at, b""),
        lambda at: Storage().create(at, b""),
        lambda at: Storage().exists(at),
        lambda at: Storage().delete_folder(at),
        lambda at: Storage().make_folder(at),
        lambda at: Storage().children(at),
        lambda at: list(Storage().list(at)),
    ],
    ids=lambda act: str(act.__code__.co_names),
)
def test_a_path_with_a_nul_is_refused(act: Callable[[str], Any], form: str) -> None:
    with pytest.raises(StorageError) as raised:
        act(form.format(NUL))
    assert "NUL" in raised.value.cause
    assert "\0" not in str(raised.value)


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_deleting_leaves_a_path_with_a_nul_and_goes_on(form: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    odd = form.format(NUL)
    assert Storage().delete([odd, str(other)]) == [odd]
    assert not other.exists()
