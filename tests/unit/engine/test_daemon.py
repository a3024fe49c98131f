"""Workers that Spark has no more use for end without a word."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import socket
{load}
from pyspark import daemon
ours, sparks = socket.socketpair()
sparks.send({sent!r})
ours.send({unread!r})
sparks.close()
print("ended with", daemon.worker(ours, True) != 0)
"""
OURS = "import rowlake.engine.daemon"
# Nothing, as of an idle worker; the beginning of a task, whose rest never comes.
SENT = [b"", b"\x00\x00\x00\x01\x00\x00\x00\x04"]


def ended(load: str, sent: bytes, unread: bytes = b"") -> tuple[str, str]:
    code = CODE.format(load=load, sent=sent, unread=unread)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize("sent", SENT, ids=["idle", "in a task"])
@pytest.mark.parametrize("unread", [b"", b"rows that nobody wanted"], ids=["read", "unread"])
def test_a_worker_whose_socket_is_closed_ends_quietly(sent, unread):
    assert ended(OURS, sent, unread) == ("ended with True", "")


def test_sparks_own_still_complains():
    """Once this fails, the daemon of our own may have nothing to do any more."""
    assert "BrokenPipeError" in ended("", b"")[1]
