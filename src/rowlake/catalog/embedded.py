"""The catalog of an embedded lake: a SQLite file inside the warehouse.

Any number of processes may use it. Its layout is PyIceberg's, so `load_catalog("rowlake",
uri="sqlite:///…/catalog.db", warehouse=…)` opens the same tables.
"""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "catalog.db"
# How long a writer waits for others before it gives up; each holds the lock for milliseconds.
PATIENCE_SECONDS = 60
_STARTS = 20


class EmbeddedCatalog(SqlCatalog):
    """A SqlCatalog on a SQLite file at any path, patient with other processes."""

    def __init__(self, name: str, path: Path, **properties: str) -> None:
        MetastoreCatalog.__init__(self, name, uri=f"sqlite:///{path}", **properties)

        # A creator instead of a URI: a path may hold characters that a URI may not. No pool:
        # connections are cheap here, and none may cross a fork.
        def connect() -> sqlite3.Connection:
            return sqlite3.connect(path, timeout=PATIENCE_SECONDS, check_same_thread=False)

        self.engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
        self._start(_STARTS)

    def _start(self, attempts: int) -> None:
        # Processes that open a fresh warehouse at once all try to make the tables.
        try:
            self._init_catalog()
        except OperationalError:
            if attempts <= 1:
                raise
            time.sleep(0.1)
            self._start(attempts - 1)


def make_patient(engine: Engine) -> None:
    """Let connections to a SQLite file wait for others instead of failing at once."""

    def wait(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA busy_timeout = {PATIENCE_SECONDS * 1000}")

    is_file = engine.url.database not in {None, "", ":memory:"}
    if engine.dialect.name == "sqlite" and is_file:
        event.listen(engine, "connect", wait)
        engine.dispose()
