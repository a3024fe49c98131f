"""Make a DataFrame that is read more than once return the same rows each time.

Most plans are deterministic and are left alone. Those that may not be (random functions, or a plan
that a Spark Connect session does not show) are cached by Spark while they are needed. The first
read fills the cache, so nothing is read ahead.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def repeatable(frame: Any) -> Iterator[None]:
    """Cache a DataFrame while the block runs, unless it is cached or deterministic already."""
    if _is_cached(frame) or _is_deterministic(frame):
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def _is_cached(frame: Any) -> bool:
    level = frame.storageLevel
    return bool(level.useMemory or level.useDisk)


def _is_deterministic(frame: Any) -> bool:
    plan = getattr(frame, "_jdf", None)
    return plan is not None and bool(plan.queryExecution().analyzed().deterministic())
