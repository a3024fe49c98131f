"""Processes that race: each runs the same function with its own number, all start at once."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from tests.parts.preloaded import forking

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier


def race(
    function: Callable[..., Any], processes: int, *arguments: Any, timeout_seconds: float = 120
) -> list[Any]:
    """Return what `function(number, start, *arguments)` gave in each process.

    The function calls `start.wait()` when it is ready to run. Its process has nothing of this one,
    so it must be of a module that can be imported.
    """
    context = forking()
    start = context.Barrier(processes)
    answers = context.Queue()
    workers = [
        context.Process(target=_run, args=(function, number, start, answers, arguments))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    try:
        found = [answers.get(timeout=timeout_seconds) for _ in workers]
    finally:
        for worker in workers:
            worker.join(timeout=30)
            worker.kill()
    failed = [text for _, text, is_error in found if is_error]
    assert not failed, failed[0]
    return [answer for _, answer, _ in sorted(found, key=lambda one: one[0])]


def _run(
    function: Callable[..., Any], number: int, start: Barrier, answers: Any, arguments: Any
) -> None:
    try:
        answers.put((number, function(number, start, *arguments), False))
    except BaseException:  # noqa: BLE001  (the parent reports it)
        answers.put((number, traceback.format_exc(), True))
        start.abort()
