"""What one run of the bench is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_ROWS = 8_000_000
DEFAULT_BUCKETS = 16
DEFAULT_ROUNDS = 3
FULL_ROUNDS = 10
# Cases that write the whole table take this share of the rows unless --full is given.
WRITE_SHARE = 0.25


@dataclass(frozen=True)
class Options:
    """Sizes and choices of one run; `scale` multiplies rows and buckets."""

    cases: tuple[str, ...] = ()
    rows: int = DEFAULT_ROWS
    scale: float = 1.0
    rounds: int | None = None
    peers: tuple[str, ...] = ()
    full: bool = False

    @property
    def total_rows(self) -> int:
        return max(1_000, round(self.rows * self.scale))

    @property
    def write_rows(self) -> int:
        """Rows of the cases that write the whole table."""
        return self.total_rows if self.full else max(1_000, round(self.total_rows * WRITE_SHARE))

    @property
    def buckets(self) -> int:
        return max(1, round(DEFAULT_BUCKETS * self.scale))

    def rounds_of(self, default: int) -> int:
        """Return how often a case is measured, when its own wish is `default`."""
        if self.rounds is not None:
            return self.rounds
        return max(default, FULL_ROUNDS) if self.full else default

    def wants_peer(self, name: str) -> bool:
        """True for rowlake, and for every peer unless some were picked."""
        return name.startswith("rowlake") or not self.peers or name in self.peers
