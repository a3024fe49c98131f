"""Split locations into scheme, authority and path.

An Iceberg location is a plain string, not a URL: nothing in it is percent-encoded, and `%`, `#`,
`?`, spaces and `=` stand for themselves. Java writes `file:/a/b` as well as `file:///a/b`. A path
cannot hold a NUL: operating systems end the path there, so it is refused here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rowlake.errors import StorageError, UnsupportedFeatureError

LOCAL = "file"
S3 = frozenset({"s3", "s3a", "s3n"})
GCS = frozenset({"gs", "gcs"})
AZURE = frozenset({"abfs", "abfss", "wasb", "wasbs"})
HADOOP = frozenset({"hdfs", "viewfs"})
SCHEMES = frozenset({LOCAL}) | S3 | GCS | AZURE | HADOOP

_WITH_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_FILE_WITHOUT_AUTHORITY = re.compile(r"[fF][iI][lL][eE]:(.*)", re.DOTALL)


@dataclass(frozen=True)
class Parts:
    """One location: `path` is what the file system takes, `prefix` what comes before it."""

    scheme: str
    authority: str
    path: str
    prefix: str

    @property
    def is_local(self) -> bool:
        """True for files of this machine."""
        return self.scheme == LOCAL

    def location_of(self, path: str) -> str:
        """Return the location of another path of the same file system, in the same form."""
        return self.prefix + path


def split(location: str) -> Parts:
    """Split a location.

    Raises UnsupportedFeatureError for an unsupported scheme, StorageError for a location that no
    file can have.
    """
    if "\0" in location:
        raise StorageError(
            location.replace("\0", "\\0"),
            "its path has a NUL character",
            advice="No file can have this name: correct the metadata that names it.",
        )
    if location.startswith("/"):
        return _plain(location)
    found = _WITH_AUTHORITY.fullmatch(location)
    if found:
        return _with_authority(location, found[1], found[2], found[3])
    without = _FILE_WITHOUT_AUTHORITY.fullmatch(location)
    if without and without[1].startswith("/"):
        return Parts(LOCAL, "", without[1], location[: len("file:")])
    return _plain(str(Path(location).absolute()))


@lru_cache(maxsize=4096)
def _plain(path: str) -> Parts:
    return Parts(LOCAL, "", str(Path(path)), "")


def _with_authority(location: str, scheme: str, authority: str, path: str) -> Parts:
    scheme = scheme.lower()
    if scheme not in SCHEMES:
        known = ", ".join(sorted(SCHEMES))
        raise UnsupportedFeatureError(
            f"Cannot open {location}: unsupported scheme {scheme}:// (supported: {known})."
        )
    before = location[: len(location) - len(authority) - len(path)]
    if scheme == LOCAL or scheme in HADOOP:
        return Parts(scheme, authority, path or "/", before + authority)
    if scheme in AZURE and "@" in authority:
        container, _, host = authority.partition("@")
        # pyarrow addresses container/path; the host goes into the file system.
        return _AzureParts(scheme, host, f"{container}{path}", before, container)
    return Parts(scheme, authority, f"{authority}{path}".rstrip("/"), before)


@dataclass(frozen=True)
class _AzureParts(Parts):
    container: str

    def location_of(self, path: str) -> str:
        rest = path.removeprefix(self.container)
        return f"{self.prefix}{self.container}@{self.authority}{rest}"


def is_remote(location: str) -> bool:
    """Return True where a location is not on this machine's own file system."""
    return not split(location).is_local


def folder_location(location: str) -> str:
    """Return the location of a folder without trailing slashes; relative paths become absolute."""
    parts = split(location)
    return parts.location_of(parts.path.rstrip("/") or "/")


def join(location: str, *names: str) -> str:
    """Return the location of something below a folder."""
    return "/".join([location.rstrip("/"), *names])
