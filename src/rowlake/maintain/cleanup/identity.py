"""When two locations name one file: scheme, authority and path, compared as Iceberg does.

A path is compared as it is written (nothing is percent-decoded), but for doubled and trailing
slashes and steps of `.` and `..`. A scheme or an authority that the metadata leaves out matches
any; letters of schemes and authorities match in either case. A plain path of a listing is a file
of this machine.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError
from rowlake.storage.locations import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Prefix = tuple[str, str]

DEFAULT_EQUAL_SCHEMES = {"s3n,s3a": "s3"}
_PREFIXES = r"(?:[A-Za-z][A-Za-z0-9+.\-]*:)?(?://[^/]*)?"
_LOCATION = f"(?s)^(?P<prefix>{_PREFIXES})(?P<path>.*)$"
_BEGINNING = re.compile(_PREFIXES)
_PREFIX = re.compile(r"(?:(?P<scheme>[^:/]*):)?(?://(?P<authority>.*))?", re.DOTALL)
_STEPS = r"(^|/)\.\.?(/|$)"


@dataclass(frozen=True)
class Equality:
    """Which schemes and authorities stand for which others."""

    schemes: Mapping[str, str]
    authorities: Mapping[str, str]

    def prefix_of(self, text: str) -> Prefix:
        """Return scheme and authority of the part of a location before its path."""
        found = _PREFIX.fullmatch(text)
        scheme, authority = found.groups() if found else (text, "")
        return _standing(scheme, self.schemes), _standing(authority, self.authorities)


def equality(
    schemes: Mapping[str, str] | None = None, authorities: Mapping[str, str] | None = None
) -> Equality:
    """Return what is equal; keys may be lists with commas, as Iceberg takes them."""
    return Equality(
        _flattened("equal_schemes", DEFAULT_EQUAL_SCHEMES) | _flattened("equal_schemes", schemes),
        _flattened("equal_authorities", authorities),
    )


def _flattened(name: str, given: Mapping[str, str] | None) -> dict[str, str]:
    flat: dict[str, str] = {}
    for keys, value in (given or {}).items():
        if not isinstance(keys, str) or not isinstance(value, str):
            raise InvalidStatementError(f"{name} maps text to text, not {keys!r} to {value!r}.")
        flat |= {key.strip().lower(): value.strip().lower() for key in keys.split(",")}
    return flat


def _standing(text: str | None, equal: Mapping[str, str]) -> str:
    lowered = (text or "").lower()
    return equal.get(lowered, lowered)


@dataclass(frozen=True)
class Identified:
    """Locations taken apart: `paths`, and for each the number of its prefix in `prefixes`."""

    paths: pa.Array
    numbers: npt.NDArray[np.int32]
    prefixes: tuple[Prefix, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def of_prefixes(self, wanted: list[int]) -> pa.Array:
        """Return the paths with one of some prefixes."""
        if len(wanted) == len(self.prefixes):
            return self.paths
        return self.paths.filter(pa.array(np.isin(self.numbers, wanted)))

    def fits(self, prefix: Prefix) -> npt.NDArray[np.bool_]:
        """Return which locations fit a prefix that the metadata may leave partly out."""
        fit = [at for at, own in enumerate(self.prefixes) if not _differences(prefix, own)]
        return np.isin(self.numbers, fit)

    def that_fit(self, actual: Prefix) -> pa.Array:
        """Return the paths of the metadata's locations that may have an actual prefix."""
        fit = [at for at, own in enumerate(self.prefixes) if not _differences(own, actual)]
        return self.of_prefixes(fit)

    def with_prefix(self, prefix: Prefix) -> pa.Array:
        """Return the paths with this prefix; where none is written, it is this machine's."""
        scheme, authority = prefix
        whole = (scheme or LOCAL, authority)
        same = [at for at, own in enumerate(self.prefixes) if (own[0] or LOCAL, own[1]) == whole]
        return self.of_prefixes(same)

    def after(self, count: int) -> Identified:
        """Return the locations after the first `count`."""
        return Identified(self.paths.slice(count), self.numbers[count:], self.prefixes)

    def filter(self, kept: npt.NDArray[np.bool_]) -> Identified:
        """Return some of the locations."""
        return Identified(self.paths.filter(pa.array(kept)), self.numbers[kept], self.prefixes)


def identified(locations: pa.Array | pa.ChunkedArray, equal: Equality) -> Identified:
    """Take locations apart."""
    column = locations.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return _of_one_prefix(column, equal) or _of_many_prefixes(column, equal)


def _of_one_prefix(column: pa.Array, equal: Equality) -> Identified | None:
    """Take apart locations that all begin as the first does, as those of a table mostly do."""
    first = column[0].as_py() if len(column) else None
    found = _BEGINNING.match(first) if first else None
    if found is None or not pc.all(pc.starts_with(column, found[0] + "/")).as_py():
        return None
    if not found[0] and pc.any(pc.starts_with(column, "//")).as_py():
        return None
    paths = pc.utf8_slice_codeunits(column, len(found[0])) if found[0] else column
    numbers = np.zeros(len(column), np.int32)
    return Identified(normal_paths(paths), numbers, (equal.prefix_of(found[0]),))


def _of_many_prefixes(column: pa.Array, equal: Equality) -> Identified:
    taken = pc.extract_regex(column, _LOCATION)
    prefixes = taken.field("prefix").dictionary_encode()
    return Identified(
        normal_paths(taken.field("path")),
        prefixes.indices.to_numpy(zero_copy_only=False).astype(np.int32),
        tuple(equal.prefix_of(text) for text in prefixes.dictionary.to_pylist()),
    )


def normal_paths(paths: pa.Array) -> pa.Array:
    """Return paths without doubled and trailing slashes and without steps."""
    if pc.any(pc.match_substring(paths, "//")).as_py():
        paths = pc.replace_substring_regex(paths, "/{2,}", "/")
    # Few paths have a name that begins with a dot; only there a step is looked for.
    if pc.any(pc.match_substring(paths, "/.")).as_py():
        stepped = pc.match_substring_regex(paths, _STEPS)
        straight = [posixpath.normpath(path) for path in paths.filter(stepped).to_pylist()]
        paths = pc.replace_with_mask(paths, stepped, pa.array(straight, paths.type))
    if pc.any(pc.ends_with(paths, "/")).as_py():
        paths = pc.utf8_rtrim(paths, "/")
    return paths


@dataclass(frozen=True)
class Comparison:
    """Of each location that was looked at: whether the metadata names it, or only its path."""

    is_known: npt.NDArray[np.bool_]
    is_mismatched: npt.NDArray[np.bool_]
    conflicts: frozenset[tuple[str, str]]


def compare(actual: Identified, known: Identified) -> Comparison:
    """Look for locations among those that the metadata names.

    A location is known where one with the same path has a prefix that fits, and mismatched where
    there are only others; `conflicts` has the parts that differ (metadata's, then storage's).
    """
    is_known = np.zeros(len(actual), bool)
    is_mismatched = np.zeros(len(actual), bool)
    conflicts: set[tuple[str, str]] = set()
    for number, prefix in enumerate(actual.prefixes):
        rows = actual.numbers == number
        paths = actual.of_prefixes([number])
        is_known[rows] = _is_in(paths, known.that_fit(prefix))
        for at, valid in enumerate(known.prefixes):
            if not _differences(valid, prefix):
                continue
            found = _is_in(paths, known.of_prefixes([at])) & ~is_known[rows]
            is_mismatched[rows] |= found
            if found.any():
                conflicts |= _differences(valid, prefix)
    return Comparison(is_known, is_mismatched, frozenset(conflicts))


def _is_in(paths: pa.Array, others: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_in(paths, value_set=others).to_numpy(zero_copy_only=False)
    return found


def _differences(valid: Prefix, actual: Prefix) -> set[tuple[str, str]]:
    scheme, authority = actual
    return {
        (theirs, ours)
        for theirs, ours in zip(valid, (scheme or LOCAL, authority), strict=True)
        if theirs and theirs != ours
    }
