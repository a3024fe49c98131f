"""Rows of a DataFrame that may be needed twice: the second time they are the same.

Most plans give the same rows whenever they run, and are left alone. Those that may not (random
functions, or a plan that a Spark Connect session does not show) are cached by Spark for as long as
they are needed: the first reading fills the cache, so nothing is read ahead.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def kept(frame: Any) -> Iterator[None]:
    """Keep the rows of a DataFrame while the block runs, as far as they are not kept already."""
    if frame is None or _is_cached(frame) or _is_deterministic(frame):
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
