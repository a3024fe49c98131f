"""Files that may be orphans, held against all that a table's metadata names.

The metadata's locations come part by part; after each part only what it does not name is left, so
that memory holds the files in question and one part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError
from rowlake.maintain.cleanup.foreign import foreign_folders, foreign_logs
from rowlake.maintain.cleanup.identity import Identified, compare, identified
from rowlake.maintain.cleanup.links import linked_locations
from rowlake.maintain.cleanup.orphan_places import paths_of
from rowlake.mirror.referenced import files_of, mirror_of
from rowlake.model.key_index import data_files_of
from rowlake.model.reachable import Kind
from rowlake.storage.locations import folder_location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowlake.engine.spark import Engine
    from rowlake.maintain.cleanup.identity import Equality
    from rowlake.maintain.cleanup.orphan_search import Candidates, Search
    from rowlake.model.handle import TableHandle


@dataclass(frozen=True)
class Sieve:
    """What is left: `files` (a table of `LISTING`), and which of them are named by path only.

    A key index has the identity of its data file: it is needed as long as that is.
    """

    files: pa.Table
    identities: Identified
    is_mismatched: npt.NDArray[np.bool_]
    wanted: Search
    conflicts: frozenset[tuple[str, str]] = frozenset()

    def without(self, named: pa.ChunkedArray) -> Sieve:
        """Return what is left when the metadata names these locations."""
        if not self.files.num_rows or not len(named):
            return self
        found = compare(self.identities, identified(named, self.wanted.equal))
        marked = replace(
            self,
            is_mismatched=self.is_mismatched | found.is_mismatched,
            conflicts=self.conflicts | found.conflicts,
        )
        return marked.where(~found.is_known) if found.is_known.any() else marked

    def without_any(self, named: pa.ChunkedArray) -> Sieve:
        """Return what is left when the metadata names these, by whatever path of this machine."""
        linked = linked_locations(named, self.wanted.where.places, self.wanted.equal)
        return self.without(named).without(linked)

    def where(self, kept: npt.NDArray[np.bool_]) -> Sieve:
        """Return some of the files."""
        return replace(
            self,
            files=self.files.filter(pa.array(kept)),
            identities=self.identities.filter(kept),
            is_mismatched=self.is_mismatched[kept],
        )

    def outside(self, folders: Iterable[str]) -> Sieve:
        """Return the files that are none of these paths and not below any."""
        kept = np.ones(self.files.num_rows, bool)
        paths = self.identities.paths
        for folder in folders:
            below = pc.starts_with(paths, folder.rstrip("/") + "/")
            kept &= ~pc.or_(below, pc.equal(paths, folder)).to_numpy(zero_copy_only=False)
        return self if kept.all() else self.where(kept)

    def after(self, count: int) -> Sieve:
        """Return the files after the first `count`."""
        return replace(
            self,
            files=self.files.slice(count),
            identities=self.identities.after(count),
            is_mismatched=self.is_mismatched[count:],
        )

    def sorted(self) -> Sieve:
        """Return the files in the order of their locations."""
        return self.of(self.files.sort_by("location"))

    def of(self, files: pa.Table) -> Sieve:
        """Return a sieve of these files, that have been through it."""
        return replace(
            self,
            files=files,
            identities=identified(data_files_of(files["location"]), self.wanted.equal),
            is_mismatched=np.zeros(files.num_rows, bool),
        )

    def settled(self) -> Sieve:
        """Return what may go; where the prefix of a file differs, the mode decides."""
        mode = self.wanted.mismatch_mode
        if mode == "DELETE" or not self.is_mismatched.any():
            return self
        if mode == "ERROR":
            raise InvalidStatementError(
                "Unable to determine whether certain files are orphan: the metadata names files "
                "that differ from those found in scheme or authority only. No file was removed. "
                "Say which are equal by equal_schemes and equal_authorities; or set "
                "prefix_mismatch_mode to IGNORE to leave these files alone, or to DELETE where "
                "they are surely different files. "
                f"Conflicting authorities/schemes: {_conflicts(self.conflicts)}."
            )
        return self.where(~self.is_mismatched)


def _conflicts(found: Iterable[tuple[str, str]]) -> str:
    return "[" + ", ".join(f"({theirs}, {ours or 'none'})" for theirs, ours in sorted(found)) + "]"


def sifted(
    handle: TableHandle,
    engine: Engine,
    files: pa.Table,
    wanted: Search,
    protected: Iterable[str],
) -> Sieve:
    """Return the files that the table's metadata does not name, sorted by location."""
    files = files.combine_chunks()
    sieve = Sieve(
        files,
        identified(data_files_of(files["location"]), wanted.equal),
        np.zeros(files.num_rows, bool),
        wanted,
    ).outside(protected)
    has_files_there = not wanted.where.is_elsewhere or wanted.force
    for named in known_locations(handle, engine):
        has_files_there = has_files_there or _any_below(named, wanted)
        sieve = sieve.without_any(named)
    if not has_files_there and sieve.files.num_rows:
        raise InvalidStatementError(
            f"Cannot remove orphan files of {handle.name} in {wanted.where.places[0]}: this is not "
            f"a folder of the table, and no file of it is there, so all that is found may belong "
            f"to others. No file was removed. Check the location; force=True goes on."
        )
    return sieve.settled().sorted()


def _any_below(named: pa.ChunkedArray, wanted: Search) -> bool:
    place = identified(pa.array(wanted.where.places, pa.large_string()), wanted.equal)
    found = identified(named, wanted.equal).with_prefix(place.prefixes[0])
    folder = place.paths[0].as_py().rstrip("/") + "/"
    return bool(pc.any(pc.starts_with(found, folder)).as_py())


def known_locations(handle: TableHandle, engine: Engine) -> Iterator[pa.ChunkedArray]:
    """Yield all locations that the metadata names, of every snapshot, part by part."""
    yield summary_files(handle)
    mirror = mirror_of(handle)
    if mirror is not None:
        yield pa.chunked_array([pa.array(files_of(mirror), pa.large_string())])
    for part in handle.format.file_history(handle, runner=engine).reachable():
        yield part["location"]


def summary_files(handle: TableHandle) -> pa.ChunkedArray:
    """Return the files that summaries of snapshots name, under keys like `rowlake.…-file`."""
    named = [
        value
        for snapshot in handle.snapshots
        for key, value in snapshot.summary.items()
        if key.startswith("rowlake.") and key.endswith("-file")
    ]
    return pa.chunked_array([pa.array(named, pa.large_string())])


def newly_known(sieve: Sieve, before: TableHandle, newest: TableHandle, engine: Engine) -> Sieve:
    """Return what is left when the metadata has moved on."""
    left = sieve.without(summary_files(newest))
    for part in newest.format.file_history(newest, runner=engine).reachable(since=before):
        left = left.without_any(part["location"])
    if left.wanted.mismatch_mode != "DELETE" and left.is_mismatched.any():
        return left.where(~left.is_mismatched)
    return left


def foreign_among(handle: TableHandle, found: Candidates, wanted: Search) -> Sequence[str]:
    """Return the paths of folders of other tables among what was found."""
    named = handle.format.file_history(handle).metadata_files()
    own_kinds = pa.array([int(Kind.METADATA), int(Kind.MANIFEST_LIST)], pa.int8())
    of_table = named.filter(pc.is_in(named["kind"], value_set=own_kinds))
    known = identified(of_table["location"], wanted.equal)
    own = pc.unique(pc.replace_substring_regex(known.paths, "/[^/]*$", "")).to_pylist()
    logs = [one for one in paths_of(sorted(found.logs), wanted.equal) if one not in own]
    if logs and mirror_of(handle) is not None:  # its log names the table's own files
        (folder,) = paths_of([folder_location(handle.location)], wanted.equal)
        logs = [one for one in logs if one.rpartition("/")[0] != folder]
    strays = _strays(found.metadata_files["location"], known, wanted.equal)
    return [
        *foreign_logs(handle, logs, own, force=wanted.force),
        *foreign_folders(handle, strays, own),
    ]


def _strays(
    locations: pa.ChunkedArray, known: Identified, equal: Equality
) -> list[tuple[str, str]]:
    """Return location and path of metadata files that are not the table's."""
    found = identified(locations, equal)
    compared = compare(found, known)
    stray = pa.array(~(compared.is_known | compared.is_mismatched))
    names = locations.filter(stray).to_pylist()
    return list(zip(names, found.paths.filter(stray).to_pylist(), strict=True))
