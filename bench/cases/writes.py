"""Whole-table writes: append to an empty table, and CREATE TABLE AS SELECT.

Each system starts from nothing in every round and writes the same DataFrame, once bucketed by
the key and once unpartitioned. The plain Parquet writer, as the limit, redistributes the rows
in the same way where the table is bucketed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Contestant, Step, entrants
from bench.peers.base import Layout, TableRef, checksum

if TYPE_CHECKING:
    from bench.lab import Lab

WRITERS = ("rowlake", "iceberg-java", "spark-parquet")


def layouts(lab: Lab) -> dict[str, Layout]:
    return {"bucketed": Layout(lab.options.buckets), "unpartitioned": Layout()}


def contestants(verb: str, lab: Lab) -> list[Contestant]:
    """Return every system that writes, with one step per layout."""
    return entrants(lab.wanted(*WRITERS), partial(_writer, verb, lab))


def _writer(verb: str, lab: Lab, name: str) -> Contestant:
    system = lab.peer(name)
    warehouse = {
        "rowlake": lab.scratch / "rowlake",
        "iceberg-java": lab.java_warehouse,
        "spark-parquet": lab.scratch / "parquet",
    }[name]
    targets = {
        step: (TableRef(warehouse, f"scratch.{verb}_{step}"), layout)
        for step, layout in layouts(lab).items()
    }

    def prepare(_: int) -> None:
        for table, layout in targets.values():
            system.drop(table)
            if verb == "append":
                system.create(table, layout)

    def finish() -> None:
        for table, _ in targets.values():
            system.drop(table)

    def write(table: TableRef, layout: Layout) -> dict[str, Any]:
        getattr(system, verb)(table, lab.source(lab.options.write_rows), layout)
        return {"facts": {"rows": lab.options.write_rows}}

    def truth(table: TableRef, _: Any) -> Any:
        return checksum(system.frame(table))

    steps = tuple(
        Step(step, partial(write, table, layout), partial(truth, table))
        for step, (table, layout) in targets.items()
    )
    return Contestant(name, steps, prepare, finish)


CASES = [
    Case(
        "append",
        "Append of the bench table to an empty one",
        partial(contestants, "append"),
        rounds=2,
    ),
    Case(
        "ctas", "CREATE TABLE AS SELECT of the bench table", partial(contestants, "ctas"), rounds=2
    ),
]
