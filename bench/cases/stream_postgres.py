"""PostgreSQL -> table: how many changes a second `rowlake cdc` brings over.

The server runs on the same machine and cores. A log with inserts, updates and deletes is written
first; then a run follows it to its end, whose time is measured: decoding, collapsing by key,
writing, commits, confirming. At the end the rows there and here must be equal.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from bench.case import Case, Contestant, Step, entrants

if TYPE_CHECKING:
    from bench.lab import Lab

FIRST_ROWS = 100_000
CHANGES = 200_000
ROWS_A_STATEMENT = 100
COLUMNS = (
    "id bigint PRIMARY KEY, customer int, status text, amount numeric(9,2), note text, "
    "updated timestamptz"
)
ROWS = "SELECT i, i % 1000, 'new', i % 9999, md5(i::text), now() FROM generate_series({}, {}) i"
_numbers = itertools.count()


def from_postgres(lab: Lab) -> list[Contestant]:
    """Follow a log of inserts (two in five changes), updates (two) and deletes (one)."""
    changes = CHANGES if lab.options.rows is None else CHANGES // 100

    def make(name: str) -> Contestant:
        feed = Feed(lab, changes)
        step = Step("changes", feed.follow, feed.rows)
        return Contestant(name, (step,), feed.prepare, close=feed.close)

    return entrants(lab.wanted("rowlake"), make)


class Feed:
    """A server with one table, and the table of the lake that follows it."""

    def __init__(self, lab: Lab, changes: int) -> None:
        from tests.parts.cdc import source_server

        self.lab, self.changes = lab, changes
        self._open = ExitStack()
        self.server = self._open.enter_context(source_server())

    def prepare(self, _: int) -> None:
        """Make a new database and copy its rows; then write the log that is to be followed."""
        from tests.parts.cdc import connected, run, source_database

        number = next(_numbers)
        self.database = self._open.enter_context(source_database(self.server))
        self.cursor = self._open.enter_context(connected(self.database))
        self.lake = self._lake(str(self.lab.scratch / f"cdc-{number}"))
        self.cursor.execute(f"CREATE TABLE orders ({COLUMNS})")
        self.cursor.execute(f"INSERT INTO orders {ROWS.format(1, FIRST_ROWS)}")
        run(self.lake, self.database, "orders")
        for start in range(0, self.changes * 2 // 5, 2 * ROWS_A_STATEMENT):
            self._write(start)

    def _write(self, start: int) -> None:
        size, new = ROWS_A_STATEMENT, 2 * FIRST_ROWS + start
        old = start * 7 % (FIRST_ROWS - 2 * size) + 1
        self.cursor.execute(f"INSERT INTO orders {ROWS.format(new, new + 2 * size - 1)}")
        self.cursor.execute(
            "UPDATE orders SET status = 'paid', amount = amount + 1, updated = now() "
            f"WHERE id BETWEEN {old} AND {old + 2 * size - 1}"
        )
        self.cursor.execute(f"DELETE FROM orders WHERE id BETWEEN {new} AND {new + size - 1}")

    def _lake(self, folder: str) -> Any:
        import rowlake

        return self._open.enter_context(rowlake.connect(folder))

    def follow(self) -> dict[str, Any]:
        """Follow the log to its end."""
        from tests.parts.cdc import run

        done = run(self.lake, self.database, "orders")
        if done.changes != self.changes:
            raise RuntimeError(f"{done.changes} changes came of {self.changes}")
        return {"facts": {"changes_per_s": done.rate, "commits": float(done.commits)}}

    def rows(self, _: object) -> int:
        """Compare the rows there and here; return how many there are."""
        from tests.parts.cdc import rows_here, rows_there

        there = rows_there(self.cursor, "orders")
        if rows_here(self.lake, "orders") != there:
            raise RuntimeError("the table does not have the rows of the database")
        return len(there)

    def close(self) -> None:
        self._open.close()


CASES = [
    Case(
        "postgres",
        "PostgreSQL -> table: 200 000 changes of a log followed to its end",
        from_postgres,
    )
]
