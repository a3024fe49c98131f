"""The table that every cell of the matrix starts from: made once per kind, then restored.

A kind is a format version of Iceberg, or Delta.

Rows are (id, p, v, note), and `p` is the partition. Restoring a table puts back the files and the
catalog's pointer, which takes milliseconds, so thousands of cells are cheap.
"""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.lakes import make_lake

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.table import Table

    Row = tuple[int, int, int, str | None]

NAME = "shop.t"
BRANCH = "b"
MARK = "merge-on-read"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("p", pa.int32()),
        pa.field("v", pa.int32()),
        pa.field("note", pa.string()),
    ]
)
# Names that landings give to columns.
RENAMED = {"remark": "note"}
FUTURE_MS = 2**42
DELTA = "delta"
ICEBERG_KINDS = ("v2", "v3")
KINDS = (*ICEBERG_KINDS, DELTA)
PROPERTIES = {"commit.retry.min-wait-ms": "1"}
# Renamed columns need column mapping.
DELTA_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


def old(key: int) -> Row:
    return (key, int(key >= 10 and key < 20), key, f"n{key}")


def rows_in(rows: list[Row], names: tuple[str, ...] = ("id", "p", "v")) -> pa.Table:
    """Return rows as a source that has some of the columns."""
    columns = dict(zip(COLUMNS.names, zip(*rows, strict=True), strict=True))
    return pa.table({name: pa.array(columns[name], COLUMNS.field(name).type) for name in names})


START: list[Row] = [old(key) for key in (*range(8), *range(10, 18), 30)]
START += [(18, 1, 180, "new")]
BEFORE_LAST = [row for row in START if row[0] != 30]


@dataclass
class Scene:
    """A lake with the table of one format version, and what it takes to restore it."""

    lake: Lake
    folder: Path
    backup: Path
    rows: list[tuple[Any, ...]]

    @classmethod
    def made(cls, folder: Path, kind: str, lake: Lake | None = None) -> Scene:
        """Make the table, in a lake of its own or in one below the folder."""
        lake = lake or make_lake(folder / "lake")
        lake.create_namespace("shop")
        _fill(lake, kind)
        home = folder / "lake"
        place = Path(lake.table(NAME).location.removeprefix("file://"))
        shutil.copytree(place, folder / "backup")
        with sqlite3.connect(_database(home)) as database:
            rows = database.execute("SELECT * FROM iceberg_tables").fetchall()
        return cls(lake, place, folder / "backup", rows)

    def restored(self) -> Table:
        """Return the table as it was made."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.backup, self.folder)
        with sqlite3.connect(_database(self.backup.parent / "lake")) as database:
            database.execute("DELETE FROM iceberg_tables")
            for row in self.rows:  # none of Delta tables: their name stays that of the folder
                marks = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO iceberg_tables VALUES ({marks})", row)
        return self.lake.table(NAME)


def _database(warehouse: Path) -> Path:
    return next(path for path in warehouse.glob("*.db"))


def created(lake: Lake, kind: str) -> Table:
    """Create the table, without rows."""
    given: dict[str, Any] = {"properties": {**PROPERTIES, "format-version": kind.lstrip("v")}}
    if kind == DELTA:
        given = {"properties": {**PROPERTIES, **DELTA_PROPERTIES}, "format": DELTA}
    return lake.create_table(NAME, COLUMNS, partition_by=["p"], **given)


def _fill(lake: Lake, kind: str) -> None:
    """Make two partitions, with deletes of all kinds; version 3 has some of version 2 left."""
    table = created(lake, DELTA if kind == DELTA else "v2")
    table.append(rows_in([old(key) for key in range(20)], tuple(COLUMNS.names)))
    table.delete("id = 9", mode=MARK)
    table.delete("id = 8", mode=MARK)
    if kind == "v3":
        table.set_properties({"format-version": "3"})
    table.delete("id = 19", mode=MARK)
    new = rows_in([(18, 1, 180, "new")], tuple(COLUMNS.names))
    blind = {"deletes": "equality"} if table.handle.can.equality_deletes else {}
    table.upsert(new, ["id", "p"], **blind)
    table.append(rows_in([old(30)], tuple(COLUMNS.names)))
    if kind != DELTA:
        table.create_branch(BRANCH)


def held(table: Table, branch: str = "main") -> list[Row]:
    """Return the rows of a branch, by the names that the columns had at first."""
    found = table.arrow(ref=None if branch == "main" else branch)
    names = [RENAMED.get(name, name) for name in found.column_names]
    rows = found.rename_columns(names).select(COLUMNS.names).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)
