"""Where a new data file goes.

Comes in: a table's location and properties. Goes out: locations that no other file has. The
layouts are Iceberg's: by default `<data>/<partition>/<file>`; for object stores a hash of the
name comes first, as folders of binary digits, so that requests spread over many prefixes.
Folders with names too long for a disk or an object store are shortened: locations are free by the
spec, and no reader takes partition values from them.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mmh3

from rowlake.errors import UnsupportedFeatureError
from rowlake.write.properties import parse_flag

if TYPE_CHECKING:
    from collections.abc import Mapping

HASH_BITS = 20
FOLDER_BITS = 4
FOLDERS = 3
# File systems take 255 bytes in a name, S3 1024 in a whole key. Names are ASCII: they are escaped.
LONGEST_NAME, LONGEST_PATH, LEAST_NAME = 255, 700, 24
MARK_DIGITS = 16
_CUT_ESCAPE = re.compile(r"%[0-9A-F]?\Z")


@dataclass(frozen=True)
class DataLocations:
    """Makes the locations of one table's files.

    `context` goes between hash and name where the data is not under the table's location.
    """

    data: str
    hashed: bool = False
    partitioned: bool = True
    context: str | None = None

    def place(self, partition_path: str, file_name: str) -> str:
        """Return the location of a file; `partition_path` is "" without partitions."""
        partition_path = _fitting(partition_path)
        if not self.hashed:
            return "/".join(part for part in (self.data, partition_path, file_name) if part)
        name = f"{partition_path}/{file_name}" if partition_path and self.partitioned else file_name
        folders = _hash_folders(name)
        if self.context is not None:
            return f"{self.data}/{folders}/{self.context}/{name}"
        separator = "/" if self.partitioned else "-"
        return f"{self.data}/{folders}{separator}{name}"


def data_locations(table_location: str, properties: Mapping[str, str]) -> DataLocations:
    """Return how a table's files are placed."""
    if "write.location-provider.impl" in properties:
        raise UnsupportedFeatureError(
            "Cannot write to a table with write.location-provider.impl: it names Java code. "
            "Remove the property, or set write.data.path or write.object-storage.enabled instead."
        )
    table = table_location.rstrip("/")
    data = properties.get("write.data.path", f"{table}/data").rstrip("/")
    return DataLocations(
        data=data,
        hashed=parse_flag(properties, "write.object-storage.enabled", default=False),
        partitioned=parse_flag(properties, "write.object-storage.partitioned-paths", default=True),
        context=None if data.startswith(table) else "/".join(table.split("/")[-2:]),
    )


def _fitting(path: str) -> str:
    """Return a path of folders that is not too long, as a whole and in each name."""
    if len(path) <= LONGEST_NAME:
        return path
    names = path.split("/")
    fair = max(LONGEST_PATH // len(names), LEAST_NAME)
    longest = LONGEST_NAME if len(path) <= LONGEST_PATH else min(fair, LONGEST_NAME)
    return "/".join(_shortened(name, longest) for name in names)


def _shortened(name: str, longest: int) -> str:
    """Return a name cut to fit, with a hash that keeps it unique; escapes stay whole."""
    if len(name) <= longest:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:MARK_DIGITS]
    kept = _CUT_ESCAPE.sub("", name[: longest - len(mark) - 1])
    return f"{kept}-{mark}"


def _hash_folders(name: str) -> str:
    bits = format(mmh3.hash(name.encode(), signed=False) & ((1 << HASH_BITS) - 1), f"0{HASH_BITS}b")
    cuts = [bits[start : start + FOLDER_BITS] for start in range(0, FOLDERS * FOLDER_BITS, 4)]
    return "/".join([*cuts, bits[FOLDERS * FOLDER_BITS :]])
