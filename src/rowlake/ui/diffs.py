"""Which rows changed between two snapshots, bounded in files, rows and time.

Comes in: a table and two snapshots. Goes out: counts and the first rows, or why they are not shown
and which command shows them. Only what the driver reads by itself is read: no JVM starts here.
"""

from __future__ import annotations

import shlex
import threading
from collections import Counter
from concurrent import futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.engine.local import MAX_BYTES, MAX_FILES, is_tiny
from rowlake.errors import InvalidStatementError
from rowlake.model.feed import CHANGE_COLUMNS, POSTIMAGE, PREIMAGE, SNAPSHOT, TYPE, Bounds
from rowlake.model.plan import size_text
from rowlake.stream.changes import ChangesRequest, arrow, planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle

MAX_COMMITS = 200
MAX_RECORDS = 2_000_000
MAX_SECONDS = 20.0
ROWS_SHOWN = 200
COLUMNS_SHOWN = 40
CELL_LENGTH = 200


@dataclass(frozen=True)
class ChangedRow:
    """One change; `marked` are the places of the cells that an update changed."""

    kind: str
    snapshot_id: int
    cells: tuple[str, ...]
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Diff:
    """What changed, or (`refusal`) why that is not shown here."""

    command: str
    counts: Counter[str]
    columns: tuple[str, ...] = ()
    rows: tuple[ChangedRow, ...] = ()
    columns_left_out: int = 0
    refusal: str = ""


class Comparing:
    """Compares snapshots, one pair at a time."""

    def __init__(self, engine: Engine, seconds: float = MAX_SECONDS) -> None:
        self._engine, self._seconds = engine, seconds
        self._busy = threading.Lock()

    def diff(
        self, handle: TableHandle, start: int | None, end: int, keys: Sequence[str] = ()
    ) -> Diff:
        """Return what changed after `start` up to `end`; raises InvalidStatementError."""
        asked = ChangesRequest(Bounds(start, end), keys=list(keys) or None)
        command = _command(handle.name, start, end, keys)
        if not self._busy.acquire(blocking=False):
            return Diff(command, Counter(), refusal="Another comparison is running. Try again.")
        # The thread gives the lock back: it may outlive the wait.
        answer: futures.Future[pa.Table | str] = futures.Future()
        worker = threading.Thread(
            target=self._work, args=(handle, asked, answer), name="rowlake-ui-diff", daemon=True
        )
        worker.start()
        try:
            found = answer.result(self._seconds)
        except futures.TimeoutError:  # until Python 3.11 not the built-in one
            found = f"This takes longer than {self._seconds:.0f} seconds."
        return _diff(command, found)

    def _work(
        self, handle: TableHandle, asked: ChangesRequest, answer: futures.Future[pa.Table | str]
    ) -> None:
        try:
            answer.set_result(self._read(handle, asked))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            answer.set_exception(error)
        finally:
            self._busy.release()

    def _read(self, handle: TableHandle, asked: ChangesRequest) -> pa.Table | str:
        commits = _commits(handle, asked.bounds)
        if commits > MAX_COMMITS:
            return f"There are {commits:,} commits in between; at most {MAX_COMMITS} are compared."
        plan = planned(handle, self._engine, asked)
        tasks = plan.tasks(self._engine.parallelism)
        files = [file for group in plan.groups for file in group.files()]
        told = f"{len(files):,} files of {size_text(plan.size_in_bytes)} may hold changes"
        if not is_tiny(tasks, plan.size_in_bytes):
            limit = f"{MAX_FILES} files and {size_text(MAX_BYTES)}"
            return f"This needs Spark: {told}, and this page reads at most {limit}."
        records = sum(file.record_count for file in files)
        if records > MAX_RECORDS:
            return f"{told}, with {records:,} rows; at most {MAX_RECORDS:,} are compared here."
        return arrow(handle, self._engine, asked)


def _commits(handle: TableHandle, bounds: Bounds) -> int:
    count = 0
    for snapshot in handle.ancestors(bounds.end):
        if snapshot.snapshot_id == bounds.start or count > MAX_COMMITS:
            break
        count += 1
    return count


def _command(name: str, start: int | None, end: int, keys: Sequence[str]) -> str:
    parts = ["rowlake", "changes", shlex.quote(name)]
    parts += [] if start is None else ["--start", str(start)]
    parts += ["--end", str(end)]
    parts += [f"--key {shlex.quote(key)}" for key in keys]
    return " ".join(parts)


def _diff(command: str, found: pa.Table | str) -> Diff:
    if isinstance(found, str):
        return Diff(command, Counter(), refusal=found)
    counted = found.column(TYPE).value_counts()
    counts = Counter({one["values"].as_py(): one["counts"].as_py() for one in counted})
    names = [name for name in found.column_names if name not in CHANGE_COLUMNS]
    shown = names[:COLUMNS_SHOWN]
    first = found.slice(0, ROWS_SHOWN).select([*shown, TYPE, SNAPSHOT])
    rows = _rows(list(zip(*(column.to_pylist() for column in first.columns), strict=True)))
    return Diff(command, counts, tuple(shown), rows, len(names) - len(shown))


def _rows(found: list[tuple[Any, ...]]) -> tuple[ChangedRow, ...]:
    """Return rows as texts; of an update, the cells that differ are marked in both images."""
    rows: list[ChangedRow] = []
    for *values, kind, snapshot in found:
        cells = tuple(map(cell_text, values))
        before = rows[-1] if rows else None
        marked: frozenset[int] = frozenset()
        if kind == POSTIMAGE and before is not None and before.kind == PREIMAGE:
            pairs = enumerate(zip(before.cells, cells, strict=True))
            marked = frozenset(place for place, (one, other) in pairs if one != other)
            rows[-1] = ChangedRow(before.kind, before.snapshot_id, before.cells, marked)
        rows.append(ChangedRow(kind, snapshot, cells, marked))
    return tuple(rows)


def cell_text(value: Any) -> str:
    """Return a value as a cell shows it, cut where it is long."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= CELL_LENGTH else text[: CELL_LENGTH - 1] + "…"


def snapshot_number(text: str, what: str) -> int:
    """Return a snapshot id that a person typed."""
    cleaned = text.strip()
    if not cleaned.isascii() or not cleaned.lstrip("-").isdigit() or len(cleaned) > 20:
        raise InvalidStatementError(f"{what} takes a snapshot id, a whole number, not {text!r}.")
    return int(cleaned)
