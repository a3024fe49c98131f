"""The table that every cell of the matrix starts from: made once per format version, then restored.

Rows are (id, p, v, note), and `p` is the partition. Restoring a table puts back the files and the
catalog's pointer, which takes milliseconds, so thousands of cells are cheap.
"""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.lakes import make_lake

if TYPE_CHECKING:
    from pathlib import Path

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
PROPERTIES = {"commit.retry.min-wait-ms": "1", "format-version": "2"}


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
    def made(cls, folder: Path, version: int, lake: Lake | None = None) -> Scene:
        """Make the table, in a lake of its own or in one below the folder."""
        lake = lake or make_lake(folder / "lake")
        lake.create_namespace("shop")
        _fill(lake, version)
        home = folder / "lake"
        (place,) = {path.parent.parent for path in home.rglob("*.metadata.json")}
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
            marks = ", ".join("?" * len(self.rows[0]))
            database.executemany(f"INSERT INTO iceberg_tables VALUES ({marks})", self.rows)
        return self.lake.table(NAME)


def _database(warehouse: Path) -> Path:
    return next(path for path in warehouse.glob("*.db"))


def _fill(lake: Lake, version: int) -> None:
    """Make two partitions, with deletes of all kinds; version 3 has some of version 2 left."""
    table = lake.create_table(NAME, COLUMNS, partition_by=["p"], properties=PROPERTIES)
    table.append(rows_in([old(key) for key in range(20)], tuple(COLUMNS.names)))
    table.delete("id = 9", mode=MARK)
    table.delete("id = 8", mode=MARK)
    if version == 3:
        table.set_properties({"format-version": "3"})
    table.delete("id = 19", mode=MARK)
    new = rows_in([(18, 1, 180, "new")], tuple(COLUMNS.names))
    table.upsert(new, ["id", "p"], deletes="equality")
    table.append(rows_in([old(30)], tuple(COLUMNS.names)))
    table.create_branch(BRANCH)


def held(table: Table, branch: str = "main") -> list[Row]:
    """Return the rows of a branch, by the names that the columns had at first."""
    found = table.arrow(ref=None if branch == "main" else branch)
    names = [RENAMED.get(name, name) for name in found.column_names]
    rows = found.rename_columns(names).select(COLUMNS.names).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)
