"""A PostgreSQL whose log is read, and the rows of a table there and here."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count

import psycopg2

from rowlake.cli.cdc import follow
from tests.parts.postgres import postgres

SETTINGS = ("wal_level=logical", "max_replication_slots=20", "max_wal_senders=20")
_NUMBERS = count()


@contextmanager
def source_server(*settings: str):
    """Start a server for logical replication; yield its address."""
    with postgres(*SETTINGS, *settings) as address:
        yield address.replace("postgresql+psycopg2://", "postgresql://")


@contextmanager
def source_database(server: str):
    """Create a database; drop the slots that are left of it."""
    name = f"source{next(_NUMBERS)}"
    with connected(server) as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    yield server.rsplit("/", 1)[0] + f"/{name}"
    with connected(server) as cursor:
        cursor.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE database = %s",
            [name],
        )


@contextmanager
def connected(address):
    connection = psycopg2.connect(address)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def run(lake, database, *names, **more):
    wanted = {
        "source_tables": [f"public.{name}" for name in names],
        "tables": [f"shop.{name}" for name in names],
        "publication": "p",
        "namespace": None,
        "slot": f"s_{database.rsplit('/', 1)[1]}",
        "once": True,
    }
    return follow(lake, database, **{**wanted, **more})


def rows_there(cursor, name, columns="*") -> list[tuple]:
    cursor.execute(f"SELECT {columns} FROM {name} ORDER BY 1")
    return [tuple(map(plain, row)) for row in cursor.fetchall()]


def rows_here(lake, name) -> list[tuple]:
    found = lake.table(f"shop.{name}").arrow()
    rows = [tuple(map(plain, row.values())) for row in found.to_pylist()]
    assert len({row[0] for row in rows}) == len(rows)
    return sorted(rows)


def plain(value):
    return bytes(value) if isinstance(value, memoryview) else value
