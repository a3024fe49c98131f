"""The first statement of a fresh process: everything that is loaded, planned and started for it.

The JVM's start does not count: a child starts Spark, has it run an empty job, and then takes the
time of one statement. Each statement gets a child of its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench import tables
from bench.case import Case, Contestant, Step, entrants
from bench.children import run_child
from bench.measure import OWN_PROCESS, Reported, Sample

if TYPE_CHECKING:
    from bench.lab import Lab

STEPS = {
    "rowlake": ("count", "merge"),
    "iceberg-java": ("count", "merge"),
    "spark-parquet": ("count",),
}
ROWS = 1_000_000


def contestants(lab: Lab) -> list[Contestant]:
    """Return the systems, each with its statements."""
    rows = min(ROWS, lab.options.total_rows)
    table = tables.clean(lab, rows)

    def run(system: str, step: str) -> Reported:
        name = tables.copy_of(lab, table, f"first_{system[:4]}", {"format-version": "3"})
        try:
            said = run_child("first_statement", system, step, str(name.warehouse), name.name)
        finally:
            lab.peer("iceberg-java").drop(name)
        answer = said.pop("answer")
        return Reported(Sample(**said, place=OWN_PROCESS), answer)

    def make(name: str) -> Contestant:
        steps = tuple(Step(step, partial(run, name, step), int) for step in STEPS[name])
        return Contestant(name, steps, needs_warmup=False)

    return entrants(lab.wanted(*STEPS), make)


CASES = [
    Case(
        "first_statement",
        "The first statement of a fresh process, without the start of the JVM",
        contestants,
        warmups=0,
    )
]
