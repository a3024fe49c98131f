"""Names as statements write them: tuples of their parts, and how a session compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

Name = tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """How names are compared and what the session's time zone is."""

    case_sensitive: bool = False
    zone: str | None = None

    def same(self, one: str, other: str) -> bool:
        """Return True where two names are one."""
        return one == other or (not self.case_sensitive and one.lower() == other.lower())

    def same_parts(self, one: tuple[str, ...], other: tuple[str, ...]) -> bool:
        """Return True where two dotted names are one."""
        return len(one) == len(other) and all(map(self.same, one, other))

    def matching(self, fields: list[pa.Field], name: str) -> list[pa.Field]:
        """Return the fields that a name means."""
        return [found for found in fields if self.same(found.name, name)]
