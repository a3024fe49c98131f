"""Key indexes of the data files that are written, and of those that exist already.

Comes in: batches of a data file, in the order of its rows. Goes out: its index file
(`rowlake.codecs.key_index`) beside it. An index is never needed: one that cannot be written is
left out, and its file is scanned.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rowlake.codecs.key_hash import family_of, hash_keys
from rowlake.codecs.key_index import MOST_ROWS, IndexedFile, encode
from rowlake.errors import StorageError
from rowlake.model.key_index import (
    LEAST_ROWS,
    LEAST_ROWS_PROPERTY,
    index_location,
    key_names,
)
from rowlake.model.properties import whole_number
from rowlake.model.schema import field_id
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage


@dataclass(frozen=True)
class IndexKeys:
    """The keys of a table's index: columns, in their order, and the families of their types.

    Files of fewer than `least_rows` rows have no index. `mapped` are the names of the columns in
    files that carry no field ids, by the table's name mapping.
    """

    names: tuple[str, ...]
    field_ids: tuple[int, ...]
    families: tuple[str, ...]
    least_rows: int = LEAST_ROWS
    mapped: tuple[str, ...] = ()

    def is_for(self, record_count: int) -> bool:
        """Return whether files of so many rows have an index."""
        return self.least_rows <= record_count <= MOST_ROWS


def index_keys(view: TableView, properties: Mapping[str, str] | None = None) -> IndexKeys | None:
    """Return the keys of a table's index; None without one, or where a column is gone.

    `properties` are taken for those of the table.
    """
    schema, properties = view.schema, view.properties if properties is None else properties
    names = key_names(properties)
    if not names or not set(names) <= set(schema.arrow.names):
        return None
    fields = [schema.arrow.field(name) for name in names]
    families = [family_of(field.type) for field in fields]
    ids = [field_id(field) for field in fields]
    if None in families or None in ids:
        return None
    return IndexKeys(
        names,
        tuple(each for each in ids if each is not None),
        tuple(each for each in families if each is not None),
        whole_number(properties, LEAST_ROWS_PROPERTY, LEAST_ROWS, least=1),
        _mapped(view, ids),
    )


def _mapped(view: TableView, ids: list[int | None]) -> tuple[str, ...]:
    if view.name_mapping is None:
        return ()
    text = view.name_mapping.text
    try:
        names = {entry["field-id"]: sorted(entry["names"]) for entry in json.loads(text)}
    except (ValueError, KeyError, TypeError, RecursionError):  # readers say what is wrong with it
        return (hashlib.sha256(text.encode()).hexdigest(),)
    return tuple(json.dumps(names.get(each)) for each in ids)


class IndexBuilder:
    """The index of one file, while its rows go by; holds 8 bytes per row."""

    def __init__(self, keys: IndexKeys) -> None:
        self._keys = keys
        self._hashes: list[NDArray[np.uint64]] = []

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take the key columns of the next rows."""
        self._hashes.append(hash_keys(columns))

    def write(
        self, location: str, file_size_in_bytes: int, record_count: int, storage: Storage
    ) -> str | None:
        """Write the index of a finished data file; return its location, None without one."""
        hashes = np.concatenate([np.empty(0, np.uint64), *self._hashes])
        if len(hashes) != record_count or not self._keys.is_for(record_count):
            return None
        file = IndexedFile(
            location,
            file_size_in_bytes,
            record_count,
            self._keys.field_ids,
            self._keys.families,
            self._keys.names,
            self._keys.mapped,
        )
        place = index_location(location)
        with suppress(StorageError):
            storage.write(place, encode(file, hashes, created_by=f"rowlake {__version__}"))
            return place
        return None
