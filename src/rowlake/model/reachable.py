"""Files that a table's metadata names, as columns.

`REACHABLE` is the one layout: a location as the metadata spells it, and what is there. There is
no object per file, since a table may have millions. `FileHistory` is how a format tells them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.key_index import index_location

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rowlake.model.handle import TableHandle

# The same files under several names (`rowlake.storage.locations`): beginning, pattern, one name.
_SPELLINGS = (
    ("s3", r"^(?i:s3[an]?)://", "s3://"),
    ("file:", r"^(?i:file):/+", "/"),
    ("gcs", r"^(?i:gcs)://", "gs://"),
    ("abfss", r"^(?i:abfss)://", "abfs://"),
    ("wasbs", r"^(?i:wasbs)://", "wasb://"),
)


class Kind(enum.IntEnum):
    """What a reachable file is; the first three are the spec's `content` numbers."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2
    MANIFEST = 3
    MANIFEST_LIST = 4
    STATISTICS = 5
    METADATA = 6
    KEY_INDEX = 7


# Large strings: the locations of some million files do not fit the offsets of small ones.
REACHABLE = pa.schema([pa.field("location", pa.large_string()), pa.field("kind", pa.int8())])


@dataclass(frozen=True)
class LeftBehind:
    """Files of snapshots that are gone; `unread` of their metadata could not be read.

    What only those reached is not in `files`: it stays in storage as orphans.
    """

    files: pa.Table
    unread: tuple[str, ...] = ()


class FileHistory(Protocol):
    """The files of all snapshots of a table; read when they are asked for.

    Tables of locations are `REACHABLE`. Metadata that cannot be read whole raises
    CorruptTableError: no file is sure to be unreachable then.
    """

    def metadata_files(self) -> pa.Table:
        """Return what holds the metadata itself, old versions of it that are kept included."""

    def reachable(self, *, since: TableHandle | None = None) -> Iterator[pa.Table]:
        """Yield, part by part, every file that a reader of any snapshot opens, metadata included.

        A file may come in several parts. `since` is the table at an earlier moment: data files
        that it named already may be left out.
        """

    def files(self, columns: Iterable[str]) -> dict[int, pa.Table]:
        """Return the live data and delete files of all snapshots, by spec, each file once."""

    def snapshots_naming(self, locations: Collection[str]) -> list[int]:
        """Return the snapshots whose metadata names one of some files, as live or as removed."""

    def left_behind(self, after: TableHandle) -> LeftBehind:
        """Return the files that only snapshots reached which the table `after` has no more.

        Data files come first: where deleting is cut short, what is left says what went. Damage in
        what is gone is passed over. Raises CommitStateUnknownError where the commit in between
        took more with it than it was told to.
        """


def of_kind(locations: Iterable[str] | pa.ChunkedArray, kind: Kind) -> pa.Table:
    """Return locations as a table of `REACHABLE`."""
    if isinstance(locations, pa.ChunkedArray):
        column = locations.cast(pa.large_string())
    else:
        column = pa.array(locations, pa.large_string())
    kinds = pa.array(np.full(len(column), int(kind), np.int8))
    return pa.table([column, kinds], schema=REACHABLE)


def distinct(files: pa.Table) -> pa.Table:
    """Return each location of each kind once."""
    found = []
    for kind in sorted(pc.unique(files["kind"]).to_pylist()):
        of = files.filter(pc.equal(files["kind"], kind))
        found.append(of_kind(pa.chunked_array([pc.unique(of["location"])]), Kind(kind)))
    return pa.concat_tables([REACHABLE.empty_table(), *found])


def with_key_indexes(files: pa.Table) -> pa.Table:
    """Return files, and the key indexes that the data files among them may have."""
    data = files["location"].filter(pc.equal(files["kind"], int(Kind.DATA)))
    indexes = of_kind([index_location(place) for place in data.to_pylist()], Kind.KEY_INDEX)
    return pa.concat_tables([files, indexes])


def without(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files that are at none of the others' places, however those are spelled."""
    if not files.num_rows or not others.num_rows:
        return files
    known = pc.is_in(places(files["location"]), value_set=places(others["location"]))
    return files.filter(pc.invert(known))


def places(locations: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return locations in one spelling: `s3a://` and `s3n://` as `s3://`, `file:///a` as `/a`."""
    found = locations.cast(pa.large_string())
    for beginning, spelled, plain in _SPELLINGS:
        if pc.any(pc.starts_with(found, beginning, ignore_case=True)).as_py():
            found = pc.replace_substring_regex(found, pattern=spelled, replacement=plain)
    return found
