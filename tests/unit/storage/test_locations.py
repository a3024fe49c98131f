from __future__ import annotations

from pathlib import Path

import pytest

from rowlake.errors import UnsupportedFeatureError
from rowlake.storage.locations import is_remote, join, split


@pytest.mark.parametrize(
    ("location", "scheme", "authority", "path"),
    [
        ("/a/b c/d%20e#f?g=h", "file", "", "/a/b c/d%20e#f?g=h"),
        ("file:/a/b", "file", "", "/a/b"),
        ("file:///a/b", "file", "", "/a/b"),
        ("FILE:///a/b", "file", "", "/a/b"),
        ("file://localhost/a/b", "file", "localhost", "/a/b"),
        ("s3://bucket/k/é=1/x y%2F", "s3", "bucket", "bucket/k/é=1/x y%2F"),
        ("s3a://bucket", "s3a", "bucket", "bucket"),
        ("gs://bucket/k", "gs", "bucket", "bucket/k"),
        ("hdfs://host:9000/a/b", "hdfs", "host:9000", "/a/b"),
        (
            "abfss://box@account.dfs.core.windows.net/a/b",
            "abfss",
            "account.dfs.core.windows.net",
            "box/a/b",
        ),
    ],
)
def test_a_location_splits_without_decoding_anything(
    location: str, scheme: str, authority: str, path: str
) -> None:
    parts = split(location)
    assert (parts.scheme, parts.authority, parts.path) == (scheme, authority, path)
    assert parts.location_of(parts.path).lower() == location.lower()


def test_a_relative_path_is_of_the_working_folder() -> None:
    assert split("a/b").path == str(Path("a/b").absolute())


def test_a_colon_in_a_file_name_is_no_scheme() -> None:
    assert split("/a/12:30:00/x").path == "/a/12:30:00/x"
    assert split("a:b/c").path == str(Path("a:b/c").absolute())


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"ftp://.*supported: .*s3"):
        split("ftp://host/a")


def test_remote_means_another_file_system() -> None:
    assert is_remote("s3://b/k")
    assert not is_remote("file:/a")
    assert join("s3://b/k/", "a", "b") == "s3://b/k/a/b"
