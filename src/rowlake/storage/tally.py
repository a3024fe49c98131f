"""Count the bytes that a piece of work reads from files.

Comes in: work that runs in one thread. Goes out: the bytes it read, as reported by the reader of
each format. Threads do not see each other's counts, so driver threads and tasks need no lock.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_here = threading.local()


@dataclass
class Tally:
    """A count of bytes."""

    size_in_bytes: int = 0


@contextmanager
def counting() -> Iterator[Tally]:
    """Count what this thread reads inside the block; nested blocks count for both."""
    outer: Tally | None = getattr(_here, "tally", None)
    tally = _here.tally = Tally()
    try:
        yield tally
    finally:
        _here.tally = outer
        if outer is not None:
            outer.size_in_bytes += tally.size_in_bytes


def is_counting() -> bool:
    """Return whether reads are being counted; spares readers from adding up sizes."""
    return getattr(_here, "tally", None) is not None


def count_read(size_in_bytes: int) -> None:
    """Add what was read."""
    tally: Tally | None = getattr(_here, "tally", None)
    if tally is not None:
        tally.size_in_bytes += size_in_bytes
