"""The statements of the matrix: how each is run without Spark, and what it does to a list of rows.

UPDATE and MERGE are those of `tests.parts.evaluated`: rows found by position, and matched by key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.model.change import Isolation
from rowlake.model.merge import Action, When
from rowlake.model.predicate import Leaf, Op
from rowlake.rowlevel.task import TaskClause
from rowlake.verbs.alter import change_schema
from rowlake.verbs.write import WriteOptions
from tests.matrix.tables import COLUMNS, FUTURE_MS, ICEBERG_KINDS, KINDS, rows_in
from tests.parts.evaluated import UPDATE, change_values, merge_by_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.model.predicate import Predicate
    from rowlake.table import Table
    from tests.matrix.tables import Row

ADDED = 100
REWRITE_ALL = {"rewrite-all": "true"}


@dataclass(frozen=True)
class How:
    """The options of a statement; None: what the table says."""

    mode: str | None = None
    isolation: str | None = None
    branch: str = "main"

    @property
    def given(self) -> dict[str, Any]:
        """As arguments of `Table`'s methods."""
        given = {"mode": self.mode, "isolation": self.isolation, "branch": self.branch}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def options(self) -> WriteOptions:
        """As options of the room `rowlevel`."""
        isolation = Isolation(self.isolation) if self.isolation else None
        return WriteOptions(branch=self.branch, mode=self.mode, isolation=isolation)


@dataclass(frozen=True)
class Statement:
    """One kind: `run(table, key, how)`, and what that makes of rows, `effect(rows, key)`.

    `axes` says which options it has: `m`ode, `i`solation. `key` is the row that it is about.
    `kinds`: of tables that have it.
    """

    name: str
    run: Callable[[Table, int, How], Any]
    effect: Callable[[list[Row], int], list[Row]]
    axes: str = ""
    key: int = 3
    kinds: tuple[str, ...] = KINDS


def equals(column: str, value: int) -> Predicate:
    return Leaf((column,), Op.EQ, (value,))


def partition_of(key: int) -> int:
    return int(10 <= key < 20)


def new_key(key: int) -> int:
    """Return the key that a statement about a key adds: of the same partition."""
    return key + 200


# ---------------------------------------------------------------------- rows in, rows out


def append(table: Table, key: int, how: How) -> Any:
    return table.append(rows_in([_new(key)]), branch=how.branch)


def overwrite_where(table: Table, key: int, how: How) -> Any:
    where = equals("p", partition_of(key))
    given = {name: value for name, value in how.given.items() if name != "mode"}
    return table.overwrite(rows_in([_new(key)]), where, **given)


def overwrite_dynamic(table: Table, key: int, how: How) -> Any:
    given = {name: value for name, value in how.given.items() if name != "mode"}
    return table.overwrite(rows_in([_new(key)]), dynamic=True, **given)


def delete(table: Table, key: int, how: How) -> Any:
    return table.delete(equals("id", key), **how.given)


def upsert(table: Table, key: int, how: How) -> Any:
    return table.upsert(rows_in(pair(key)), ["id"], **how.given)


def blind_upsert(table: Table, key: int, how: How) -> Any:
    rows = rows_in(pair(key), tuple(COLUMNS.names))
    return table.upsert(rows, ["id"], deletes="equality", branch=how.branch)


def update(table: Table, key: int, how: How) -> Any:
    """Run `UPDATE SET v = v + 100 WHERE id = key`."""
    return change_values(table, "update", [key], lambda _, v: v + ADDED, how.options)


def merge(table: Table, key: int, how: How) -> Any:
    """Run a MERGE that updates one row and inserts another, by key."""
    names = ("id", "p", "v")
    insert = TaskClause(When.NOT_MATCHED, Action.INSERT, values={name: name for name in names})
    return merge_by_id(table, rows_in(pair(key)), (UPDATE, insert), how.options)


def _new(key: int) -> Row:
    return (new_key(key), partition_of(key), 1000 + key, None)


def pair(key: int) -> list[Row]:
    return [(key, partition_of(key), 500 + key, "new"), (*_new(key)[:3], "new")]


# ---------------------------------------------------------------------- what they do to rows


def appended(rows: list[Row], key: int) -> list[Row]:
    return [*rows, _new(key)]


def overwritten(rows: list[Row], key: int) -> list[Row]:
    return [*(row for row in rows if row[1] != partition_of(key)), _new(key)]


def deleted(rows: list[Row], key: int) -> list[Row]:
    return [row for row in rows if row[0] != key]


def updated(rows: list[Row], key: int) -> list[Row]:
    return [(*row[:2], row[2] + ADDED, row[3]) if row[0] == key else row for row in rows]


def upserted(rows: list[Row], key: int) -> list[Row]:
    """Return what a MERGE and an upsert leave: `note` is not in their source."""
    given = {row[0]: row for row in pair(key)}
    there = {row[0] for row in rows}
    changed = [(*row[:2], given[row[0]][2], row[3]) if row[0] in given else row for row in rows]
    return changed + [(*row[:3], None) for name, row in given.items() if name not in there]


def blindly_upserted(rows: list[Row], key: int) -> list[Row]:
    given = pair(key)
    return [row for row in rows if row[0] not in {one[0] for one in given}] + given


def unchanged(rows: list[Row], _: int) -> list[Row]:
    return rows


# ---------------------------------------------------------------------- upkeep


def rewrite_data_files(table: Table, _: int, how: How) -> Any:
    return table.rewrite_data_files(options=REWRITE_ALL, branch=how.branch)


def rewrite_position_delete_files(table: Table, _: int, how: How) -> Any:
    return table.rewrite_position_delete_files(options=REWRITE_ALL, branch=how.branch)


def convert_equality_deletes(table: Table, _: int, how: How) -> Any:
    return table.convert_equality_deletes(branch=how.branch)


def rewrite_manifests(table: Table, _: int, how: How) -> Any:
    return table.rewrite_manifests(branch=how.branch)


def expire(table: Table, _: int, how: How) -> Any:
    del how
    return table.expire_snapshots(older_than=FUTURE_MS, retain_last=1)


def add_column(table: Table, _: int, how: How) -> Any:
    del how
    return change_schema(table.handle, lambda builder: builder.add_column("more", "string"))


STATEMENTS = {
    one.name: one
    for one in (
        Statement("append", append, appended),
        Statement("overwrite where", overwrite_where, overwritten, "i", 13),
        Statement("dynamic overwrite", overwrite_dynamic, overwritten, "", 13),
        Statement("DELETE", delete, deleted, "mi"),
        Statement("UPDATE", update, updated, "mi"),
        Statement("MERGE", merge, upserted, "mi"),
        Statement("upsert", upsert, upserted, "mi"),
        Statement("blind upsert", blind_upsert, blindly_upserted, kinds=ICEBERG_KINDS),
        Statement("rewrite_data_files", rewrite_data_files, unchanged),
        Statement(
            "rewrite_position_delete_files",
            rewrite_position_delete_files,
            unchanged,
            kinds=ICEBERG_KINDS,
        ),
        Statement(
            "convert_equality_deletes", convert_equality_deletes, unchanged, kinds=ICEBERG_KINDS
        ),
        Statement("rewrite_manifests", rewrite_manifests, unchanged, kinds=ICEBERG_KINDS),
        Statement("ALTER TABLE", add_column, unchanged),
        Statement("expire_snapshots", expire, unchanged, kinds=ICEBERG_KINDS),
    )
}
