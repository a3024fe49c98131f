"""Paths of a log as locations, and locations as paths.

A path is percent-encoded once, and relative to the table's folder or absolute (PROTOCOL.md, "Add
File and Remove File"); locations of rowlake are plain text. Files of this machine have one
spelling here, whether the log says `/a`, `file:/a` or `file:///a`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.storage.locations import join

_ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.-]*:)"
_FILE = r"^(?i:file):/+"
_ESCAPE_BYTES = 3
_HEX = b"0123456789abcdefABCDEF"
# What stands for itself in every writer's paths; a colon may end a scheme, so it is escaped.
_PLAIN = "!$&'()*+,-./=@_~"
_ALL_PLAIN = r"^[0-9A-Za-z!$&'()*+,\-./=@_~]*$"
_IS_PLAIN = np.zeros(256, np.bool_)
_IS_PLAIN[[*range(ord("0"), ord("9") + 1), *range(ord("a"), ord("z") + 1)]] = True
_IS_PLAIN[[*range(ord("A"), ord("Z") + 1), *map(ord, _PLAIN)]] = True


def location_of(path: str, folder: str) -> str:
    """Return the location of one path."""
    return str(locations_of(pa.array([path]), folder)[0].as_py())


def locations_of(paths: pa.Array, folder: str) -> pa.Array:
    """Return the locations of the paths of a table in this folder."""
    is_absolute = pc.match_substring_regex(paths, _ABSOLUTE)
    plain = decoded(paths)
    below = pc.binary_join_element_wise(join(folder, ""), plain, "")
    if not pc.any(is_absolute).as_py():
        return below
    return pc.if_else(is_absolute, _plain_files(plain), below)


def _plain_files(locations: pa.Array) -> pa.Array:
    if not pc.any(pc.starts_with(locations, "file:", ignore_case=True)).as_py():
        return locations
    return pc.replace_substring_regex(locations, _FILE, "/")


def paths_of(locations: pa.Array, folder: str) -> pa.Array:
    """Return the paths of locations as we write them: relative to the table's folder, escaped.

    Files elsewhere (of shallow clones) have absolute paths, with a scheme.
    """
    base = join(folder, "")
    inside = pc.starts_with(locations, base)
    relative = pc.utf8_slice_codeunits(locations, len(base))
    if pc.all(inside, min_count=0).as_py() and not pc.any(are_odd(relative), min_count=0).as_py():
        return relative
    found = [_path(one, base) for one in locations.to_pylist()]
    return pa.array(found, pa.string())


def _path(location: str, base: str) -> str:
    if location.startswith(base):
        return quote(location[len(base) :], safe=_PLAIN)
    return absolute_path(location)


def absolute_path(location: str) -> str:
    """Return the absolute path of a location, with a scheme, escaped."""
    if location.startswith("/"):
        return "file://" + quote(location, safe=_PLAIN)
    scheme, separator, rest = location.partition("://")
    return scheme + separator + quote(rest, safe=_PLAIN + ":")


def are_odd(paths: pa.Array) -> pa.Array:
    """Return which paths may be spelled in several ways: escaped, absolute or not ASCII."""
    data = _bytes_of(paths)
    if _IS_PLAIN[data].all() and not pc.any(pc.starts_with(paths, "/"), min_count=0).as_py():
        return pa.array(np.zeros(len(paths), np.bool_))
    plain = pc.match_substring_regex(paths, _ALL_PLAIN)
    return pc.or_(pc.invert(plain), pc.starts_with(paths, "/"))


def decoded(paths: pa.Array) -> pa.Array:
    """Return paths with their percent escapes undone, once.

    Each distinct escape is replaced in all paths together, `%25` last, so that a text which only
    then looks like an escape stays as it is.
    """
    escapes = _escapes(paths)
    if not escapes:
        return paths
    found = paths.cast(pa.binary())
    for escape in sorted(escapes, key=lambda one: one == b"%25"):
        found = pc.replace_substring(found, escape, unquote_to_bytes(escape))
    try:
        return found.cast(pa.string())
    except pa.ArrowInvalid:  # escapes that are no UTF-8 text: such a path stays as it is written
        return pa.array([_text(new, old) for new, old in zip(found, paths, strict=True)])


def _text(new: pa.Scalar, old: pa.Scalar) -> str:
    try:
        return str(new.as_py().decode())
    except UnicodeDecodeError:
        return str(old.as_py())


def _escapes(paths: pa.Array) -> list[bytes]:
    """Return the distinct percent escapes of some paths."""
    data = _bytes_of(paths)
    places = np.flatnonzero(data[: -(_ESCAPE_BYTES - 1)] == ord("%"))
    if not len(places):
        return []
    codes = np.stack([data[places + 1], data[places + 2]], axis=1)
    distinct = {bytes(pair) for pair in np.unique(codes, axis=0).tolist()}
    return [b"%" + pair for pair in sorted(distinct) if pair[0] in _HEX and pair[1] in _HEX]


def _bytes_of(paths: pa.Array) -> np.ndarray:
    """Return the text of all paths as one array of bytes."""
    if not len(paths):
        return np.zeros(0, np.uint8)
    buffers = paths.buffers()
    wide = pa.types.is_large_string(paths.type)
    offsets = np.frombuffer(buffers[1], np.int64 if wide else np.int32)
    first, last = offsets[paths.offset], offsets[paths.offset + len(paths)]
    return np.frombuffer(buffers[2] or b"", np.uint8)[first:last]
