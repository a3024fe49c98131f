"""Keep tasks from waiting for TCP acknowledgements between a Python worker and its JVM.

Spark sends a task to its worker in several small writes. Over TCP the next one waits until the
worker's system acknowledges the one before (Nagle's algorithm), which it puts off by 40 ms (delayed
acknowledgement); answers wait the same way. Sessions that rowlake makes use Unix domain sockets
instead. In sessions of users, each task has its worker acknowledge at once and send at once.
Linux only: other systems have neither `/proc` nor the option.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")
_QUICK = getattr(socket, "TCP_QUICKACK", None)


def answer_at_once() -> None:
    """Acknowledge what has come in on this worker's connections now, and send without delay.

    The system goes back to delayed acknowledgements by itself: call it for every task.
    """
    if _QUICK is None:
        return
    for descriptor in _connections():
        with suppress(OSError):
            _set(descriptor, socket.TCP_NODELAY, _QUICK)


@cache
def _connections() -> tuple[int, ...]:
    """Return the descriptors of this process's TCP connections to the same machine."""
    with suppress(OSError):
        found = [int(path.name) for path in _DESCRIPTORS.iterdir()]
        return tuple(descriptor for descriptor in found if _is_local_connection(descriptor))
    return ()


def _is_local_connection(descriptor: int) -> bool:
    with suppress(OSError, ValueError):
        connection = socket.socket(fileno=descriptor)
        try:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                peer = ip_address(connection.getpeername()[0])
                return (getattr(peer, "ipv4_mapped", None) or peer).is_loopback
        finally:
            connection.detach()  # the worker's own: it must stay open
    return False


def _set(descriptor: int, *options: int) -> None:
    connection = socket.socket(fileno=descriptor)
    try:
        for option in options:
            connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        connection.detach()
