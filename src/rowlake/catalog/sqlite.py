"""PyIceberg's SqlCatalog on SQLite files, patient with other processes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from rowlake.catalog.embedded import PATIENCE_SECONDS, open_file

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

_STARTS = 20


class SqliteCatalog(SqlCatalog):
    """A SqlCatalog on a SQLite file at any path; makes its tables where there are none."""

    def __init__(self, name: str, path: Path, **properties: str) -> None:
        MetastoreCatalog.__init__(self, name, **properties)

        # A creator instead of a URI: a path may hold characters that a URI may not. No pool:
        # connections are cheap here, and none may cross a fork.
        def connect() -> sqlite3.Connection:
            return open_file(path)

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
