"""PostgreSQL -> table over many changes, while compaction and expiry run: the same rows at the end.

Transactions insert, update, delete, change keys and truncate; rows have TOAST values, and two
columns change on the way. The run that follows the log is cut off and started again.
`ROWLAKE_CDC_CHANGES` sets how many changes there are (100000 is the long form).
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import contextmanager

import pytest

from rowlake import connect
from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import CommitConflictError
from rowlake.stream.cdc.follow import Pace
from tests.parts.cdc import connected, rows_here, rows_there, run, source_database, source_server

CHANGES = int(os.environ.get("ROWLAKE_CDC_CHANGES", "4000"))
KEYS = 2_000
TOAST = "repeat(md5(i::text || random()::text), 150)"
SCHEMA_CHANGES = (
    "ALTER TABLE orders ADD COLUMN note text",
    "ALTER TABLE orders ALTER COLUMN n TYPE bigint",
)


class Writer:
    """Writes random transactions until there are enough changes."""

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.draw, self.done = address, random.Random(seed), 0
        self.kinds = (self._insert, self._insert, self._update, self._update, self._delete)

    def write(self) -> None:
        marks = {CHANGES // 3: SCHEMA_CHANGES[0], CHANGES * 2 // 3: SCHEMA_CHANGES[1]}
        truncate_at = CHANGES // 2
        with connected(self.address) as cursor:
            while self.done < CHANGES:
                for at in [at for at in marks if at <= self.done]:
                    cursor.execute(marks.pop(at))
                if truncate_at is not None and truncate_at <= self.done:
                    cursor.execute("TRUNCATE orders")
                    truncate_at = None
                cursor.execute("BEGIN")
                for _ in range(self.draw.randint(1, 4)):
                    self.draw.choice((*self.kinds, self._move))(cursor)
                cursor.execute("COMMIT" if self.draw.random() < 0.95 else "ROLLBACK")

    def _some(self) -> tuple[int, int]:
        first = self.draw.randrange(KEYS)
        return first, first + self.draw.randint(1, 200)

    def _run(self, cursor, statement: str) -> None:
        first, last = self._some()
        cursor.execute(statement.format(first=first, last=last, n=self.draw.randint(0, 99)))
        self.done += cursor.rowcount

    def _insert(self, cursor) -> None:
        self._run(
            cursor,
            f"INSERT INTO orders (id, n, status, body) SELECT i, {{n}}, 'new', {TOAST} "
            "FROM generate_series({first}, {last}) i ON CONFLICT (id) DO UPDATE SET n = {n}",
        )

    def _update(self, cursor) -> None:
        self._run(
            cursor,
            "UPDATE orders SET n = n + {n}, status = 'paid' WHERE id BETWEEN {first} AND {last}",
        )

    def _delete(self, cursor) -> None:
        self._run(cursor, "DELETE FROM orders WHERE id BETWEEN {first} AND {last} AND id % 3 = 0")

    def _move(self, cursor) -> None:
        """Change keys, to numbers that no other row has."""
        self._run(
            cursor,
            "UPDATE orders SET id = nextval('moved') WHERE id BETWEEN {first} AND {last} "
            "AND id % 7 = 0",
        )


@contextmanager
def upkeep(warehouse: str):
    """Compact and expire beside the block, over and over."""
    stop, rounds, errors = threading.Event(), [], []

    def work() -> None:
        with connect(warehouse) as lake:
            while not stop.is_set():
                try:
                    table = lake.table("shop.orders")
                    table.rewrite_data_files(options={"rewrite-all": "true"})
                    table.expire_snapshots(older_than=int(time.time() * 1000), retain_last=2)
                    rounds.append(True)
                except CommitConflictError:  # the feed goes first
                    pass
                except BaseException as error:  # noqa: BLE001 - shown at the end
                    errors.append(error)
                    return
                stop.wait(0.5)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield rounds
    finally:
        stop.set()
        worker.join()
    assert not errors, errors


@pytest.mark.timeout(1_800)
def test_many_changes_lead_to_the_same_rows(tmp_path):
    draw = random.Random(5)
    warehouse = str(tmp_path / "lake")
    with (
        source_server() as server,
        source_database(server) as address,
        connected(address) as cursor,
        connect(warehouse) as lake,
    ):
        cursor.execute("CREATE TABLE orders (id bigint PRIMARY KEY, n int, status text, body text)")
        cursor.execute("CREATE SEQUENCE moved START 1000000")
        cursor.execute(
            f"INSERT INTO orders SELECT i, 0, 'old', {TOAST} FROM generate_series(1, 500) i"
        )
        run(lake, address, "orders")
        writer = Writer(address, seed=11)
        writing = threading.Thread(target=writer.write)
        writing.start()
        changes = 0
        with upkeep(warehouse) as rounds:
            while writing.is_alive():
                changes += followed(lake, address, draw)
            writing.join()
            changes += run(lake, address, "orders").changes
        assert writer.done >= CHANGES
        assert changes > CHANGES / 2  # what was rolled back is not in the log
        assert rounds
        assert rows_here(lake, "orders") == rows_there(cursor, "orders")


def followed(lake, address: str, draw: random.Random) -> int:
    """Follow the log to its end, or be cut off in the middle of a commit."""
    phase = draw.choice((Phase.WRITTEN, Phase.PRODUCED, Phase.SWAPPED))
    left = [draw.randint(1, 6)]

    def cut_off(_) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    counted = []
    try:
        with at_phase(phase, cut_off):
            run(
                lake,
                address,
                "orders",
                pace=Pace(rows=draw.choice((100, 1_000, 20_000)), seconds=0.5),
                report=lambda progress: counted.append(progress.changes),
            )
    except KeyboardInterrupt:
        pass
    return max(counted, default=0)
