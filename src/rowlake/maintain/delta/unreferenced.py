"""Files below a Delta table that no version within the retention refers to.

Storage is listed first and the log read after, so that a file that was committed while the listing
ran is known. Never found: files younger than the retention, or that the storage does not date;
names that begin with `_` or `.`, but for change files and partition folders; other tables below the
table's folder; and what is reached only through a symbolic link. Where an Iceberg table shares the
folder, only files that the log itself removed are found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.retained_files import change_files, removed_files, retained_files
from rowlake.model.key_index import data_files_of
from rowlake.storage.listing import LISTING
from rowlake.storage.places import are_below_without_links, parent, place_of

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle
    from rowlake.engine.progress import Reporter

CHANGES, INDEX, LOG = "_change_data", "_delta_index", "_delta_log"
_OTHER_LOGS = rf"/(?:{LOG}|\.hoodie)/.*$"
_ICEBERG = r"/metadata/[^/]*\.metadata\.json(?:\.gz)?$"
_ODD_STEPS = r"(?:^|/)(?:\.{0,2})(?:/|$)"


@dataclass(frozen=True)
class Unreferenced:
    """What may go (`LISTING`, sorted), how much of it the log knows, and what was left alone."""

    files: pa.Table
    tracked_count: int
    folders_count: int
    links: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def size_in_bytes(self) -> int:
        """The size of the files."""
        return int(pc.sum(self.files["size_in_bytes"]).as_py() or 0)


@dataclass(frozen=True)
class Listed:
    """The files below a table's folder, and the links there, which were not followed."""

    files: pa.Table
    links: tuple[str, ...]


def list_folder(handle: DeltaHandle, reporter: Reporter) -> Listed:
    """List everything below the table's folder, hidden folders but for logs left out."""
    names = _partition_names(handle)
    links: list[str] = []
    parts = [LISTING.empty_table()]
    count = 0

    def enters(name: str) -> bool:
        is_shown = not name.startswith(("_", ".")) or name.startswith((CHANGES, INDEX, *names))
        return is_shown or name in (LOG, ".hoodie")

    for part in handle.storage.listing(handle.folder, enters=enters, on_link=links.append):
        parts.append(part)
        count += part.num_rows
        reporter.update(count, 0)
    return Listed(pa.concat_tables(parts), tuple(sorted(links)))


def unreferenced(handle: DeltaHandle, listed: Listed, since_ms: int) -> Unreferenced:
    """Return the listed files that versions since a time do not need; `handle` is the newest."""
    base = len(handle.folder.rstrip("/"))
    below = pc.utf8_slice_codeunits(listed.files["location"], base)
    others, is_shared = _other_tables(below)
    kept = pc.invert(_are_hidden(below, _partition_names(handle)))
    for folder in others:
        kept = pc.and_(kept, pc.invert(pc.starts_with(below, f"{folder}/")))
    is_old = pc.fill_null(pc.less(listed.files["modified_ms"], since_ms), False)
    files = listed.files.filter(pc.and_(kept, is_old))
    follow = bool(listed.links)
    files = without(files, handle.folder, retained_files(handle, since_ms), follow_links=follow)
    if pc.any(_are_change_files(files, base), min_count=0).as_py():
        changes = change_files(handle, since_ms)
        files = without(files, handle.folder, changes, follow_links=follow)
    known = _among(files, handle.folder, removed_files(handle), follow_links=follow)
    known = np.logical_or(known, np.asarray(_are_change_files(files, base), bool))
    if is_shared:
        files, known = files.filter(pa.array(known)), known[known]
    straight = are_below_without_links(files["location"], [handle.folder])
    files, known = files.filter(pa.array(straight)), known[straight]
    named = tuple(handle.folder.rstrip("/") + folder for folder in others)
    folders = len(pc.unique(pc.replace_substring_regex(below, "/[^/]*$", "")))
    return Unreferenced(files.sort_by("location"), int(known.sum()), folders, listed.links, named)


def without(
    files: pa.Table, folder: str, named: pa.ChunkedArray, *, follow_links: bool
) -> pa.Table:
    """Return the files of a listing that some locations do not name."""
    return files.filter(pa.array(~_among(files, folder, named, follow_links=follow_links)))


def _among(
    files: pa.Table, folder: str, named: pa.ChunkedArray, *, follow_links: bool
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    base = folder.rstrip("/") + "/"
    listed = pc.utf8_slice_codeunits(files["location"], len(base)).cast(pa.large_string())
    listed = data_files_of(listed)  # a key index is needed as long as its data file is
    known = _relative(named.cast(pa.large_string()), base, follow_links=follow_links)
    return np.asarray(pc.is_in(listed, value_set=known), bool)


def _relative(named: pa.ChunkedArray, base: str, *, follow_links: bool) -> pa.Array:
    """Return the paths of locations below a folder, however they are spelled.

    A location that is written another way than the folder is (another scheme, `..`, a link) is
    looked up by where it really is.
    """
    texts = pc.unique(named)
    rest = pc.utf8_slice_codeunits(texts, len(base))
    plain = pc.and_(
        pc.starts_with(texts, base), pc.invert(pc.match_substring_regex(rest, _ODD_STEPS))
    )
    looked_up = texts if follow_links else texts.filter(pc.invert(plain))
    root = place_of(base)
    found = [_real_rest(one, root) for one in looked_up.to_pylist()]
    others = pa.array([one for one in found if one is not None], pa.large_string())
    return pa.concat_arrays([rest.filter(plain), others])


def _real_rest(location: str, root: str | None) -> str | None:
    folder = place_of(parent(location))
    if root is None or folder is None:
        return None
    place = f"{folder.rstrip('/')}/{location.rpartition('/')[2]}"
    start = root.rstrip("/") + "/"
    return place[len(start) :] if place.startswith(start) else None


def _other_tables(below: pa.ChunkedArray) -> tuple[list[str], bool]:
    """Return the folders of other tables, from the slash after the table's folder on.

    Also whether an Iceberg table has its metadata where this table is.
    """
    logs = below.filter(pc.match_substring_regex(below, _OTHER_LOGS))
    found = set(pc.unique(pc.replace_substring_regex(logs, _OTHER_LOGS, "")).to_pylist())
    iceberg = below.filter(pc.match_substring_regex(below, _ICEBERG))
    roots = set(pc.unique(pc.replace_substring_regex(iceberg, _ICEBERG, "")).to_pylist())
    folders = {one for one in found | roots if one}
    if "" in roots:
        folders.add("/metadata")
    return sorted(folders), "" in roots


def _are_hidden(below: pa.ChunkedArray, names: tuple[str, ...]) -> pa.ChunkedArray:
    below = data_files_of(below)
    plain = pc.replace_substring_regex(below, f"/(?:{CHANGES}|{INDEX})/", "/shown/")
    if names:
        shown = "|".join(map(re.escape, names))
        plain = pc.replace_substring_regex(plain, f"/(?:{shown})", "/shown=")
    return pc.or_(pc.match_substring(plain, "/_"), pc.match_substring(plain, "/."))


def _are_change_files(files: pa.Table, base: int) -> pa.ChunkedArray:
    below = pc.utf8_slice_codeunits(files["location"], base)
    return pc.starts_with(below, f"/{CHANGES}/")


def _partition_names(handle: DeltaHandle) -> tuple[str, ...]:
    """Return how the folders of partition columns begin, logical and physical names alike."""
    columns = handle.columns_of(handle.state)
    names = {one.name for one in columns.spec.fields}
    names |= {columns.physical[one.source_id][0] for one in columns.spec.fields}
    return tuple(sorted(f"{one}=" for one in names))
