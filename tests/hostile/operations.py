"""What is run on a mutated table, in a process of its own, and whether it went right.

Every operation ends in rows that the verdict allows or in a RowlakeError that is not our bug;
anything else is a finding. A list of rows is kept as operations that land change it: what is read
after each of them is that list, or an error.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.codecs import avro_file
from rowlake.delta import many_files
from rowlake.errors import InternalError, RowlakeError
from rowlake.model.predicate import Leaf, Op
from tests.histories.driver import driver_lake
from tests.hostile.tables import NAME, as_texts, rows
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    Look = Callable[[Any, "State"], object]
    Write = Callable[[Any, list[str], "State"], list[str] | None]  # the rows that are left

PLANTED = "tests.hostile.planted"
NEEDS_SPARK = "was asked for a Spark session"  # what the driver's engine says
LONGEST_TEXT = 20_000
METADATA_TABLES = (
    "snapshots",
    "history",
    "refs",
    "files",
    "all_files",
    "entries",
    "all_entries",
    "manifests",
    "all_manifests",
    "partitions",
    "metadata_log_entries",
    "position_deletes",
)
BELOW_TEN = Leaf(("id",), Op.LT, (10,))


class WrongRowsError(AssertionError):
    """What was read is not what the verdict allows."""


@dataclass(frozen=True)
class Orders:
    """What a case is told to run: plain data, since it crosses to another process."""

    format: str
    lake: str
    catalog: str | None
    verdict: Verdict
    filters_lie: bool
    history_lies: bool
    snapshots: list[tuple[int, list[str]]]
    looks: list[str]
    operations: list[str]
    as_large: bool = False  # small files are decoded as large ones are


@dataclass(frozen=True)
class Repertoire:
    """What can be run on tables of a format: reads, writes, and writes that end every case."""

    reads: Mapping[str, Look]
    writes: Mapping[str, Write]
    sweep: Mapping[str, Write]
    can_purge: bool = True


class State:
    """What the table must hold; `rows` is None where nobody can say."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.verdict = orders.verdict
        self.rows = None if self.verdict is Verdict.ANY else orders.snapshots[-1][1]
        self.instead: list[str] | None = None  # what an operation that failed may have left

    def check(self, found: pa.Table, wanted: list[str] | None) -> None:
        """Compare rows with those wanted; None means any."""
        if wanted is None:
            return
        if self.verdict is Verdict.COUNT:
            if found.num_rows != len(wanted):
                raise WrongRowsError(f"{found.num_rows} rows, not {len(wanted)}")
            return
        texts = as_texts(found)
        if texts != wanted:
            lost = [row for row in wanted if row not in texts]
            more = [row for row in texts if row not in wanted]
            raise WrongRowsError(
                f"{len(texts)} rows, not {len(wanted)}; lost {lost[:3]}, not ours {more[:3]}"
            )

    def changed(self, rows_now: list[str] | None) -> None:
        """Take note of what a write left; values that were mutated may have been written on."""
        self.rows = None if self.rows is None or self.verdict is Verdict.COUNT else rows_now


# --- reading


def read(table: Any, state: State) -> None:
    found = table.arrow()
    if state.instead is not None and as_texts(found) == state.instead:
        state.rows = state.instead
    state.instead = None
    state.check(found, state.rows)


def read_some(table: Any, state: State) -> None:
    found = table.arrow(where=BELOW_TEN)
    if state.rows is not None and not state.orders.filters_lie:
        wanted = [row for row in state.rows if id_of(row) < 10]
        state.check(found, None if state.verdict is Verdict.COUNT else wanted)


def id_of(text: str) -> int:
    return int(text[1:].split(",")[0])


def read_columns(table: Any, state: State) -> None:
    found = table.arrow(["note", "id"])
    if state.rows is not None and found.num_rows != len(state.rows):
        raise WrongRowsError(f"{found.num_rows} rows of two columns, not {len(state.rows)}")


def read_before(table: Any, state: State) -> None:
    snapshot_id, wanted = state.orders.snapshots[0]
    found = table.arrow(snapshot_id=snapshot_id)
    if state.verdict is not Verdict.ANY and not state.orders.history_lies:
        state.check(found, wanted)


def read_by_time(table: Any, state: State) -> None:
    table.arrow(as_of=int(time.time() * 1000))


def inspecting(name: str) -> Callable[[Any, State], None]:
    def inspect(table: Any, state: State) -> None:
        table.inspect(name)

    return inspect


READS: dict[str, Look] = {
    "read": read,
    "read some": read_some,
    "read columns": read_columns,
    "read before": read_before,
    "read by time": read_by_time,
    **{f"inspect {name}": inspecting(name) for name in METADATA_TABLES},
    "snapshots": lambda table, _: table.snapshots(),
    "health": lambda table, _: table.health(orphans=True),
    "look for orphans": lambda table, _: table.remove_orphan_files(),
    "plan expiry": lambda table, _: table.expire_snapshots(now(), retain_last=1, dry_run=True),
    "plan optimize": lambda table, _: table.optimize(dry_run=True),
    "plan compaction": lambda table, _: table.rewrite_data_files(options=ALL, dry_run=True),
}


# --- writing: each returns the rows that are left, of those that were there

ALL = {"rewrite-all": "true"}


def now() -> int:
    return int(time.time() * 1000)


def append(table: Any, held: list[str], state: State) -> list[str]:
    more = rows(3, 100)
    table.append(more)
    return sorted([*held, *as_texts(more)])


def overwrite(table: Any, held: list[str], state: State) -> list[str]:
    table.overwrite(rows(2, 200))
    return as_texts(rows(2, 200))


def upsert(table: Any, held: list[str], state: State) -> list[str]:
    more = rows(4, 22)
    table.upsert(more, ["id"])
    return sorted([*(row for row in held if not 22 <= id_of(row) < 26), *as_texts(more)])


def deleting(key: int, **options: str) -> Write:
    def delete(table: Any, held: list[str], state: State) -> list[str]:
        table.delete(f"id = {key}", **options)
        return [row for row in held if id_of(row) != key]

    return delete


def erase(table: Any, held: list[str], state: State) -> list[str]:
    """Erase a row: it is gone from the table before it is from the history, which may fail."""
    kept = [row for row in held if id_of(row) != 8]
    if state.rows is not None and state.verdict is not Verdict.COUNT:
        state.instead = kept
    table.erase(where="id = 8")
    return kept


def rollback(table: Any, held: list[str], state: State) -> list[str] | None:
    snapshot_id, before = state.orders.snapshots[1]
    table.rollback_to(snapshot_id)
    return None if state.orders.history_lies else before


def cherry_pick(table: Any, held: list[str], state: State) -> list[str]:
    first = table.snapshots()[0].snapshot_id
    table.create_branch("b", first, if_not_exists=True)
    table.append(rows(1, 300), branch="b")
    table.fast_forward("b", "b")
    picked = {ref["name"]: ref["snapshot_id"] for ref in table.refs().to_pylist()}["b"]
    table.cherry_pick(picked)
    return sorted([*held, *as_texts(rows(1, 300))])


def keeping(run: Callable[[Any], object]) -> Write:
    def keep(table: Any, held: list[str], state: State) -> list[str]:
        run(table)
        return held

    return keep


def expire(table: Any) -> None:
    table.expire_snapshots(now() + 1, retain_last=1, clean_expired_metadata=True)


def remove_orphans(table: Any) -> None:
    table.remove_orphan_files(now() + 1, dry_run=False, force=True)


WRITES: dict[str, Write] = {
    "append": append,
    "overwrite": overwrite,
    "upsert": upsert,
    "delete, merge-on-read": deleting(6, mode="merge-on-read"),
    "delete, copy-on-write": deleting(16, mode="copy-on-write"),
    "delete, equality": deleting(17, deletes="equality"),
    "erase": erase,
    "rollback": rollback,
    "cherry-pick": cherry_pick,
    "truncate and roll back": keeping(lambda table: _truncate(table)),
    "compact": keeping(lambda table: table.rewrite_data_files(options=ALL)),
    "optimize": keeping(lambda table: table.optimize()),
    "rewrite position deletes": keeping(
        lambda table: table.rewrite_position_delete_files(options=ALL)
    ),
    "convert equality deletes": keeping(lambda table: table.convert_equality_deletes()),
    "rewrite manifests": keeping(lambda table: table.rewrite_manifests()),
    "table statistics": keeping(lambda table: table.compute_table_stats()),
    "partition statistics": keeping(lambda table: table.compute_partition_stats()),
    "set a property": keeping(lambda table: table.set_properties({"a": "b"})),
    "tag": keeping(lambda table: table.create_tag("kept", replace=True)),
    "vacuum": keeping(lambda table: table.vacuum(dry_run=False)),
    "move": keeping(lambda table: table.rewrite_table_path(table.location, "/elsewhere")),
}
FILTERED = (
    "upsert",
    "erase",
    "delete, merge-on-read",
    "delete, copy-on-write",
    "delete, equality",
)
SWEEP: dict[str, Write] = {
    "append": append,
    "expire": keeping(expire),
    "remove orphans": keeping(remove_orphans),
}


ICEBERG = Repertoire(READS, WRITES, SWEEP)


def _truncate(table: Any) -> None:
    before = table.handle.metadata.current_snapshot_id
    table.truncate()
    table.rollback_to(before)


# --- running them


def run(orders: Orders, known: Repertoire, report: Path) -> None:
    """Run the operations of a case; what came of each is a line of the report."""
    with report.open("w") as out:

        def tell(**facts: Any) -> None:
            out.write(json.dumps(facts) + "\n")
            out.flush()

        tell(operation="open", outcome="started")
        case = _Case(orders, known, tell)
        if orders.as_large:
            avro_file.SMALL_FILE_BYTES = avro_file.TINY_FILE_BYTES = many_files.ENOUGH_BYTES = 0
        with driver_lake(orders.lake, orders.catalog) as lake:
            case.run(lake)
        if PLANTED in sys.modules:
            tell(operation="all", outcome="foreign", error=f"{PLANTED} was loaded")
        tell(operation="close", outcome="ended")


class _Case:
    def __init__(self, orders: Orders, known: Repertoire, tell: Callable[..., None]) -> None:
        self._orders, self._tell = orders, tell
        self._state, self._known = State(orders), known

    def run(self, lake: Any) -> None:
        first = self._attempt("read", lambda: read(lake.table(NAME), self._state))
        self._judge(first)
        for name in self._orders.looks:
            look = self._known.reads[name]
            self._attempt(name, lambda look=look: look(lake.table(NAME), self._state))
        for name in self._orders.operations:
            self._write(lake, name, self._known.writes[name])
        for name, change in self._known.sweep.items():
            self._write(lake, name, change)
        self._attempt("drop", lambda: lake.drop_table(NAME, purge=self._known.can_purge))

    def _judge(self, refused: bool) -> None:
        if refused and self._orders.verdict is Verdict.SAME:
            self._tell(operation="read", outcome="wrong", error="it was refused")
        if not refused and self._orders.verdict is Verdict.REFUSED:
            self._tell(operation="read", outcome="wrong", error="it was not refused")

    def _write(self, lake: Any, name: str, change: Write) -> None:
        held = self._state.rows

        def write() -> None:
            left = change(lake.table(NAME), held or [], self._state)
            is_known = name not in FILTERED or not self._orders.filters_lie
            self._state.changed(left if is_known else None)

        self._attempt(name, write)
        self._attempt(f"read after {name}", lambda: read(lake.table(NAME), self._state))

    def _attempt(self, name: str, run: Callable[[], object]) -> bool:
        """Run one operation, tell what came of it, and return whether it was refused."""
        self._tell(operation=name, outcome="started")
        try:
            run()
        except RowlakeError as error:
            is_fine = not isinstance(error, InternalError) and len(str(error)) < LONGEST_TEXT
            outcome = "refused" if is_fine else "foreign"
            self._tell(operation=name, outcome=outcome, **_told(error))
            return True
        except WrongRowsError as error:
            self._tell(operation=name, outcome="wrong", error=str(error))
            self._state.rows = None  # one finding is enough
            return False
        except AssertionError as error:
            # Spark would evaluate it; cases are run without.
            is_harmless = str(error).endswith(NEEDS_SPARK)
            outcome = "needs Spark" if is_harmless else "foreign"
            self._tell(operation=name, outcome=outcome, **_told(error))
            return True
        except BaseException as error:  # noqa: BLE001 - whatever comes is the finding
            self._tell(operation=name, outcome="foreign", **_told(error))
            return True
        self._tell(operation=name, outcome="done")
        return False


def _told(error: BaseException) -> dict[str, str]:
    text = f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    return {"error": text[:2000], "trace": trace[-6000:], "length": str(len(text))}
