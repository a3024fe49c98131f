"""Version files of a table without a catalog server, laid out as Java's HadoopCatalog does.

    <table>/metadata/v1.metadata.json, v2.metadata.json, …   (v3.gz.metadata.json compressed)
    <table>/metadata/version-hint.text                        a number, only a hint

The newest version is the table. A commit makes the next version by put-if-absent, so of all
writers one wins; the hint is then brought up to date, best effort. A hint that is stale, missing
or garbage costs time, not truth.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import StorageError
from rowlake.storage.locations import join, split

if TYPE_CHECKING:
    from rowlake.storage.files import Storage

HINT = "version-hint.text"
_FILE = re.compile(r"v(\d{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_ENDINGS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
# How many versions after the hint are tried one by one before the folder is listed.
_PROBES = 16
_MOST_DIGITS = 18  # of a version; more are garbage


@dataclass(frozen=True)
class Version:
    """One version of a table."""

    number: int
    location: str


def newest_version(table: str, storage: Storage) -> Version | None:
    """Return the newest version of the table in this folder, None where there is no table."""
    hint = read_hint(table, storage)
    found = None if hint is None else _find(table, hint, storage)
    if found is None:
        found = _newest_listed(table, storage)
        if found is None:
            return None
    for _ in range(_PROBES):
        later = _find(table, found.number + 1, storage)
        if later is None:
            return found
        found = later
    return _newest_listed(table, storage) or found


def read_hint(table: str, storage: Storage) -> int | None:
    """Return the version that the hint names, None where it says nothing usable."""
    try:
        text = storage.read(join(table, "metadata", HINT))
    except StorageError:
        return None
    first = text.decode("utf-8", "replace").strip().split("\n")[0].strip()
    is_number = first.isascii() and first.isdigit() and len(first) <= _MOST_DIGITS
    return int(first) if is_number else None


def write_hint(table: str, version: int, storage: Storage) -> None:
    """Bring the hint up to date, never backwards; best effort and silent."""
    location = join(table, "metadata", HINT)
    with suppress(Exception):
        if (read_hint(table, storage) or 0) >= version:
            return
        storage.write(location, str(version).encode())
        if split(location).is_local:
            # Hadoop's checksum of an older hint would make Java take this one for damaged.
            storage.delete([join(table, "metadata", f".{HINT}.crc")])


def version_location(table: str, version: int, ending: str) -> str:
    """Return where a version of a table goes; `ending` is `.metadata.json` or the like."""
    return join(table, "metadata", f"v{version}{ending}")


def _find(table: str, number: int, storage: Storage) -> Version | None:
    for ending in _ENDINGS:
        location = version_location(table, number, ending)
        if storage.exists(location):
            return Version(number, location)
    return None


def _newest_listed(table: str, storage: Storage) -> Version | None:
    versions = (
        Version(int(matched[1]), found.location)
        for found in storage.children(join(table, "metadata"))
        if (matched := _FILE.fullmatch(found.location.rpartition("/")[2]))
    )
    return max(versions, key=lambda version: version.number, default=None)
