"""Memory of a MERGE while its target grows from 1× to 10×, judged by Python's own bytes.

Each MERGE runs in a process tree of its own with a small JVM whose heap is fixed and touched from
the start, so that what grows is what the work needs, not uncollected garbage. The source keeps its
size: 1 % of the small target's rows, spread over all buckets.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench import tables
from bench.case import Case, Contestant, Step, entrants
from bench.changes import MICRO_BATCH, Workload
from bench.children import run_child
from bench.editors.base import base
from bench.measure import OWN_PROCESS, Reported, Sample
from bench.peers.base import checksum
from bench.rounds import Skipped
from bench.staging import stage

if TYPE_CHECKING:
    from bench.editors.base import Base, Editor
    from bench.lab import Lab
    from bench.staging import Source

SYSTEMS = ("rowlake-lazy", "iceberg-v3")
TIMES = {"1×": 1, "10×": 10}


def contestants(lab: Lab) -> list[Contestant]:
    """Return one step per size; the largest is the size of the other row-level cases."""
    small = lab.options.row_level_rows // max(TIMES.values())
    targets = {step: base(lab, small * times, aligned=True) for step, times in TIMES.items()}
    each = max(1, small // 100 // lab.options.buckets)
    workload = Workload(f"memory_{each}", each, MICRO_BATCH.inserts)
    sources = {
        step: stage(lab, start.rows, workload, 0, aligned=True) for step, start in targets.items()
    }

    def make(name: str) -> Contestant:
        editor: Editor = lab.editor(name)
        steps = tuple(
            Step(step, partial(_merge_alone, lab, editor, start, sources[step]), lambda rows: rows)
            for step, start in targets.items()
        )
        return Contestant(name, steps, needs_warmup=False)

    return entrants(lab.wanted(*SYSTEMS), make)


def _merge_alone(lab: Lab, editor: Editor, start: Base, source: Source) -> Reported:
    properties = {**editor.properties(), "write.merge.distribution-mode": "none"}  # type: ignore[attr-defined]
    table = tables.copy_of(lab, start.java, "memory", properties)
    if source.aligned is None:
        raise AssertionError
    try:
        said = run_child(
            "merge_alone", editor.name, str(lab.java_warehouse), table.name, source.aligned.name
        )
        truth = checksum(lab.peer("iceberg-java").fresh_frame(table))
    finally:
        lab.peer("iceberg-java").drop(table)
    if "not_yet" in said:
        raise Skipped(f"not yet: {said['not_yet']}")
    facts = {name: float(value) for name, value in said.pop("facts").items()}
    facts["target_rows"] = float(start.rows)
    return Reported(Sample(**said, facts=facts, place=OWN_PROCESS), truth)


CASES = [
    Case(
        "memory",
        "Peak memory of a MERGE while the target grows 10×",
        contestants,
        rounds=2,
        warmups=0,
        ours="rowlake-lazy",
    )
]
