from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from rowlake.engine import sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="an option of Linux")


@pytest.fixture(autouse=True)
def forgotten():
    sockets._connections.cache_clear()
    yield
    sockets._connections.cache_clear()


@pytest.fixture(params=["127.0.0.1", "::1"])
def connected(request):
    """Return the two ends of a connection on this machine."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family) as server:
        try:
            server.bind((request.param, 0))
        except OSError:
            pytest.skip("no such address here")
        server.listen()
        with socket.create_connection(server.getsockname()[:2]) as near:
            far, _ = server.accept()
            with far:
                yield near, far


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_connections_on_this_machine_are_found_and_stay_open(connected):
    near, far = connected
    before = open_descriptors()
    sockets.answer_at_once()
    assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert {near.fileno(), far.fileno()} <= set(sockets._connections())
    near.sendall(b"a task")
    assert far.recv(10) == b"a task"
    assert open_descriptors() == before


def test_what_is_no_connection_is_left_alone(tmp_path):
    with (tmp_path / "file").open("wb") as file, socket.socket() as unconnected:
        near, far = socket.socketpair()
        with near, far:
            sockets.answer_at_once()
            others = {file.fileno(), unconnected.fileno(), near.fileno(), far.fileno()}
            assert not others & set(sockets._connections())
            near.sendall(b"x")
            assert far.recv(1) == b"x"
            assert file.write(b"x") == 1


def test_a_connection_that_has_gone_is_no_error(connected):
    near, far = connected
    sockets.answer_at_once()
    near.close()
    far.close()
    sockets.answer_at_once()


def test_systems_without_the_option_are_left_alone():
    code = (
        "import socket; del socket.TCP_QUICKACK\n"
        "from rowlake.engine.sockets import answer_at_once; answer_at_once()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
