"""The log of a PostgreSQL database as whole transactions, read from a replication slot.

Comes in: a cursor of psycopg2 that replicates. Goes out: `Transaction`s in order of their commits.
What is not confirmed is sent again to the next reader of the slot.
"""

from __future__ import annotations

import select
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.stream.cdc.pgoutput import Begin, Commit, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.stream.cdc.pgoutput import TableEvent

_WAIT_SECONDS = 0.2
# PostgreSQL drops a reader that says nothing for wal_sender_timeout (60 seconds by default).
_ALIVE_SECONDS = 5.0


@dataclass
class Transaction:
    """The changes of one transaction, whole; the log up to `end_lsn` is done with it."""

    end_lsn: int
    events: list[TableEvent] = field(default_factory=list)


class Log:
    """Transactions of the log, in order of their commits."""

    def __init__(self, cursor: Any) -> None:
        self._cursor, self._reader = cursor, Reader()
        self._open: Transaction | None = None

    @property
    def seen_lsn(self) -> int:
        """How far the server has sent the log."""
        return int(self._cursor.wal_end or 0)

    @property
    def is_inside(self) -> bool:
        """True between the begin and the commit of a transaction."""
        return self._open is not None

    def next(self) -> Transaction | None:
        """Return the next transaction that is whole; None after a moment without one."""
        while True:
            message = self._cursor.read_message()
            if message is None:
                select.select([self._cursor], [], [], _WAIT_SECONDS)
                message = self._cursor.read_message()
                if message is None:
                    return None
            done = self._take(self._reader.read(message.payload))
            if done is not None:
                return done

    def _take(self, read: Any) -> Transaction | None:
        if isinstance(read, list):
            if self._open is not None:
                self._open.events += read
        elif isinstance(read, Begin):
            self._open = Transaction(read.final_lsn)
        elif isinstance(read, Commit) and self._open is not None:
            done, self._open = self._open, None
            done.end_lsn = read.end_lsn
            return done
        return None

    def confirm(self, lsn: int) -> None:
        """Tell the server that the log up to a position is no longer needed."""
        self._cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, apply_lsn=lsn, reply=True)

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Tell the server now and then that this reader lives, while the block does other work."""
        done = threading.Event()

        def tell() -> None:
            # A connection that is gone is found by the next read.
            with suppress(self._cursor.connection.Error):
                while not done.wait(_ALIVE_SECONDS):
                    self.ask()

        teller = threading.Thread(target=tell, daemon=True, name="rowlake-cdc-alive")
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()

    def ask(self) -> None:
        """Ask the server how far the log is."""
        self._cursor.send_feedback(reply=True)
