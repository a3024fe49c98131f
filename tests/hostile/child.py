"""A process that has everything loaded and forks once per case: `python -m tests.hostile.child`.

Comes in: a case as a line of JSON. Goes out: a line with the exit status, the seconds and the
growth of the peak memory of the fork that ran it. A fork has limits: of time and of computing (its
stacks are written to its standard error), of address space and of the size of files, and it can
change no file outside of its arena. Nothing is run in the first process, so that no threads and no
caches are forked.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.hostile.fence import fence
from tests.hostile.operations import Orders, run
from tests.hostile.repertoires import REPERTOIRES
from tests.hostile.verdicts import Verdict

MB = 1 << 20
ADDRESS_SPACE = 4096 * MB  # more than there is at the start
FILE_SIZE = 512 * MB


def main() -> None:
    _load()
    gc.freeze()
    resident = _status("VmRSS")
    for line in sys.stdin:
        told = json.loads(line)
        print(json.dumps(_forked(told, resident)), flush=True)


def _load() -> None:
    """Load what operations load at their first use, which every fork would do again."""
    for name in ("datafusion", "pyarrow.acero", "pyarrow.orc", "tests.parts.preloaded"):
        importlib.import_module(name)


def _forked(told: dict[str, Any], resident: int) -> dict[str, Any]:
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(told)
    deadline = started + told["seconds"] + 5
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            deadline += 60
        time.sleep(0.002)
    return {
        "status": os.waitstatus_to_exitcode(status),
        "seconds": round(time.monotonic() - started, 3),
        "cpu": usage.ru_utime + usage.ru_stime,
        "grown": max(0, usage.ru_maxrss * 1024 - resident),
    }


def _run(told: dict[str, Any]) -> None:
    code = 1
    try:
        arena, work = Path(told["arena"]), Path(told["work"])
        _redirect(work / "stderr")
        fence([arena, work])
        os.chdir(arena)
        faulthandler.enable()
        faulthandler.dump_traceback_later(told["seconds"], exit=True)
        faulthandler.register(signal.SIGXCPU)  # a second later the hard limit ends all
        most = told["cpu_seconds"]
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
        _limit(resource.RLIMIT_AS, _status("VmSize") + ADDRESS_SPACE)
        _limit(resource.RLIMIT_FSIZE, FILE_SIZE)
        _limit(resource.RLIMIT_CORE, 0)
        orders = Orders(**{**told["orders"], "verdict": Verdict(told["orders"]["verdict"])})
        run(orders, REPERTOIRES[orders.format], work / "report")
        code = 0
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _redirect(errors: Path) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    out = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for source, target in ((null, 0), (null, 1), (out, 2)):
        os.dup2(source, target)


def _limit(what: int, most: int) -> None:
    resource.setrlimit(what, (most, most))


def _status(name: str) -> int:
    """Return a figure of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
