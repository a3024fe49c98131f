"""How a child says what its work cost: one JSON object on the last line of its output."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Run the work; return its cost with the peak memory of this process so far."""
    cpu, wall = time.process_time(), time.perf_counter()
    answer = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"wall_s": wall, "cpu_s": cpu, "peak_bytes": peak}, answer
