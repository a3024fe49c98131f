"""Python daemons of a JVM that goes are ended, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rowlake.engine.daemons import end_daemons, java_pid

PARENT = """
import subprocess, sys
found = [
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
    for name in ("pyspark.daemon", "rowlake.engine.daemon", "other")
]
print("ready", flush=True)
print([one.wait() for one in found[:2]], found[2].poll(), flush=True)
found[2].kill()
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system tells no children")
def test_daemons_end_and_other_children_do_not():
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        end_daemons(parent.pid)
        assert parent.stdout.readline() == "[-15, -15] None\n"


def test_without_a_process_of_ours_nothing_is_done():
    assert java_pid(SimpleNamespace()) is None
    assert java_pid(SimpleNamespace(sparkContext=SimpleNamespace(_gateway=None))) is None
    end_daemons(None)
    end_daemons(2**22 + 1)
