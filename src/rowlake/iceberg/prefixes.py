"""Locations of a table that moves: below another prefix, or staged beside it.

Comes in: a location, or a column of them. Goes out: the same below the new prefix. A location that
is not below the old one cannot move with the table, and is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError


@dataclass(frozen=True)
class Prefixes:
    """The old and the new prefix, and the folder for what is rewritten; none ends in a slash."""

    source: str
    target: str
    staging: str

    def moved(self, location: str) -> str:
        """Return a location below the new prefix."""
        return self.target + self._rest(location)

    def staged(self, location: str) -> str:
        """Return where the rewritten copy of a file is staged."""
        return self.staging + self._rest(location)

    def _rest(self, location: str) -> str:
        if location == self.source or location.startswith(f"{self.source}/"):
            return location[len(self.source) :]
        raise self._outside(location)

    def moved_column(self, locations: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
        """Return a column of locations below the new prefix; nulls stay."""
        return self._replaced(locations, self.target)

    def _replaced(
        self, locations: pa.ChunkedArray | pa.Array, by: str
    ) -> pa.ChunkedArray | pa.Array:
        below = pc.starts_with(locations, f"{self.source}/")
        if not pc.all(below, min_count=0).as_py():
            raise self._outside(locations.filter(pc.invert(below))[0].as_py())
        return pc.replace_substring(locations, f"{self.source}/", f"{by}/", max_replacements=1)

    def moved_bound(self, bound: bytes) -> bytes | None:
        """Return a bound of paths as it is below the new prefix; None where it is cut too short."""
        old = f"{self.source}/".encode()
        return f"{self.target}/".encode() + bound[len(old) :] if bound.startswith(old) else None

    def _outside(self, location: str) -> InvalidStatementError:
        return InvalidStatementError(
            f"Cannot move {location}: it is not below the source prefix {self.source}."
        )
