"""What writers and a compaction do beside each other; other processes import this.

Each writer has keys of its own, in a partition of its own: a writer that rewrites files is in
nobody's way but the compaction's, which replaces all files at once.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from rowlake.table import Table

COUNT = 10
BLOCK, NEW = 100_000, 10_000
PAUSE_SECONDS = 0.2
MOST_SECONDS = 120
COMPACTED = "compacted"
LAYOUT = [f"truncate({BLOCK}, id)"]
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])


def rows(ids: Any, text: str) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"{text} {one}" for one in ids]}, SCHEMA)


def upsert(table: Table, key: int) -> int:
    """Change one row and add one."""
    return table.upsert(rows([key, key + NEW], "upserted"), ["id"]).retries


def delete(table: Table, key: int) -> int:
    """Delete one row."""
    result = table.delete(f"id = {key}")
    assert result.rows_deleted == 1
    return result.retries


def merge(table: Table, key: int) -> int:
    """Change one row and add one, by a MERGE."""
    from rowlake.model.merge import Action, When
    from rowlake.rowlevel.change import change_rows
    from rowlake.rowlevel.operation import RowChange
    from rowlake.rowlevel.staging import Shape, staging
    from rowlake.rowlevel.task import Matching, TaskClause
    from rowlake.verbs.write import WriteOptions

    clauses = (
        TaskClause(When.MATCHED, Action.UPDATE, values={"v": "v"}),
        TaskClause(When.NOT_MATCHED, Action.INSERT, values={"id": "id", "v": "v"}),
    )
    handle, engine = table.handle, table._engine
    given = rows([key, key + NEW], "merged").to_batches()
    with staging(engine, handle.view()) as place:
        staged = place.stage(given, Shape(list(SCHEMA), ("id",)))
        change = RowChange("merge", clauses, Matching((("id", "id"),), (False,)), staged=staged)
        _, result = change_rows(handle, engine, change, WriteOptions())
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    return result.retries


WRITERS = (upsert, delete, merge)


def keys_of(number: int) -> range:
    """Return the keys of a writer; those that it adds come `NEW` after them."""
    return range(number * BLOCK, number * BLOCK + COUNT)


def expected() -> dict[int, str]:
    """Return what all writers leave."""
    upserted, _, merged = map(keys_of, range(3))
    found = {one: f"upserted {one}" for key in upserted for one in (key, key + NEW)}
    return found | {one: f"merged {one}" for key in merged for one in (key, key + NEW)}


def work(number: int, start: Barrier, warehouse: str, table: Any, folder: str) -> int:
    """Write as the writer of this number; the last one compacts until all others have finished.

    Returns the retries of a writer, the compactions that landed of the other.
    """
    from rowlake import connect

    with connect(warehouse) as lake:
        opened = lake.table(table)
        if number == len(WRITERS):
            start.wait()
            return _compacted(opened, folder)
        start.wait()
        try:
            return sum(_write(number, opened, key, folder) for key in keys_of(number))
        finally:
            Path(folder, str(number)).touch()


def _write(number: int, table: Table, key: int, folder: str) -> int:
    """Write one key; the last one only when a compaction has landed since the writers began."""
    deadline = time.monotonic() + MOST_SECONDS
    while key == keys_of(number)[-1] and not Path(folder, COMPACTED).exists():
        assert time.monotonic() < deadline, "no compaction lands beside the writers"
        time.sleep(PAUSE_SECONDS / 10)
    return WRITERS[number](table, key)


def _compacted(table: Table, folder: str) -> int:
    """Compact until all writers have finished, and once more; a compaction that loses says so."""
    from rowlake.errors import CommitConflictError
    from tests.parts.compacting import ALL, compact

    landed = 0
    while len(list(Path(folder).glob("[0-9]*"))) < len(WRITERS):
        with suppress(CommitConflictError):
            landed += bool(table.rewrite_data_files(options=ALL).snapshot_ids)
        if landed:
            Path(folder, COMPACTED).touch()
        time.sleep(PAUSE_SECONDS)
    compact(table)
    return landed
