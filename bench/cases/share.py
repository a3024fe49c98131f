"""What a MERGE costs as the share of changed rows grows: where eager and lazy cross."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Contestant, Step, entrants
from bench.changes import Workload
from bench.editors.base import Base, base
from bench.staging import Source, stage

if TYPE_CHECKING:
    from bench.editors.base import Editor
    from bench.lab import Lab

SHARES = (0.001, 0.01, 0.1, 0.3, 0.6)
SYSTEMS = ("rowlake-lazy", "rowlake-eager", "rowlake-auto", "iceberg-v3", "iceberg-cow")
# A quarter of the other row-level cases' rows: there are many tables to make.
ROWS_SHARE = 4


def contestants(lab: Lab) -> list[Contestant]:
    """Merge one share after the other, each into a fresh table; a step is a share."""
    rows = (
        lab.options.row_level_rows if lab.options.full else lab.options.row_level_rows // ROWS_SHARE
    )
    start = base(lab, rows, aligned=True)
    sources = {
        share: stage(lab, rows, Workload(f"share_{share}", share), 0, aligned=True)
        for share in SHARES
    }

    def make(name: str) -> Contestant:
        editor: Editor = lab.editor(name)
        steps = [
            step
            for share, source in sources.items()
            for step in _steps(editor, start, share, source)
        ]
        return Contestant(
            name,
            tuple(steps),
            close=editor.drop,
            needs_warmup=name not in lab.warmed,
        )

    return entrants(lab.wanted(*SYSTEMS), make)


def _steps(editor: Editor, start: Base, share: float, source: Source) -> list[Step]:
    def fresh_then_merge() -> Any:
        return editor.merge(source)

    def truth(answer: Any) -> Any:
        editor.lab.warmed.add(editor.name)
        return answer, editor.truth()

    return [
        Step(
            f"merge {share:.1%}",
            fresh_then_merge,
            facts=editor.facts,
            before=partial(editor.fresh, start),
        ),
        Step(f"read {share:.1%}", editor.read, truth),
    ]


CASES = [
    Case(
        "share",
        "MERGE of a growing share of the rows: eager, lazy, auto",
        contestants,
        rounds=3,
        only_full=True,
        ours="rowlake-auto",
    )
]
