"""A writer that kills itself (-9) before or after its n-th step that changes anything outside.

Another writer's delete of row 5 lands while it commits, so that it loses a race too.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.spark_session import ROOT

# A step is a call that changes storage or the catalog; the process dies before or after one.
WRITER = """
import os
import signal
import sys

from rowlake.catalog.filesystem_backend import FileSystemBackend
from rowlake.catalog.sql import SqlBackend
from rowlake.commit import loop
from rowlake.lake import connect
from rowlake.storage.files import Storage
from tests.lakes import sales

catalog, name, operation, places = sys.argv[1] or None, sys.argv[2], sys.argv[3], sys.argv[4:]
at, after, steps, armed = 0, False, [0], [False]


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def step(owner, method):
    whole = getattr(owner, method)

    def call(*args, **kwargs):
        if not armed[0]:
            return whole(*args, **kwargs)
        steps[0] += 1
        mine = steps[0]
        if mine == at and not after:
            die()
        try:
            return whole(*args, **kwargs)
        finally:
            if mine == at:
                die()

    setattr(owner, method, call)


for method in ("open_output", "write", "create", "delete"):
    step(Storage, method)
for backend in (SqlBackend, FileSystemBackend):
    step(backend, "commit")

def overtaken(*args, **kwargs):
    loop.produce = produce
    made = produce(*args, **kwargs)
    armed[0] = False
    with connect(warehouse, catalog) as lake:
        lake.table(name).delete("id = 5", mode="merge-on-read")
    armed[0] = True
    return made


produce, loop.produce = loop.produce, overtaken
for place in places:
    number, side, warehouse = place.split(":", 2)
    at, after = int(number), side == "after"
    # What is imported is imported once: each writer is a fork of this process, which runs nothing.
    child = os.fork()
    if child:
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    with connect(warehouse, catalog) as lake:
        armed[0] = True
        eval(operation, {"table": lake.table(name), "sales": sales})
        print(steps[0], flush=True)
    os._exit(0)
"""


def run_writers(catalog: str | None, table: str, operation: str, places: list[str]) -> list[int]:
    """Return what writers say: how many steps they took, and the signals that ended them.

    `operation` is an expression of `table` and `sales`; a place is `n:before|after:warehouse`.
    """
    command = [sys.executable, "-c", WRITER, catalog or "", table, operation, *places]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]
