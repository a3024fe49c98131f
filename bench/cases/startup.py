"""Start-up: imports, the first command, and a small INSERT into an open lake."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.case import Case, Contestant, Step, entrants
from bench.children import run_child
from bench.measure import OWN_PROCESS, Reported, Sample
from bench.peers.base import Layout, TableRef, checksum

if TYPE_CHECKING:
    from bench.lab import Lab

IMPORTS = {"rowlake": "rowlake", "pyiceberg": "pyiceberg.catalog", "pyspark": "pyspark.sql"}
TIMED_IMPORT = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
# What `import rowlake` puts off until the name is used.
FIRST_USE = "rowlake; rowlake.connect"
TABLES = 3
ROWS = 10


def startup(lab: Lab) -> list[Contestant]:
    """Import the libraries in a fresh interpreter; list the tables of a small lake."""

    def make(name: str) -> Contestant:
        steps = [Step("import", partial(timed_import, IMPORTS[name]))]
        if name == "rowlake":
            steps.append(Step("import and connect name", partial(timed_import, FIRST_USE)))
            steps.append(Step("tables", partial(list_tables, small_lake(lab))))
        return Contestant(name, tuple(steps))

    return entrants(lab.wanted(*IMPORTS), make)


def timed_import(module: str) -> Reported:
    command = [sys.executable, "-c", TIMED_IMPORT.format(module=module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall, cpu = (float(text) for text in done.stdout.split())
    return Reported(Sample(wall, cpu, place=OWN_PROCESS))


def small_lake(lab: Lab) -> Path:
    """Return the warehouse of a lake with a few empty tables."""
    warehouse = lab.scratch / "small"
    run_child("small_lake", str(warehouse), str(TABLES))
    return warehouse


def list_tables(warehouse: Path) -> None:
    command = Path(sys.executable).parent / "rowlake"
    subprocess.run(
        [str(command), "tables", "--warehouse", str(warehouse)], check=True, capture_output=True
    )


def insert(lab: Lab) -> list[Contestant]:
    """INSERT 10 rows of literals into a table that is open, again and again."""
    return entrants(lab.wanted("rowlake", "iceberg-java"), partial(_inserter, lab))


def _inserter(lab: Lab, name: str) -> Contestant:
    system = lab.peer(name)
    warehouse = lab.java_warehouse if name == "iceberg-java" else lab.scratch / "rowlake"
    table = TableRef(warehouse, "scratch.small_insert")
    system.create(table, Layout())
    step = Step(
        "10 rows",
        lambda: system.insert_values(table, ten_rows()),
        lambda _: checksum(system.frame(table)),
    )
    return Contestant(name, (step,))


def ten_rows() -> str:
    """Return ten rows of the bench table as SQL literals."""
    numbers = "{n}, {n}, 1, 2, 3, 4, 1.25, 2.50, 3.75, 4.00"
    row = f"({numbers}, 'note {{n}}', timestamp '2024-01-01 00:00:00')"
    return ", ".join(row.format(n=number) for number in range(ROWS))


CASES = [
    Case("startup", "Import and first command", startup, rounds=5),
    Case("insert", "INSERT of 10 rows into an open lake", insert, rounds=10, warmups=3),
]
