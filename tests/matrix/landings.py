"""What lands while a statement of the matrix is stopped, and what it does to a list of rows."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.verbs.alter import change_schema
from tests.matrix import statements as sql
from tests.matrix.statements import How, partition_of
from tests.matrix.tables import (
    BEFORE_LAST,
    BRANCH,
    DELTA,
    ICEBERG_KINDS,
    KINDS,
    NAME,
    created,
    rows_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from tests.matrix.tables import Row

OTHER = 5


@dataclass(frozen=True)
class Landing:
    """One thing that others do: `run(lake, key, how)`, and what it makes of rows.

    `is_first`: nothing that came before it is left, so a statement that lands comes after it.
    `on_branch`: it is about the branch that the statement writes to.
    `kinds`: of tables that have it.
    """

    name: str
    run: Callable[[Lake, int, How], Any]
    effect: Callable[[list[Row], int], list[Row]] = sql.unchanged
    is_first: bool = False
    on_branch: bool = False
    kinds: tuple[str, ...] = KINDS


def by_statement(name: str, *, same: bool) -> Landing:
    """Return another writer's statement, on the same rows or on others of the same file."""
    found = sql.STATEMENTS[name]
    label = f"{name} of {'the same' if same else 'other'} rows"

    def run(lake: Lake, key: int, how: How) -> Any:
        return found.run(lake.table(NAME), key if same else OTHER, _plain(how))

    def effect(rows: list[Row], key: int) -> list[Row]:
        return found.effect(rows, key if same else OTHER)

    return Landing(label, run, effect, kinds=found.kinds)


def _plain(how: How) -> How:
    """Return the same mode at the table's isolation."""
    return How(mode=how.mode)


def upkeep(name: str) -> Landing:
    found = sql.STATEMENTS[name]

    def run(lake: Lake, key: int, how: How) -> Any:
        return found.run(lake.table(NAME), key, _plain(how))

    return Landing(name, run, kinds=found.kinds)


def append_same(lake: Lake, key: int, _: How) -> Any:
    return lake.table(NAME).append(rows_in([_same(key)]))


def _same(key: int) -> Row:
    return (key, partition_of(key), 2000 + key, None)


def altering(change: Callable[[Any], Any]) -> Callable[[Lake, int, How], Any]:
    return lambda lake, _key, _how: change_schema(lake.table(NAME).handle, change)


def widen(builder: Any) -> None:
    from pyiceberg.types import LongType

    builder.update_column("v", LongType())


def compact(lake: Lake) -> None:
    report = lake.table(NAME).rewrite_data_files(options=sql.REWRITE_ALL)
    assert report.rewritten_data_files_count


def compact_and_add(lake: Lake, key: int, how: How) -> None:
    compact(lake)
    add(lake, key, how)


def compact_and_expire(lake: Lake, key: int, how: How) -> None:
    compact(lake)
    sql.expire(lake.table(NAME), key, how)


def set_property(lake: Lake, _: int, how: How) -> None:
    del how
    lake.table(NAME).set_properties({"owner": "somebody"})


def roll_back(lake: Lake, _: int, how: How) -> None:
    del how
    table = lake.table(NAME)
    table.rollback_to(table.snapshots()[-2].snapshot_id)


def restore(lake: Lake, _: int, how: How) -> None:
    del how
    table = lake.table(NAME)
    table.restore(table.snapshots()[-2].snapshot_id)


def vacuum(lake: Lake, _: int, how: How) -> None:
    """Remove what is a week old, as is usual: there is nothing."""
    del how
    lake.table(NAME).vacuum(dry_run=False)


def before_last(rows: list[Row], key: int) -> list[Row]:
    del rows, key
    return list(BEFORE_LAST)


def drop_branch(lake: Lake, _: int, how: How) -> None:
    del how
    lake.table(NAME).drop_ref(BRANCH)


def recreate(lake: Lake, _: int, how: How) -> None:
    del how
    table = lake.table(NAME)
    kind = DELTA if not table.handle.can.snapshot_expiry else f"v{table.format_version}"
    lake.drop_table(NAME)
    if kind == DELTA:  # whose log would go on
        shutil.rmtree(table.location.removeprefix("file://"))
    table = created(lake, kind)
    table.append(rows_in([_same(1)]))


add = altering(lambda builder: builder.add_column("extra", "string"))
WRITERS = ("DELETE", "UPDATE", "MERGE", "upsert", "blind upsert")
LANDINGS = {
    one.name: one
    for one in (
        by_statement("append", same=False),
        Landing("append of the same key", append_same, lambda rows, key: [*rows, _same(key)]),
        *(by_statement(name, same=same) for name in WRITERS for same in (False, True)),
        by_statement("overwrite where", same=True),
        upkeep("rewrite_data_files"),
        Landing("rewrite_data_files + ADD COLUMN", compact_and_add),
        Landing("rewrite_data_files + expire_snapshots", compact_and_expire, kinds=ICEBERG_KINDS),
        upkeep("rewrite_position_delete_files"),
        upkeep("convert_equality_deletes"),
        upkeep("rewrite_manifests"),
        upkeep("expire_snapshots"),
        Landing("ADD COLUMN", add),
        Landing("RENAME COLUMN", altering(lambda b: b.rename_column("note", "remark"))),
        Landing("widen a column", altering(widen), kinds=ICEBERG_KINDS),
        Landing("reorder columns", altering(lambda builder: builder.move_first("note"))),
        Landing("SET TBLPROPERTIES", set_property),
        Landing("rollback", roll_back, before_last, is_first=True, kinds=ICEBERG_KINDS),
        Landing("RESTORE", restore, before_last, is_first=True, kinds=(DELTA,)),
        Landing("VACUUM", vacuum, kinds=(DELTA,)),
        Landing("DROP BRANCH", drop_branch, on_branch=True, kinds=ICEBERG_KINDS),
        Landing("DROP TABLE + CREATE TABLE", recreate, lambda _rows, _key: [_same(1)], True),
    )
}
