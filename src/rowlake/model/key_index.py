"""Names of key indexes: the table properties, and the index file beside each data file.

The name of an index file follows from that of its data file, so nobody keeps a list of them, and
whoever deletes a data file knows what goes with it. It begins with an underscore: engines that list
folders (readers of plain Parquet, VACUUM, removal of orphan files) pass over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

KEYS_PROPERTY = "rowlake.index.keys"
LEAST_ROWS_PROPERTY = "rowlake.index.min-rows"
# Opening an index takes as long as reading the keys of a file of so many rows.
LEAST_ROWS = 10_000
_PREFIX, _SUFFIX = "_", ".keys.puffin"
_NAME = r"(^|/)_([^/]+)\.keys\.puffin$"


def index_location(data_file: str) -> str:
    """Return where the index of a data file is, or would be."""
    folder, slash, name = data_file.rpartition("/")
    return f"{folder}{slash}{_PREFIX}{name}{_SUFFIX}"


def with_indexes(data_files: Iterable[str]) -> list[str]:
    """Return locations of files, each followed by that of its index, whether or not it exists."""
    return [each for file in data_files for each in (file, index_location(file))]


def data_files_of(locations: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return locations in which each index file is named by its data file instead."""
    return pc.replace_substring_regex(locations, _NAME, r"\1\2")


def has_index(properties: Mapping[str, str]) -> bool:
    """Return whether a table's properties ask for key indexes."""
    return bool(properties.get(KEYS_PROPERTY, "").strip())


def key_names(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a table's key index, in their order; none without an index."""
    names = (name.strip() for name in properties.get(KEYS_PROPERTY, "").split(","))
    return tuple(name for name in names if name)
