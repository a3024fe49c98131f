"""One cell of the matrix: a statement, stopped at a phase while something else lands.

The verdict says how the statement ended; rows are checked against a serial order of both, by
plain Python. Under snapshot isolation both may also land as if neither had seen the other.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import CommitConflictError, RowlakeError
from tests.matrix.landings import LANDINGS, Landing
from tests.matrix.statements import STATEMENTS, How, Statement
from tests.matrix.tables import BRANCH, DELTA, KINDS, START, held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.table import Table
    from tests.matrix.tables import Row, Scene

    Run = Callable[[Table, int, How], Any]

MODES = ("copy-on-write", "merge-on-read", "auto")
ISOLATIONS = ("serializable", "snapshot")
PHASES = {"planned": Phase.PLANNED, "written": Phase.WRITTEN, "produced": Phase.PRODUCED}
# Commits of metadata have one phase each.
ONLY = {"ALTER TABLE": "planned", "expire_snapshots": "produced", "rewrite_manifests": "produced"}
# The files that it is about to read go with the table: that is a missing file, not a conflict.
NOT_RUN = ("rewrite_data_files", "DROP TABLE + CREATE TABLE", "planned", DELTA)
NOT_PLANNED = ("append", "overwrite where", "dynamic overwrite", "blind upsert")
LANDED, REPLANNED, GAVE_UP, CONFLICT = "landed", "replanned", "left to the next run", "conflict"


@dataclass(frozen=True, order=True)
class Cell:
    """Which statement meets what, where, and how."""

    statement: str
    landing: str
    phase: str
    kind: str
    mode: str | None = None
    isolation: str | None = None

    @property
    def how(self) -> How:
        """The statement's options."""
        branch = BRANCH if LANDINGS[self.landing].on_branch else "main"
        return How(self.mode, self.isolation, branch)

    @property
    def variant(self) -> str:
        """What the cell is apart from its statement and landing."""
        parts = (self.phase, self.kind, self.mode, self.isolation)
        return " ".join(part for part in parts if part)


class WrongRowsError(AssertionError):
    """The table holds rows that no serial order of the two gives."""


def all_cells() -> list[Cell]:
    """Return every cell, in a fixed order."""
    return [
        Cell(statement.name, landing.name, phase, kind, mode, isolation)
        for statement in STATEMENTS.values()
        for landing in LANDINGS.values()
        for phase in phases_of(statement.name)
        for kind in KINDS
        if is_of(statement, kind) and is_of(landing, kind)
        if (statement.name, landing.name, phase, kind) != NOT_RUN
        for mode in (MODES if "m" in statement.axes else (None,))
        for isolation in (ISOLATIONS if "i" in statement.axes else (None,))
    ]


def is_of(one: Statement | Landing, kind: str) -> bool:
    """Return whether tables of a kind have a statement or a landing."""
    return kind in one.kinds


def phases_of(statement: str) -> tuple[str, ...]:
    if statement in ONLY:
        return (ONLY[statement],)
    return ("written", "produced") if statement in NOT_PLANNED else tuple(PHASES)


@dataclass
class _Stop:
    """Runs something once, when the write around it reaches a phase; counts plans and writes."""

    act: Callable[[], Any]
    at: Phase
    reached: Counter[Phase] = field(default_factory=Counter)
    _busy: bool = False

    @property
    def is_done(self) -> bool:
        return self.reached[self.at] > 0

    @property
    def is_replanned(self) -> bool:
        return max(self.reached[Phase.PLANNED], self.reached[Phase.WRITTEN]) > 1

    def hooks(self) -> Iterator[Any]:
        for phase in Phase:
            yield at_phase(phase, lambda _, phase=phase: self._on(phase))

    def _on(self, phase: Phase) -> None:
        if self._busy:
            return
        self.reached[phase] += 1
        if phase is self.at and self.reached[phase] == 1:
            self._busy = True
            self.act()
            self._busy = False


def verdict_of(cell: Cell, scene: Scene, run: Run | None = None) -> str:
    """Run a cell; return how the statement ended. Raises where rows are wrong.

    `run` stands for the statement's own way to be run, with the same effect.
    """
    statement, landing = STATEMENTS[cell.statement], LANDINGS[cell.landing]
    table, key, run = scene.restored(), statement.key, run or statement.run
    stop = _Stop(lambda: landing.run(scene.lake, key, cell.how), PHASES[cell.phase])
    with ExitStack() as hooks:
        for hook in stop.hooks():
            hooks.enter_context(hook)
        try:
            found = _ended(run(table, key, cell.how), stop)
        except CommitConflictError as error:
            found = f"{CONFLICT}: {cause_of(error)}"
        except RowlakeError as error:
            found = f"{type(error).__name__}: {_normal(str(error), cell)}"
    if not stop.is_done:
        raise AssertionError(f"{cell} never came to its phase")
    _check_rows(cell, scene.lake.table(table.name), has_landed=_has_landed(found))
    return found


def _ended(result: Any, stop: _Stop) -> str:
    if getattr(result, "given_up_files_count", 0) and not result.snapshot_ids:
        return GAVE_UP
    return REPLANNED if stop.is_replanned else LANDED


def _has_landed(verdict: str) -> bool:
    return verdict in (LANDED, REPLANNED, GAVE_UP)


def is_acceptable(verdict: str) -> bool:
    """Return whether a statement may end so: a clear conflict, and never a foreign error."""
    return _has_landed(verdict) or verdict.startswith(f"{CONFLICT}: ")


def cause_of(error: CommitConflictError) -> str:
    """Return why, without what differs from run to run."""
    return re.sub(r"snapshot \d+", "a snapshot", error.cause)


def _normal(text: str, cell: Cell) -> str:
    text = re.sub(r"\S*/\S+", "<file>", text)
    return re.sub(r"\d{6,}", "N", text).replace(cell.kind, "")[:160]


# ---------------------------------------------------------------------- rows


def _check_rows(cell: Cell, table: Table, *, has_landed: bool) -> None:
    statement, landing = STATEMENTS[cell.statement], LANDINGS[cell.landing]
    if landing.on_branch:
        # The statement's branch is gone, with all that it may have written there.
        wanted = [START]
    else:
        wanted = expected(statement, landing, cell.isolation, has_landed=has_landed)
    found = held(table)
    if found not in [sorted(rows, key=repr) for rows in wanted]:
        extra = Counter(found) - Counter(wanted[0])
        missing = Counter(wanted[0]) - Counter(found)
        raise WrongRowsError(f"{cell}: {dict(extra)} too many, {dict(missing)} missing")


def expected(
    statement: Statement, landing: Landing, isolation: str | None, *, has_landed: bool
) -> list[list[Row]]:
    """Return what the table may hold afterwards."""
    key = statement.key
    theirs = landing.effect(START, key)
    if not has_landed:
        return [theirs]
    ours = statement.effect(START, key)
    found = [statement.effect(theirs, key)]
    if not landing.is_first:
        found.append(landing.effect(ours, key))
    if isolation == "snapshot":
        found.append(_both_unseen(ours, theirs))
    return found


def _both_unseen(ours: list[Row], theirs: list[Row]) -> list[Row]:
    """Return both changes of the same rows, neither of which has seen the other."""
    start = Counter(START)
    mine, other = Counter(ours), Counter(theirs)
    gone = (start - mine) | (start - other)
    return list((start - gone + (mine - start) + (other - start)).elements())
