"""What one run of the bench is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_ROWS = 8_000_000
DEFAULT_BUCKETS = 16
DEFAULT_ROUNDS = 3
FULL_ROUNDS = 10
# Cases that want fewer than these are long; --full does not make them longer.
MANY_ROUNDS = 3
# Cases that write whole tables take fewer rows, unless --full or --rows says otherwise.
DEFAULT_WRITE_ROWS = 2_000_000


@dataclass(frozen=True)
class Options:
    """Sizes and choices of one run; `scale` multiplies rows and buckets."""

    cases: tuple[str, ...] = ()
    rows: int | None = None
    scale: float = 1.0
    rounds: int | None = None
    peers: tuple[str, ...] = ()
    full: bool = False
    cluster: bool = True

    @property
    def total_rows(self) -> int:
        return self._scaled(self.rows or DEFAULT_ROWS)

    @property
    def row_level_rows(self) -> int:
        """Rows of the tables whose rows are changed: all of them."""
        return self.total_rows

    @property
    def write_rows(self) -> int:
        """Rows of the cases that write whole tables."""
        return self._scaled(self.rows or (DEFAULT_ROWS if self.full else DEFAULT_WRITE_ROWS))

    def _scaled(self, rows: int) -> int:
        return max(1_000, round(rows * self.scale))

    @property
    def buckets(self) -> int:
        return max(1, round(DEFAULT_BUCKETS * self.scale))

    def rounds_of(self, default: int) -> int:
        """Return how often a case is measured, when its own wish is `default`."""
        if self.rounds is not None:
            return self.rounds
        return max(default, FULL_ROUNDS) if self.full and default >= MANY_ROUNDS else default

    def wants_peer(self, name: str) -> bool:
        """True for every system unless some were picked; ours stay in unless some of them were."""
        if not self.peers or name in self.peers:
            return True
        ours = "rowlake"
        return name.startswith(ours) and not any(peer.startswith(ours) for peer in self.peers)

    @property
    def wants_delta(self) -> bool:
        """True where Delta's extension must be in the session; all statements pay a little."""
        from bench.cases import CASES
        from bench.editors import DELTA

        cases = self.cases or tuple(CASES)
        return any(map(self.wants_peer, DELTA)) and any(CASES[case].with_delta for case in cases)
