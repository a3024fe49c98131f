"""A PostgreSQL database as a source of changes: publication, slot, snapshot, log.

Comes in: an address and tables. Goes out: rows of a snapshot that is consistent with a position in
the log, and whole transactions after a position. A publication says which tables are in the log, a
replication slot keeps what was not confirmed yet; both are made at the first run, and last.
A table's snapshot is exported by a temporary slot of its own, so that tables can join later.
Needs psycopg2 (`pip install rowlake[postgres]`), `wal_level = logical` and a role with REPLICATION.
"""

from __future__ import annotations

import importlib
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowlake.errors import EngineError, InvalidStatementError, StorageError
from rowlake.secrets import without_secrets
from rowlake.stream.cdc.postgres_log import Log
from rowlake.stream.cdc.postgres_types import field_of_oid
from rowlake.stream.cdc.wal2json import lsn_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

_ROWS_AT_ONCE = 10_000
# How long another reader may hold the slot: the server notices late that one was killed.
SLOT_SECONDS, SLOT_PAUSE_SECONDS = 60.0, 0.2
_ROW_FILTERS_SINCE = 150_000  # the version of the server, as libpq counts

# Generated columns are not in the log, so a table that follows does not have them either.
_COLUMNS = """
SELECT a.attname, a.atttypid, a.atttypmod,
       coalesce(a.attnum = ANY(i.indkey::int2[]), false) AS is_key
FROM pg_attribute a
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""

# Tables as readers see them, and as they were added: these differ for partitioned tables.
_PUBLISHED = """
SELECT format('%%I.%%I', schemaname, tablename) FROM pg_publication_tables WHERE pubname = %s
UNION
SELECT format('%%I.%%I', n.nspname, c.relname)
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %s
"""


@dataclass(frozen=True)
class SourceTable:
    """A table of the database: its columns, and those of its primary key.

    `quoted` is the name as SQL takes it; `row_filter` is the publication's condition on rows.
    """

    namespace: str
    table: str
    quoted: str
    columns: tuple[pa.Field, ...]
    keys: tuple[str, ...]
    row_filter: str | None = None

    @property
    def name(self) -> str:
        """The name with its schema, as the log has it."""
        return f"{self.namespace}.{self.table}"


def _psycopg2() -> Any:
    try:
        importlib.import_module("psycopg2.extras")
        return importlib.import_module("psycopg2")
    except ImportError as error:
        raise EngineError(
            "Reading from PostgreSQL needs psycopg2: pip install 'rowlake[postgres]'."
        ) from error


class Database:
    """One database; connections are opened as they are needed."""

    def __init__(self, address: str, *, publication: str, slot: str) -> None:
        self._address, self.publication, self.slot = address, publication, slot

    def __repr__(self) -> str:
        return f"Database({without_secrets(self._address)})"

    @contextmanager
    def connected(self, *, replication: bool = False) -> Iterator[Any]:
        """Give a connection, which is closed at the end."""
        psycopg2 = _psycopg2()
        kind = psycopg2.extras.LogicalReplicationConnection if replication else None
        try:
            connection = psycopg2.connect(self._address, connection_factory=kind)
        except psycopg2.Error as error:
            text = without_secrets(str(error)).strip()
            raise StorageError(without_secrets(self._address), text) from None
        try:
            yield connection
        finally:
            connection.close()

    def prepare(self, wanted: Sequence[str]) -> list[SourceTable]:
        """Create what is missing of publication and slot; return the tables to follow.

        Without names those of the publication are followed.
        """
        with self.connected() as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                _validate_level(cursor)
                names = list(wanted) or self._published(cursor)
                tables = [self._table(cursor, name) for name in names]
                self._publish(cursor, tables)
                self._create_slot(cursor)
                return [self._as_published(cursor, table) for table in tables]

    def _published(self, cursor: Any) -> list[str]:
        cursor.execute(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) "
            "FROM pg_publication_tables WHERE pubname = %s ORDER BY 1",
            [self.publication],
        )
        found = [name for (name,) in cursor.fetchall()]
        if not found:
            raise InvalidStatementError(
                f"There is no publication {self.publication} with tables. Name tables to follow "
                "(--source-table), or create it: CREATE PUBLICATION … FOR TABLE …."
            )
        return found

    def _table(self, cursor: Any, name: str) -> SourceTable:
        psycopg2 = _psycopg2()
        try:
            cursor.execute(
                "SELECT n.nspname, c.relname, "
                "format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN "
                "pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s::regclass",
                [name],
            )
            namespace, table, quoted = cursor.fetchone()
            cursor.execute(_COLUMNS, [name])
        except psycopg2.Error as error:
            raise InvalidStatementError(f"Cannot follow {name}: {str(error).strip()}") from None
        rows = cursor.fetchall()
        columns = tuple(field_of_oid(column, oid, modifier) for column, oid, modifier, _ in rows)
        keys = tuple(column for column, _, _, key in rows if key)
        return SourceTable(namespace, table, quoted, columns, keys)

    def _as_published(self, cursor: Any, table: SourceTable) -> SourceTable:
        """Return a table with the columns and the condition that the publication has for it."""
        if cursor.connection.server_version < _ROW_FILTERS_SINCE:
            return table
        cursor.execute(
            "SELECT attnames::text[], rowfilter FROM pg_publication_tables "
            "WHERE pubname = %s AND format('%%I.%%I', schemaname, tablename) = %s",
            [self.publication, table.quoted],
        )
        found = cursor.fetchone()
        if found is None:
            raise InvalidStatementError(
                f"Cannot follow {table.name}: publication {self.publication} has its partitions, "
                "not the table itself. Follow them, or create the publication WITH "
                "(publish_via_partition_root = true)."
            )
        names, condition = found
        columns = tuple(one for one in table.columns if one.name in names)
        keys = tuple(key for key in table.keys if key in names)
        return replace(table, columns=columns, keys=keys, row_filter=condition)

    def _publish(self, cursor: Any, tables: Sequence[SourceTable]) -> None:
        cursor.execute(
            "SELECT puballtables FROM pg_publication WHERE pubname = %s", [self.publication]
        )
        found = cursor.fetchone()
        if found is None:
            listed = ", ".join(table.quoted for table in tables)
            cursor.execute(
                f"CREATE PUBLICATION {_quote(self.publication)} FOR TABLE {listed} "
                "WITH (publish_via_partition_root = true)"
            )
            return
        if found[0]:
            return
        cursor.execute(_PUBLISHED, [self.publication, self.publication])
        present = {quoted for (quoted,) in cursor.fetchall()}
        missing = [table.quoted for table in tables if table.quoted not in present]
        if missing:
            added = ", ".join(missing)
            cursor.execute(f"ALTER PUBLICATION {_quote(self.publication)} ADD TABLE {added}")

    def _create_slot(self, cursor: Any) -> None:
        cursor.execute("SELECT plugin FROM pg_replication_slots WHERE slot_name = %s", [self.slot])
        found = cursor.fetchone()
        if found is None:
            cursor.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [self.slot])
        elif found[0] != "pgoutput":
            raise InvalidStatementError(
                f"Replication slot {self.slot} has the plugin {found[0]}; pgoutput is needed. "
                "Choose another slot, or drop it: SELECT pg_drop_replication_slot(…)."
            )

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Give a snapshot of the database, consistent with a position in the log."""
        with self.connected(replication=True) as exporting, exporting.cursor() as cursor:
            name = f"{self.slot[:40]}_{time.time_ns()}"
            cursor.execute(
                f'CREATE_REPLICATION_SLOT "{name}" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT'
            )
            _, position, exported, _ = cursor.fetchone()
            with self.connected() as connection:
                connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
                with connection.cursor() as reading:
                    reading.execute("SET TRANSACTION SNAPSHOT %s", [exported])
                yield Snapshot(connection, lsn_of(position) or 0)

    def log_end(self) -> int:
        """Return where the log ends now."""
        with self.connected() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_wal_lsn()::text")
            return lsn_of(cursor.fetchone()[0]) or 0

    @contextmanager
    def log(self) -> Iterator[Log]:
        """Give the log after what was confirmed."""
        psycopg2 = _psycopg2()
        with self.connected(replication=True) as connection, connection.cursor() as cursor:
            self._start(cursor)
            try:
                yield Log(cursor)
            except psycopg2.Error as error:
                raise StorageError(
                    without_secrets(self._address),
                    f"the log of slot {self.slot} broke off: {str(error).strip()}",
                    advice="Run again: it goes on after the last commit.",
                ) from None

    def _start(self, cursor: Any) -> None:
        """Start reading the slot; a reader that was killed holds it for a moment longer."""
        psycopg2 = _psycopg2()
        options = {"proto_version": "1", "publication_names": _quote(self.publication)}
        last = time.monotonic() + SLOT_SECONDS
        while True:
            try:
                cursor.start_replication(slot_name=self.slot, decode=False, options=options)
                return
            except psycopg2.Error as error:
                is_held = isinstance(error, psycopg2.errors.ObjectInUse)
                if not is_held or time.monotonic() > last:
                    raise StorageError(
                        without_secrets(self._address),
                        f"replication slot {self.slot} cannot be read: {str(error).strip()}",
                        advice="Stop the other reader of the slot, or choose another slot.",
                    ) from None
            time.sleep(SLOT_PAUSE_SECONDS)


@dataclass
class Snapshot:
    """The database at one position of its log."""

    connection: Any
    lsn: int

    def rows(self, table: SourceTable) -> Iterator[list[dict[str, str | None]]]:
        """Yield the rows of a table in parts, values as PostgreSQL writes them."""
        names = [column.name for column in table.columns]
        listed = ", ".join(f"{_quote(name)}::text" for name in names)
        with self.connection.cursor(name="rowlake_snapshot") as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            where = f" WHERE {table.row_filter}" if table.row_filter else ""
            cursor.execute(f"SELECT {listed} FROM {table.quoted}{where}")
            while found := cursor.fetchmany(_ROWS_AT_ONCE):
                yield [dict(zip(names, row, strict=True)) for row in found]


def _validate_level(cursor: Any) -> None:
    cursor.execute("SHOW wal_level")
    (level,) = cursor.fetchone()
    if level != "logical":
        raise InvalidStatementError(
            f"The server has wal_level = {level}; changes can be read with wal_level = logical "
            "(ALTER SYSTEM SET wal_level = 'logical', then restart it)."
        )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
