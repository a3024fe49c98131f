"""Resolve where a location really is, and whether that is below given folders.

Table content may spell a location in any way (`..`, doubled slashes, another name of the scheme,
symbolic links). A place is the one spelling of what storage would reach: on this machine the real
path, elsewhere scheme, authority and path in one form. What has no such spelling has no place, and
is below nothing.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import RowlakeError
from rowlake.storage.locations import AZURE, GCS, S3, Parts, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

_LAST_NAME = "/[^/]*$"
_STEPS = frozenset({".", ".."})


def place_of(folder: str) -> str | None:
    """Return the place of a folder; None where it has none that can be relied on."""
    try:
        parts = split(folder)
        return os.path.realpath(parts.path) if parts.is_local else _remote(parts)
    except (RowlakeError, OSError, ValueError):
        return None


def _remote(parts: Parts) -> str | None:
    names = [name for name in parts.path.split("/") if name]
    # A step is a name like any other to some stores, and leads elsewhere in others.
    if not _STEPS.isdisjoint(names):
        return None
    return f"{_family(parts.scheme)}://{'/'.join([parts.authority, *names])}"


def _family(scheme: str) -> str:
    """Return one name for all schemes that open the same store."""
    for name, family in (("s3", S3), ("gs", GCS), ("abfs", AZURE)):
        if scheme in family:
            return name
    return scheme


def parent(location: str) -> str:
    """Return the folder of a file, as text; `/` for a file of the root."""
    return location.rpartition("/")[0] or "/"


def is_below(place: str | None, folders: Iterable[str | None]) -> bool:
    """Return whether a place is one of the given places or below one."""
    return place is not None and any(
        place == folder or place.startswith(folder.rstrip("/") + "/")
        for folder in folders
        if folder is not None
    )


def are_below(
    locations: pa.Array | pa.ChunkedArray, folders: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which files really are in or below one of the folders.

    Each parent folder is resolved once. A file that is itself a link counts where the link is.
    """
    roots = [place_of(folder) for folder in folders]
    return _by_folder(locations, lambda folder: is_below(place_of(folder), roots))


def are_below_without_links(
    locations: pa.Array | pa.ChunkedArray, folders: Sequence[str]
) -> npt.NDArray[np.bool_]:
    """Return which files are below one of the folders with no link in between."""
    roots = [(_text(folder), place_of(folder)) for folder in folders]

    def is_straight(folder: str) -> bool:
        text, place = _text(folder), place_of(folder)
        return place is not None and any(
            root is not None and is_below(text, [at]) and place == _joined(root, text[len(at) :])
            for at, root in roots
        )

    return _by_folder(locations, is_straight)


def _text(folder: str) -> str:
    """Return the path of a folder by its text alone."""
    try:
        parts = split(folder)
    except RowlakeError:
        return folder
    return posixpath.normpath(parts.path) if parts.is_local else _remote(parts) or folder


def _joined(root: str, rest: str) -> str:
    return (root.rstrip("/") + "/" + rest.lstrip("/")).rstrip("/") or "/"


def _by_folder(
    locations: pa.Array | pa.ChunkedArray, decide: Callable[[str], bool]
) -> npt.NDArray[np.bool_]:
    column = locations.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    folders = pc.replace_substring_regex(column, _LAST_NAME, "").dictionary_encode()
    decided = [decide(folder or "/") for folder in folders.dictionary.to_pylist()]
    numbers = folders.indices.fill_null(len(decided)).to_numpy(zero_copy_only=False)
    is_step = pc.fill_null(pc.match_substring_regex(column, r"(^|/)\.\.?$"), True)
    # The last one stands for locations that are null.
    found: npt.NDArray[np.bool_] = np.array([*decided, False])[numbers]
    found &= ~is_step.to_numpy(zero_copy_only=False)
    return found
