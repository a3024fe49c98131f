"""Server processes: started on a free loopback port, waited for, stopped."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.parts.require import skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """Return a port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(
    command: Sequence[str],
    port: int,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> Iterator[None]:
    """Run a server until the block ends; skips or fails where it does not come up."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment
        )
    try:
        if not _comes_up(process, port, seconds):
            tail = " / ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
            skip_or_fail(f"{Path(command[0]).name} did not start: {tail}")
        yield
    finally:
        _stop(process)


def _comes_up(process: subprocess.Popen[bytes], port: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if _answers(port):
            return True
        time.sleep(0.1)
    return False


def _answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=10)
