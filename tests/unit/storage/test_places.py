"""Where locations really are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowlake.storage import local
from rowlake.storage.files import Storage
from rowlake.storage.places import are_below, are_below_without_links, place_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/a", "s3a://b//a/"),
        ("S3N://b/a", "s3://b/a"),
        ("gs://b/a", "gcs://b/a"),
        ("abfs://c@h/a", "abfss://c@h/a/"),
        ("/a/b", "file:/a//b"),
        ("/a/b", "FILE:///a/c/../b/"),
        ("hdfs://n/a", "hdfs://n/a/"),
    ],
)
def test_spellings_of_one_place(one: str, other: str) -> None:
    assert place_of(one) == place_of(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [("s3://b/a", "s3://B/a"), ("s3://b/a", "gs://b/a"), ("/a", "s3://a"), ("/a", "/A")],
)
def test_different_places(one: str, other: str) -> None:
    assert place_of(one) != place_of(other)


@pytest.mark.parametrize("odd", ["s3://b/a/../c", "ftp://h/a", "/a/\0", "s3://b/./a"])
def test_what_cannot_be_told_has_no_place(odd: str) -> None:
    assert place_of(odd) is None


def below(locations: list[str | None], *folders: str) -> list[bool]:
    return are_below(pa.array(locations, pa.string()), folders).tolist()


def test_files_below_folders() -> None:
    found = {
        "s3a://b/t/data/x": True,
        "s3://b/t/x": True,
        "s3://b/t": False,
        "s3://b/t2/x": False,
        "s3://b/t/../u/x": False,
        "s3://b/t/..": False,
        "/b/t/x": False,
        "x": False,
        "": False,
        "/": False,
    }
    assert below([*found], "s3://b/t/") == [*found.values()]
    assert below([None, "/a/x"], "/a") == [False, True]
    assert below(["/a/x"]) == [False]
    assert are_below(pa.chunked_array([], pa.string()), ["/a"]).tolist() == []


def test_links_lead_elsewhere(tmp_path: Path) -> None:
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    (own / "data").mkdir(parents=True)
    theirs.mkdir()
    (own / "link").symlink_to(theirs)
    (own / "inner").symlink_to(own / "data")
    (tmp_path / "alias").symlink_to(own)
    names = [f"{own}/data/x", f"{own}/link/x", f"{own}/inner/x", f"{tmp_path}/alias/data/x"]
    assert below(names, str(own)) == [True, False, True, True]
    assert below(names, f"{tmp_path}/alias") == [True, False, True, True]
    straight = are_below_without_links(pa.array(names), [str(own)])
    assert straight.tolist() == [True, False, False, False]
    by_alias = are_below_without_links(pa.array(names), [f"{tmp_path}/alias"])
    assert by_alias.tolist() == [False, False, False, True]


def test_listings_follow_no_links_and_tell_them(tmp_path: Path) -> None:
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "t" / "a" / "x").write_text("1")
    (tmp_path / "t" / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "t" / "file").symlink_to(tmp_path / "t" / "a" / "x")
    os.mkfifo(tmp_path / "t" / "pipe")
    for is_flat in (True, False):
        links: list[str] = []
        listed = Storage().listing(f"{tmp_path}/t", is_flat=is_flat, on_link=links.append)
        found = pa.concat_tables(listed)["location"].to_pylist()
        assert found == [f"{tmp_path}/t/a/x"]
        assert sorted(links) == [f"{tmp_path}/t/a/up", f"{tmp_path}/t/file"]


def test_deleting_folders_follows_no_links(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    local.delete_empty_folders(str(tmp_path / "link"))
    local.delete_folder(f"{tmp_path}/link/")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "theirs" / "x").exists()
    (tmp_path / "theirs" / "empty" / "deep").mkdir(parents=True)
    local.delete_empty_folders(str(tmp_path / "theirs"))
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["x"]
