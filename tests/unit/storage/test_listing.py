"""Listings as columns."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowlake.errors import StorageError
from rowlake.storage.files import Storage
from rowlake.storage.listing import LISTING

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a", "b/c", "b/d/e/f/g/h/i", "b é/x y%20#", "_h/x", ".k/x", "b/_deep/x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(NAMES):
        path = tmp_path / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * number)
        os.utime(path, ns=(0, (number + 1) * 10**9 + 999_999))
    (tmp_path / "t2").mkdir()
    (tmp_path / "t2" / "x").write_bytes(b"")
    return tmp_path / "t"


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}/"])
@pytest.mark.parametrize("is_flat", [False, True])
def test_all_files_below_a_folder_with_size_and_time(
    folder: Path, form: str, is_flat: bool
) -> None:
    found = pa.concat_tables(Storage().listing(form.format(folder), is_flat=is_flat))
    assert found.schema == LISTING
    base = form.format(folder).rstrip("/")
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == sorted(
        (f"{base}/{name}", number, (number + 1) * 1000) for number, name in enumerate(NAMES)
    )


def test_folders_near_the_top_may_be_left_out(folder: Path) -> None:
    listed = Storage().listing(str(folder), enters=lambda name: not name.startswith(("_", ".")))
    found = pa.concat_tables(listed)["location"].to_pylist()
    assert {one.removeprefix(f"{folder}/") for one in found} == {"a", "b/c", *NAMES[2:4]}


def test_many_folders(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "x").write_bytes(b"")
    found = pa.concat_tables(Storage().listing(str(tmp_path)))
    assert len(set(found["location"].to_pylist())) == 100


def test_no_folder_has_no_files(tmp_path: Path) -> None:
    assert sum(found.num_rows for found in Storage().listing(f"{tmp_path}/none")) == 0


def test_a_relative_folder_is_made_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    found = pa.concat_tables(Storage().listing("t"))["location"].to_pylist()
    assert f"{folder}/a" in found


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_an_error(folder: Path) -> None:
    (folder / "b").chmod(0)
    try:
        with pytest.raises(StorageError):
            list(Storage().listing(str(folder)))
    finally:
        (folder / "b").chmod(0o755)


def test_deleting_tells_what_is_left(folder: Path) -> None:
    locations = [f"{folder}/a", f"{folder}/b/c", f"{folder}/b", f"{folder}/none"]
    assert Storage().delete(locations, threads=2) == [f"{folder}/b"]
    assert not (folder / "a").exists()
