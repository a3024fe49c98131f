"""Planning of tables that exist only as metadata, and writing manifests.

Iceberg Java builds the tables: 10 000 files per commit, five columns with statistics. rowlake and
PyIceberg plan in a child interpreter of their own, so that nothing is cached and the memory counted
is theirs; Java plans in the session's JVM, which is warm.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Contestant, Step, entrants
from bench.children import run_child
from bench.data import FIRST_DATE
from bench.measure import DRIVER, OWN_PROCESS, Reported, Sample, measure
from bench.tables import shared

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.java_core import IcebergCore
    from bench.lab import Lab
    from bench.peers.base import TableRef

ENTRIES = 50_000
# PyIceberg takes minutes beyond this.
PYICEBERG_FILES = 200_000
PARTITIONS = (1_000, 10_000, 100_000)
PARTITIONS_FULL = (1_000, 10_000, 100_000, 1_000_000)


def planning(files: int, lab: Lab) -> list[Contestant]:
    """Plan all files cold, again warm, and the 5 % that a bound on the tickets leaves."""
    core = lab.core
    table = metadata_table(lab, core, files)
    metadata_table(lab, core, 1_000)
    makers: dict[str, Callable[[], Contestant]] = {
        "rowlake": lambda: _child_planner("rowlake", lab, table, files),
        "iceberg-java": lambda: _java_planner(core, table, files),
        "pyiceberg": lambda: _child_planner("pyiceberg", lab, table, files),
    }
    quick = [name for name in makers if name != "pyiceberg" or files <= PYICEBERG_FILES]
    return entrants(lab.wanted(*quick), lambda name: makers[name]())


def metadata_table(lab: Lab, core: IcebergCore, files: int) -> TableRef:
    """Return a table of this many files, which exist only in metadata."""

    def build(table: TableRef) -> None:
        core.call("build", lab.java_warehouse.as_uri(), table.name, str(files))

    return shared(lab, f"plan_{files}", build)


def first_ticket(files: int) -> int:
    """Return the ticket from which on 5 % of the files matter: file i starts at ticket 1000 i."""
    return (files - files // 20) * 1_000


def _java_planner(core: IcebergCore, table: TableRef, files: int) -> Contestant:
    def run(ticket: str) -> Reported:
        warehouse = table.warehouse.as_uri()
        sample, planned = measure(lambda: core.call("plan", warehouse, table.name, ticket))
        return _with_rate(sample, int(planned), files)

    steps = {"cold": "", "warm": "", "filtered": str(first_ticket(files))}
    return Contestant(
        "iceberg-java", tuple(Step(step, partial(run, at), int) for step, at in steps.items())
    )


def _child_planner(system: str, lab: Lab, table: TableRef, files: int) -> Contestant:
    """Plan in a child that reports the three steps at once; the steps hand them out."""
    reports: dict[str, Any] = {}

    def prepare(_: int) -> None:
        reports.clear()
        reports.update(plan_in_child(system, lab, table, str(first_ticket(files))))

    def report(step: str) -> Reported:
        found = reports[step]
        planned = found.pop("files")
        return _with_rate(Sample(**found, place=OWN_PROCESS), planned, files)

    steps = tuple(Step(step, partial(report, step), int) for step in ("cold", "warm", "filtered"))
    return Contestant(system, steps, prepare, needs_warmup=False)


def plan_in_child(system: str, lab: Lab, table: TableRef, wanted: str) -> dict[str, Any]:
    """Return the costs of planning all files, all again, and the wanted ones, in a fresh process.

    One date is planned alone.
    """
    cache = lab.scratch / "plan-cache"
    shutil.rmtree(cache, ignore_errors=True)
    return run_child("plan", system, str(table.warehouse), table.name, wanted, str(cache))


def partitions(lab: Lab) -> list[Contestant]:
    """Plan the one file of one partition, in tables of ever more partitions."""
    counts = PARTITIONS_FULL if lab.options.full else PARTITIONS
    metadata_table(lab, lab.core, 1_000)
    found = {f"{count:,} partitions": many_partitions(lab, count) for count in counts}

    def make(name: str) -> Contestant:
        run = (
            partial(_java_partition, lab)
            if name == "iceberg-java"
            else partial(_child_partition, name, lab)
        )
        steps = tuple(
            Step(step, partial(run, table, one_date(count)), int)
            for (step, table), count in zip(found.items(), counts, strict=True)
        )
        return Contestant(name, steps, needs_warmup=name == "iceberg-java")

    return entrants(lab.wanted("rowlake", "iceberg-java", "pyiceberg"), make)


def many_partitions(lab: Lab, count: int) -> TableRef:
    """Return a table with one file per partition, which exist only in metadata."""

    def build(table: TableRef) -> None:
        lab.core.call("build", lab.java_warehouse.as_uri(), table.name, f"{count} {count}")

    return shared(lab, f"partitions_{count}", build)


def one_date(count: int) -> str:
    return f"={FIRST_DATE + count // 3}"


def _java_partition(lab: Lab, table: TableRef, wanted: str) -> Reported:
    warehouse = table.warehouse.as_uri()
    sample, planned = measure(lambda: lab.core.call("plan", warehouse, table.name, wanted))
    return Reported(sample, int(planned))


def _child_partition(system: str, lab: Lab, table: TableRef, wanted: str) -> Reported:
    said = plan_in_child(system, lab, table, wanted)["filtered"]
    planned = said.pop("files")
    return Reported(Sample(**said, place=OWN_PROCESS), planned)


def _with_rate(sample: Sample, planned: int, files: int) -> Reported:
    sample.facts["files_per_s"] = files / sample.wall_s
    sample.facts["files"] = planned
    return Reported(sample, planned)


def manifest_writing(lab: Lab) -> list[Contestant]:
    """Write one manifest whose entries are ready in memory."""
    makers: dict[str, Callable[[], Contestant]] = {
        "rowlake": lambda: _child_writer("rowlake", lab),
        "iceberg-java": lambda: _java_writer(lab),
        "pyiceberg": lambda: _child_writer("pyiceberg", lab),
    }
    return entrants(lab.wanted(*makers), lambda name: makers[name]())


def _java_writer(lab: Lab) -> Contestant:
    core = lab.core

    def run() -> Reported:
        location = (lab.scratch / f"manifest-{time.time_ns()}.avro").as_uri()
        wall, cpu = (int(text) / 1e9 for text in core.call("write", location, str(ENTRIES)).split())
        return _written(Sample(wall, cpu, place=DRIVER))

    return Contestant("iceberg-java", (Step("write", run),))


def _child_writer(system: str, lab: Lab) -> Contestant:
    def run() -> Reported:
        target = lab.scratch / f"manifest-{time.time_ns()}.avro"
        cost = run_child("write_manifest", system, str(target), str(ENTRIES))
        return _written(Sample(**cost, place=OWN_PROCESS))

    return Contestant(system, (Step("write", run),), needs_warmup=False)


def _written(sample: Sample) -> Reported:
    sample.facts["entries_per_s"] = ENTRIES / sample.wall_s
    return Reported(sample)


CASES = [
    Case("planning_10k", "Planning a table of 10 000 files", partial(planning, 10_000)),
    Case("planning_200k", "Planning a table of 200 000 files", partial(planning, 200_000)),
    Case(
        "planning_1m",
        "Planning a table of 1 000 000 files",
        partial(planning, 1_000_000),
        only_full=True,
    ),
    Case("partitions", "Planning one partition of many", partitions),
    Case("manifest_write", "Writing a manifest of 50 000 entries", manifest_writing),
]
