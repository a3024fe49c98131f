"""How many bytes of files a piece of work reads: counted where they are read, by who asks.

Comes in: work that runs in one thread. Goes out: the bytes that it read, as the readers of each
format know them. Threads do not see each other's counts, so driver threads and tasks need no lock.
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
    """Count what is read inside the block by this thread; a block inside counts for both."""
    outer: Tally | None = getattr(_here, "tally", None)
    tally = _here.tally = Tally()
    try:
        yield tally
    finally:
        _here.tally = outer
        if outer is not None:
            outer.size_in_bytes += tally.size_in_bytes


def is_counting() -> bool:
    """Tell whether anybody wants to know; spares readers from adding up sizes."""
    return getattr(_here, "tally", None) is not None


def count_read(size_in_bytes: int) -> None:
    """Add what was read."""
    tally: Tally | None = getattr(_here, "tally", None)
    if tally is not None:
        tally.size_in_bytes += size_in_bytes
