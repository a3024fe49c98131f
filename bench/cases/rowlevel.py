"""Row-level changes: MERGE in four workloads, DELETE and UPDATE of one row.

Each system starts every case from a fresh table of the same files; in every round all of them
get the same source, then do the read query, and must then have the same rows. A system's first
case of a run starts with a warm-up round on a table of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Contestant, Step, entrants
from bench.changes import BATCH, MICRO_BATCH, NO_STATIC_PREDICATE, STREAMING, Workload
from bench.editors import ICEBERG, OURS
from bench.editors.base import Base, base
from bench.staging import Source, stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.editors.base import Editor
    from bench.lab import Lab

ROUNDS = 3
# One-row statements in a sample: one alone is too short for the clock.
STATEMENTS = 5
READS_CLEAN = ("rowlake-lazy", "iceberg-v3")
NO_TABLE = ("pyarrow-rewrite", "pyarrow-upsert")


@dataclass(frozen=True)
class Setting:
    """What distinguishes the row-level cases."""

    workload: Workload
    systems: tuple[str, ...]
    aligned: bool = True
    bucketed: bool = True
    verb: str = "merge"
    rounds: int = ROUNDS
    times: int = 1


def contestants(setting: Setting, lab: Lab) -> list[Contestant]:
    """Return every system, with its table and the sources of all rounds prepared."""
    rows, rounds = lab.options.row_level_rows, lab.rounds_of(setting.rounds)
    aligned = setting.aligned and setting.bucketed
    start = base(lab, rows, bucketed=setting.bucketed, aligned=aligned)
    sources = [
        stage(lab, rows, setting.workload, number, aligned=aligned) for number in range(rounds)
    ]

    def make(name: str) -> Contestant:
        return player(lab, name, setting.verb, start, sources, setting.times)

    return entrants(lab.wanted(*setting.systems), make)


def player(
    lab: Lab, name: str, verb: str, start: Base, sources: list[Source], times: int = 1
) -> Contestant:
    """Return a contestant that plays the rounds on one table."""
    editor: Editor = lab.editor(name)
    turn = Turn(editor, verb, start, sources)
    alone = editor.needs_warmup  # else in a process of its own, which tells one cost
    steps = [Step(verb, turn.change, facts=editor.facts, times=times if alone else 1)]
    if name not in NO_TABLE:
        steps.append(Step("read", turn.read, turn.truth, loops=True))
    if name in READS_CLEAN:
        steps.append(Step("clean read", editor.read_clean, _same, loops=True))  # type: ignore[attr-defined]
    needs_warmup = editor.needs_warmup and name not in lab.warmed
    return Contestant(
        name,
        tuple(steps),
        turn.prepare,
        close=editor.drop,
        max_rounds=None if lab.options.full else editor.max_rounds,
        needs_warmup=needs_warmup,
    )


def _same(answer: Any) -> Any:
    return answer


class Turn:
    """A system's part in the rounds: its table is recreated in the warm-up and in round 0."""

    def __init__(self, editor: Editor, verb: str, start: Base, sources: list[Source]) -> None:
        self.editor = editor
        self.start = start
        self.sources = sources
        self.source = sources[0]
        self._change: Callable[[], Any] = getattr(self, f"_{verb}")

    def prepare(self, number: int) -> None:
        if number <= 0:
            self.editor.fresh(self.start)
        self.source = self.sources[max(0, number)]

    def change(self) -> Any:
        return self._change()

    def _merge(self) -> Any:
        return self.editor.merge(self.source)

    def _upsert(self) -> Any:
        return self.editor.upsert(self.source)

    def _delete(self) -> Any:
        return self._each(self.editor.delete_row)

    def _update(self) -> Any:
        return self._each(self.editor.update_row)

    def _each(self, statement: Callable[[int, int], Any]) -> Any:
        """Run the statement for a few keys; a cost that was reported is that of the last one."""
        return [statement(*key) for key in self.source.some_keys[:STATEMENTS]][-1]

    def read(self) -> Any:
        return self.editor.read()

    def truth(self, answer: Any) -> Any:
        self.editor.lab.warmed.add(self.editor.name)
        return answer, self.editor.truth()


# Delta's MERGE takes half a minute at this size: each way of it is in the cases where it is best.
EVERYBODY = (*OURS, *ICEBERG, "delta-dv", "delta-rs")


def case(name: str, title: str, setting: Setting, ours: str = "rowlake-lazy", **more: Any) -> Case:
    return Case(
        name,
        title,
        partial(contestants, setting),
        rounds=setting.rounds,
        ours=ours,
        with_delta=True,
        **more,
    )


CASES = [
    case(
        "case1",
        "MERGE, streaming: 25 updates and 25 inserts in every bucket",
        Setting(STREAMING, ("rowlake-equality", *EVERYBODY)),
        on_cluster=True,
    ),
    case(
        "case2",
        "MERGE, micro-batch: 1 % of the rows everywhere, 640 inserts",
        Setting(MICRO_BATCH, (*EVERYBODY, "delta", "pyarrow-rewrite")),
        on_cluster=True,
    ),
    case(
        "case2_plain",
        "MERGE, micro-batch from a plain Parquet source",
        Setting(MICRO_BATCH, (*OURS[:2], *ICEBERG), aligned=False),
    ),
    case(
        "case2_unpartitioned",
        "MERGE, micro-batch into an unpartitioned table, plain source",
        Setting(MICRO_BATCH, (*OURS[:2], *ICEBERG), bucketed=False),
        only_full=True,
    ),
    case(
        "case3",
        "MERGE, batch: half of the rows of 2 of the 16 buckets",
        Setting(BATCH, (*OURS, *ICEBERG)),
        ours="rowlake-auto",
        on_cluster=True,
    ),
    case(
        "case4",
        "MERGE, no static predicate: source rows from 4 of the 16 buckets",
        Setting(NO_STATIC_PREDICATE, (*OURS, *ICEBERG)),
        on_cluster=True,
    ),
    case(
        "delete_one",
        "DELETE of one row by its key (mean of five statements)",
        Setting(MICRO_BATCH, (*OURS, *ICEBERG, "delta-dv"), verb="delete", times=STATEMENTS),
    ),
    case(
        "update_one",
        "UPDATE of one row by its key (mean of five statements)",
        Setting(MICRO_BATCH, (*OURS, *ICEBERG, "delta-dv"), verb="update", times=STATEMENTS),
    ),
]
