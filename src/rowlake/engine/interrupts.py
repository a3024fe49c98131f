"""Ctrl-C while Spark works: its jobs are cancelled, and KeyboardInterrupt comes of it.

PySpark's own handler asks Java to cancel in the thread that may be waiting for Java's answer; the
two get mixed up, and what leaves the call is an error of Py4J.
"""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


def cancel_all_on_interrupt(cancel: Callable[[], None]) -> None:
    """Have Ctrl-C cancel, and raise, from now on; only the main thread can have that."""
    if threading.current_thread() is threading.main_thread():

        def handle(_number: int, _frame: FrameType | None) -> NoReturn:
            _apart(cancel)
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, handle)


@contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C wait for the end of the block; a second one does not wait.

    A JVM whose Python goes away while both still look for each other lives on without it. What is
    given takes the signal back from who has taken it meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    waiting = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if waiting.is_set():
            raise KeyboardInterrupt
        waiting.set()

    def hold() -> None:
        signal.signal(signal.SIGINT, handle)

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield hold
    finally:
        if signal.getsignal(signal.SIGINT) is handle:  # else the block has set its own for good
            signal.signal(signal.SIGINT, previous)
    if waiting.is_set():
        raise KeyboardInterrupt


@contextmanager
def cancelled_on_interrupt(cancel: Callable[[], None]) -> Iterator[threading.Event]:
    """Cancel the job of the block at once on Ctrl-C; the event tells that it happened.

    PySpark waits for the job's end before KeyboardInterrupt can leave its call, so the job is
    cancelled from the signal's handler.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> NoReturn:
        interrupted.set()
        _apart(cancel)  # first: what was there before may wait for Java
        if callable(previous):
            previous(number, frame)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)


def _apart(cancel: Callable[[], None]) -> None:
    """Cancel in another thread, since this one may be inside a call to Java."""
    logging.getLogger().addFilter(_tells_more)
    threading.Thread(target=_quietly, args=(cancel,), daemon=True).start()


def _tells_more(record: logging.LogRecord) -> bool:
    """Tell whether a record says more than Py4J's, with a stack, that there was a Ctrl-C."""
    return record.msg != "KeyboardInterrupt while sending command."


def _quietly(cancel: Callable[[], None]) -> None:
    with suppress(Exception):
        cancel()
