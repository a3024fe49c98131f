"""Where orphans are looked for, and which of the files found there may be orphans at all.

Comes in: a table and what the caller asked for. Goes out: `Candidates`: files older than the
limit, none of them hidden (names that begin with `_` or `.`, but for partition folders and what a
killed writer left), and the metadata files of any table that lie there, of any age. What the
storage does not date is never a candidate, nor is what only a symbolic link leads to.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError
from rowlake.maintain.cleanup.identity import identified
from rowlake.model.key_index import data_files_of
from rowlake.storage.listing import LISTING
from rowlake.times import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.engine.progress import Reporter
    from rowlake.maintain.cleanup.identity import Equality
    from rowlake.maintain.cleanup.orphan_places import Places
    from rowlake.model.handle import TableHandle

MS_PER_HOUR = 60 * 60 * 1000
DEFAULT_AGE_MS = 72 * MS_PER_HOUR
SHORTEST_AGE_MS = 24 * MS_PER_HOUR
# Where Delta Lake and Hudi keep what Iceberg keeps in metadata files.
OTHER_LOGS = ("_delta_log", ".hoodie")
MODES = ("ERROR", "IGNORE", "DELETE")
# What a writer that was killed leaves beside a file of this machine (`storage.local`).
_LEFT_BY_WRITERS = r"/\.[0-9a-f]{32}\.tmp$"
_METADATA_FILES = (".metadata.json", ".metadata.json.gz", "/metadata/version-hint.text")


@dataclass(frozen=True)
class Search:
    """What is looked for and where; times are ms since 1970.

    With a `file_list` (a table of `LISTING`) nothing is listed.
    """

    older_than_ms: int
    where: Places
    equal: Equality
    mismatch_mode: str = "ERROR"
    is_flat: bool = False
    file_list: pa.Table | None = None
    force: bool = False


@dataclass(frozen=True)
class Candidates:
    """What was found: files that may be orphans, metadata files of tables, other formats' logs.

    `links` are symbolic links, which were not followed.
    """

    files: pa.Table
    metadata_files: pa.Table
    logs: frozenset[str] = frozenset()
    links: tuple[str, ...] = ()


def checked_mode(mode: str) -> str:
    """Return what is done with files whose scheme or authority differs from the metadata's."""
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise InvalidStatementError(
            f"prefix_mismatch_mode must be one of {', '.join(MODES)}, not {mode!r}."
        )
    return mode.upper()


def age_limit(older_than: object, *, force: bool, now_ms: int | None = None) -> int:
    """Return the time before which files may go; less than a day ago only by force."""
    now = int(time.time() * 1000) if now_ms is None else now_ms
    if older_than is None:
        return now - DEFAULT_AGE_MS
    limit = to_ms(older_than)
    if now - limit < SHORTEST_AGE_MS and not force:
        raise InvalidStatementError(
            "Cannot remove orphan files with an interval less than 24 hours: files that others are "
            "writing right now are not in the metadata yet, and would be lost. Give an older time; "
            "or, where nobody else can be writing to the table, force=True."
        )
    return limit


def search(handle: TableHandle, wanted: Search, reporter: Reporter) -> Candidates:
    """List the places, or take the files of the list; what is younger or hidden stays out."""
    hidden = Hidden(handle)
    files, metadata_files, count = [LISTING.empty_table()], [LISTING.empty_table()], 0
    logs: set[str] = set()
    links: list[str] = []
    for place in wanted.where.places:
        for found in _found(handle, place, wanted, hidden, links):
            count += found.num_rows
            reporter.update(count, 0)
            logs |= _logs(found)
            visible = found if wanted.file_list is not None else hidden.without(found, place)
            metadata_files.append(_metadata_files(visible))
            files.append(_old(visible, wanted.older_than_ms))
    return Candidates(
        pa.concat_tables(files),
        pa.concat_tables(metadata_files),
        frozenset(logs),
        tuple(sorted(links)),
    )


def _found(
    handle: TableHandle, place: str, wanted: Search, hidden: Hidden, links: list[str]
) -> Iterable[pa.Table]:
    if wanted.file_list is not None:
        return [_of_list(wanted.file_list, place, wanted.equal)]
    return handle.storage.listing(
        place, enters=hidden.is_entered, is_flat=wanted.is_flat, on_link=links.append
    )


def _logs(files: pa.Table) -> set[str]:
    """Return the folders in which other table formats keep their logs."""
    found: set[str] = set()
    for name in OTHER_LOGS:
        inside = files["location"].filter(pc.match_substring(files["location"], f"/{name}/"))
        folders = pc.replace_substring_regex(inside, f"/{re.escape(name)}/.*$", f"/{name}")
        found |= set(pc.unique(folders).to_pylist())
    return found


def _of_list(files: pa.Table, place: str, equal: Equality) -> pa.Table:
    """Return the files of a list that are below a place; who makes a list means what is in it."""
    found = identified(files["location"], equal)
    of_place = identified(pa.array([place], pa.large_string()), equal)
    # With the slash: `db/t` is not to take what belongs to `db/t2`.
    is_below = pc.starts_with(found.paths, of_place.paths[0].as_py().rstrip("/") + "/")
    return files.filter(pc.and_(is_below, pa.array(found.fits(of_place.prefixes[0]))))


def _old(files: pa.Table, older_than_ms: int) -> pa.Table:
    # A null compares to null, which a filter leaves out.
    return files.filter(pc.less(files["modified_ms"], older_than_ms))


def _metadata_files(files: pa.Table) -> pa.Table:
    endings = [pc.ends_with(files["location"], ending) for ending in _METADATA_FILES]
    return files.filter(reduce(pc.or_, endings))


class Hidden:
    """Which names are hidden: a partition folder is not, whatever its column is called."""

    def __init__(self, handle: TableHandle) -> None:
        names = {
            part.name
            for spec in handle.view().specs.values()
            for part in spec.fields
            if part.name.startswith(("_", "."))
        }
        self._partitions = tuple(sorted(f"{name}=" for name in names))

    def is_entered(self, name: str) -> bool:
        """Return whether a folder is looked into."""
        is_shown = not name.startswith(("_", ".")) or name.startswith(self._partitions)
        return is_shown or name in OTHER_LOGS

    def without(self, files: pa.Table, place: str) -> pa.Table:
        """Return the files without those that have a hidden name below a place."""
        below = pc.utf8_slice_codeunits(files["location"], len(place.rstrip("/")))
        return files.filter(pc.invert(self.mask(below)))

    def mask(self, below: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return which paths, each from the slash after the place on, have a hidden name.

        A key index counts as its data file.
        """
        below = data_files_of(below)
        if self._partitions:
            shown = "|".join(map(re.escape, self._partitions))
            below = pc.replace_substring_regex(below, f"/(?:{shown})", "/partition=")
        if pc.any(pc.match_substring(below, "/.")).as_py():
            below = pc.replace_substring_regex(below, _LEFT_BY_WRITERS, "/left")
        return pc.or_(pc.match_substring(below, "/_"), pc.match_substring(below, "/."))


def file_list(files: pa.Table) -> pa.Table:
    """Return a list of files that a caller made (`file_path`, `last_modified`) as a listing."""
    for name in ("file_path", "last_modified"):
        if name not in files.column_names:
            raise InvalidStatementError(
                f"The list of files has no column {name}; it has {', '.join(files.column_names)}."
            )
    paths, times = files["file_path"], files["last_modified"]
    if not (pa.types.is_string(paths.type) or pa.types.is_large_string(paths.type)):
        raise InvalidStatementError(f"Invalid file_path column: {paths.type} is not a string.")
    if not pa.types.is_timestamp(times.type):
        raise InvalidStatementError(
            f"Invalid last_modified column: {times.type} is not a timestamp."
        )
    sizes = pa.nulls(files.num_rows, pa.int64())
    ms = pc.floor_temporal(times, unit="millisecond").cast(pa.timestamp("ms", times.type.tz))
    listed = pa.table([paths.cast(pa.large_string()), sizes, ms.cast(pa.int64())], schema=LISTING)
    once = listed.group_by("location").aggregate([("size_in_bytes", "max"), ("modified_ms", "max")])
    return once.filter(pc.is_valid(once["location"])).rename_columns(LISTING.names).cast(LISTING)
