"""How often a statement asks the catalog for a table, and what it asks before it commits."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rowlake.catalog.backend import backend_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    import rowlake

TARGET, SOURCE, OTHER = "db.t", "db.s", "db.q"
JOINED = (
    f"MERGE INTO {TARGET} t USING (SELECT * FROM {SOURCE} WHERE id IN (SELECT id FROM {OTHER})) s "
    "ON t.id = s.id AND t.qty < s.qty + 100 WHEN MATCHED THEN UPDATE SET qty = t.qty + s.qty "
    "WHEN NOT MATCHED THEN INSERT *"
)
# Statements, with the tables that each names.
STATEMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "select": (f"SELECT a.id FROM {TARGET} a JOIN {TARGET} b ON a.id = b.id", (TARGET,)),
    "select two": (f"SELECT * FROM {TARGET} WHERE id IN (SELECT id FROM {OTHER})", (TARGET, OTHER)),
    "insert": (f"INSERT INTO {TARGET} VALUES (7, 70)", (TARGET,)),
    "insert of itself": (f"INSERT INTO {TARGET} SELECT id + 10, qty FROM {TARGET}", (TARGET,)),
    "overwrite": (f"INSERT OVERWRITE {TARGET} SELECT * FROM {SOURCE}", (TARGET, SOURCE)),
    "delete": (f"DELETE FROM {TARGET} WHERE id = 1", (TARGET,)),
    "delete by Spark": (
        f"DELETE FROM {TARGET} WHERE id IN (SELECT id FROM {OTHER})",
        (TARGET, OTHER),
    ),
    "delete all": (f"DELETE FROM {TARGET}", (TARGET,)),
    "update": (f"UPDATE {TARGET} SET qty = 0 WHERE id = 1", (TARGET,)),
    "update by Spark": (
        f"UPDATE {TARGET} SET qty = qty + 1 WHERE id IN (SELECT id FROM {OTHER})",
        (TARGET, OTHER),
    ),
    "merge": (
        f"MERGE INTO {TARGET} t USING {SOURCE} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        (TARGET, SOURCE),
    ),
    "merge of itself": (
        f"MERGE INTO {TARGET} t USING {TARGET} s ON t.id = s.id WHEN MATCHED THEN DELETE",
        (TARGET,),
    ),
    "merge by a join": (JOINED, (TARGET, SOURCE, OTHER)),
}
# Statements about one table. Not VACUUM: it looks again before it deletes files.
ABOUT_ONE = {
    "add column": f"ALTER TABLE {TARGET} ADD COLUMN note string",
    "drop column": f"ALTER TABLE {TARGET} DROP COLUMN qty",
    "partition": f"ALTER TABLE {TARGET} ADD PARTITION FIELD bucket(4, id)",
    "properties": f"ALTER TABLE {TARGET} SET TBLPROPERTIES ('a' = 'b')",
    "branch": f"ALTER TABLE {TARGET} CREATE BRANCH audit",
    "write order": f"ALTER TABLE {TARGET} WRITE ORDERED BY id",
    "describe": f"DESCRIBE TABLE EXTENDED {TARGET}",
    "describe history": f"DESCRIBE HISTORY {TARGET}",
    "show create": f"SHOW CREATE TABLE {TARGET}",
    "show properties": f"SHOW TBLPROPERTIES {TARGET}",
    "show columns": f"SHOW COLUMNS IN {TARGET}",
    "create like": f"CREATE TABLE db.like_t LIKE {TARGET}",
    "truncate": f"TRUNCATE TABLE {TARGET}",
    "drop": f"DROP TABLE {TARGET}",
    "optimize": f"OPTIMIZE {TARGET}",
    "explain delete": f"EXPLAIN DELETE FROM {TARGET} WHERE id = 1",
    "explain update": f"EXPLAIN UPDATE {TARGET} SET qty = qty + 1 WHERE id = 1",
    "explain merge": f"EXPLAIN MERGE INTO {TARGET} t USING {TARGET} s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE",
    "call ancestors": f"CALL system.ancestors_of('{TARGET}')",
    "call rollback": f"CALL system.rollback_to_timestamp('{TARGET}', TIMESTAMP '2200-01-01')",
    "call expire": f"CALL system.expire_snapshots('{TARGET}')",
    "call rewrite": f"CALL system.rewrite_data_files('{TARGET}')",
    "call manifests": f"CALL system.rewrite_manifests('{TARGET}')",
    "call health": f"CALL system.health('{TARGET}')",
    "call optimize": f"CALL system.optimize('{TARGET}')",
}


def fill(lake: rowlake.Lake) -> None:
    """Create the tables that the statements name, three rows in each."""
    lake.create_namespace("db", if_not_exists=True)
    for name in (TARGET, SOURCE, OTHER):
        lake.sql(f"CREATE TABLE {name} (id bigint, qty int)")
        lake.sql(f"INSERT INTO {name} VALUES (1, 10), (2, 20), (3, 30)")


@contextmanager
def loads_before_commit(lake: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Give the names of tables that are loaded until something is committed, once for each time."""
    kind = type(backend_of(lake.catalog))
    load, commit = kind.load, kind.commit
    found: list[str] = []
    committed: list[str] = []

    def counted(self: Any, identifier: Any, known: Any) -> Any:
        if not committed:
            found.append(".".join(identifier))
        return load(self, identifier, known)

    def noted(self: Any, handle: Any, *given: Any) -> Any:
        committed.append(handle.name)
        return commit(self, handle, *given)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "load", counted)
        patched.setattr(kind, "commit", noted)
        yield found
