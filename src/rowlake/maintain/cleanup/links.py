"""Files of this machine that are known by another path: through symbolic links.

A listing spells files by the place that was listed, the metadata by whatever path the writer had.
Where links lead from one to the other, both name one file, and it is no orphan.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.maintain.cleanup.identity import identified
from rowlake.storage.locations import split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.maintain.cleanup.identity import Equality

_PARENT = "/[^/]*$"


def linked_locations(
    named: pa.ChunkedArray, places: Iterable[str], equal: Equality
) -> pa.ChunkedArray:
    """Return the named files that are below a place by links alone, as a listing spells them."""
    found = [pa.array([], pa.large_string())]
    for place in places:
        parts = split(place)
        if parts.is_local:
            found += _below(named, parts.path.rstrip("/"), equal)
    return pa.chunked_array(found)


def link_targets(links: Iterable[str], places: Iterable[str]) -> list[str]:
    """Return what links below places lead to, where that is below a place too, as it is listed."""
    found: list[str] = []
    ends = {os.path.realpath(split(link).path) for link in links if split(link).is_local}
    for place in places:
        parts = split(place)
        real_place = os.path.realpath(parts.path)
        rests = (_inside(end, real_place) for end in sorted(ends))
        found += [parts.path.rstrip("/") + rest for rest in rests if rest is not None]
    return found


def _below(named: pa.ChunkedArray, place: str, equal: Equality) -> list[pa.Array]:
    paths = identified(named, equal).with_prefix(("", ""))
    if not len(paths):
        return []
    # No file has a name with a null character, so no link leads to it.
    paths = paths.filter(pc.invert(pc.match_substring(paths, "\0")))
    folders = pc.replace_substring_regex(paths, _PARENT, "")
    real_place = os.path.realpath(place)
    return [
        _moved(paths.filter(pc.equal(folders, folder)), folder, place + rest)
        for folder in pc.unique(folders).to_pylist()
        if (rest := _inside(os.path.realpath(folder), real_place)) is not None
        and place + rest != folder
    ]


def _inside(path: str, folder: str) -> str | None:
    """Return what follows a folder in a path at or below it, None for others."""
    return path[len(folder) :] if f"{path}/".startswith(folder.rstrip("/") + "/") else None


def _moved(paths: pa.Array, folder: str, to: str) -> pa.Array:
    names = pc.utf8_slice_codeunits(paths, len(folder))
    return pc.binary_join_element_wise(
        pa.scalar(to, pa.large_string()), names, pa.scalar("", pa.large_string())
    )
