"""A writer killed (-9) at every step from its first file to the commit and after it.

A process deletes rows of a data file while another writer's delete of other rows of it lands in
between, so that it goes through a rebase too; it kills itself before or after the n-th step that
changes anything outside of it. The table is then at one commit or the other, whole.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rowlake.iceberg.cache import default_cache
from rowlake.lake import connect
from tests.lakes import SALES, sales

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shop.sales"

# A step is a call that changes storage or the catalog; the process dies before or after one.
DELETER = """
import os
import signal
import sys

from rowlake.catalog.filesystem_backend import FileSystemBackend
from rowlake.catalog.sql import SqlBackend
from rowlake.commit import loop
from rowlake.lake import connect
from rowlake.storage.files import Storage

catalog, name, places = sys.argv[1] or None, sys.argv[2], sys.argv[3:]
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
    # What is imported is imported once: each deleter is a fork of this process, which runs nothing.
    child = os.fork()
    if child:
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    with connect(warehouse, catalog) as lake:
        armed[0] = True
        lake.table(name).delete("id = 6 OR id = 7", mode="merge-on-read")
        print(steps[0], flush=True)
    os._exit(0)
"""


def make(warehouse: Path, catalog: str | None, version: str) -> None:
    with connect(str(warehouse), catalog) as lake:
        lake.create_namespace("shop")
        properties = {"format-version": version, "commit.retry.min-wait-ms": "1"}
        table = lake.create_table(NAME, SALES, properties=properties)
        table.append(sales(20))
        table.delete("id = 1", mode="merge-on-read")


def run(catalog: str | None, places: list[str]) -> list[int]:
    """Return what the deleters say: how many steps they took, and the signals that ended them."""
    command = [sys.executable, "-c", DELETER, catalog or "", NAME, *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "catalog, version", [(None, "3"), ("filesystem", "2")], ids=["sqlite-v3", "filesystem-v2"]
)
def test_a_killed_deleter_leaves_one_commit_or_the_other(tmp_path, catalog, version) -> None:
    make(tmp_path / "whole", catalog, version)
    steps, ended = run(catalog, [f"0:before:{tmp_path}/whole"])
    assert (ended, steps >= 8) == (0, True)
    # After a step is before the next one, but for the last.
    deaths = [(at, "before") for at in range(1, steps + 1)] + [(steps, "after")]
    places = [f"{at}:{side}:{tmp_path}/{at}-{side}" for at, side in deaths]
    for at, side in deaths:
        make(tmp_path / f"{at}-{side}", catalog, version)
    assert run(catalog, places) == [9] * len(deaths)
    landed = [has_landed(tmp_path / f"{at}-{side}", catalog) for at, side in deaths]
    assert set(landed) == {False, True}


def has_landed(warehouse: Path, catalog: str | None) -> bool:
    """Check that a table is at a commit, and that the next writer goes on from there."""
    default_cache().clear()
    with connect(str(warehouse), catalog) as lake:
        table = lake.table(NAME)
        ids = set(table.arrow(["id"])["id"].to_pylist())
        landed = 6 not in ids
        gone = {1} | ({5} if 5 not in ids else set()) | ({6, 7} if landed else set())
        assert ids == set(range(20)) - gone
        table.delete("id = 6 OR id = 8", mode="merge-on-read")
        assert set(table.arrow(["id"])["id"].to_pylist()) == ids - {6, 8}
    return landed
