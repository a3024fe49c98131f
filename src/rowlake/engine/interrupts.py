"""Ctrl-C while Spark works: its jobs are cancelled, and KeyboardInterrupt comes of it.

PySpark's own handler asks Java to cancel in the thread that may be waiting for Java's answer; the
two get mixed up, and what leaves the call is an error of Py4J. Py4J in turn answers
KeyboardInterrupt by having Java close all connections that it has, some time later: those of other
threads, and those that were made meanwhile. So the handler hangs up first, and only here.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

# No connection ends in this port, so Java looks for the other one only.
_NO_PORT = 0


def cancel_all_on_interrupt(cancel: Callable[[], None]) -> None:
    """Have Ctrl-C cancel, and raise, from now on; only the main thread can have that."""
    if threading.current_thread() is threading.main_thread():

        def handle(_number: int, _frame: FrameType | None) -> NoReturn:
            _stop(cancel)
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
    """Cancel the job of the block at once on Ctrl-C; the event tells that it happened."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> NoReturn:
        interrupted.set()
        _stop(cancel)  # first: what was there before may wait for Java
        if callable(previous):
            previous(number, frame)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)


def _stop(cancel: Callable[[], None]) -> None:
    """Hang up on Java, and cancel from another thread, which has a connection of its own."""
    client = _java_client()
    port = _hang_up(client)
    logging.getLogger().addFilter(_tells_more)

    def work() -> None:
        with suppress(Exception):
            cancel()
        # What Java was asked for may be no job: its thread is told to stop too.
        own = client.get_thread_connection() if port is not None else None
        if own is not None:
            own.shutdown_socket(port, _NO_PORT)

    threading.Thread(target=work, daemon=True).start()


def _java_client() -> Any:
    """Return Py4J's client with one connection for each thread, None where there is none."""
    context = sys.modules.get("pyspark.core.context")
    gateway = context.SparkContext._gateway if context is not None else None
    client = getattr(gateway, "_gateway_client", None)
    return client if hasattr(client, "get_thread_connection") else None


def _hang_up(client: Any) -> int | None:
    """Close this thread's connection, whatever it waits for; return the port that it had here.

    The next call makes a new one.
    """
    connection: Any = client.get_thread_connection() if client is not None else None
    if connection is None or connection.socket is None:
        return None
    with suppress(OSError):
        port: int = connection.socket.getsockname()[1]
        connection.close()
        return port
    return None


def _tells_more(record: logging.LogRecord) -> bool:
    """Return whether a record says more than Py4J's, with a stack, that there was a Ctrl-C."""
    return record.msg != "KeyboardInterrupt while sending command."
