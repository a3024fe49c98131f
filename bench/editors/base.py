"""What systems that change rows have in common.

An editor holds one table at a time: `fresh` recreates it from a base, `merge`, `upsert`,
`update_row` and `delete_row` change it, `read` does the read query, `truth` gives count and
checksum of all rows (of rowlake's tables through Iceberg Java's reader), `facts` what its newest
commit says of itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench import tables
from bench.changes import KEYS, SET_COLUMNS
from bench.peers.base import COLUMNS, System

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.peers.base import TableRef
    from bench.staging import Source

ON = " AND ".join(f"t.{key} = s.{key}" for key in KEYS)
SET = ", ".join(f"{column} = s.{column}" for column in SET_COLUMNS)
INSERT = f"({', '.join(COLUMNS)}) VALUES ({', '.join(f's.{column}' for column in COLUMNS)})"
MERGE = (
    f"MERGE INTO {{target}} t USING {{source}} s ON {ON} "
    f"WHEN MATCHED THEN UPDATE SET {SET} WHEN NOT MATCHED THEN INSERT {INSERT}"
)
COMPACT = (
    "CALL {catalog}system.rewrite_data_files(table => '{target}', "
    "options => map('rewrite-all', 'true'))"
)
COMPACT_DELETES = (
    "CALL {catalog}system.rewrite_position_delete_files(table => '{target}', "
    "options => map('rewrite-all', 'true'))"
)
UPDATE = (
    "UPDATE {target} SET ss_quantity = ss_quantity + 1 "
    "WHERE ss_ticket_number = {ticket} AND ss_item_sk = {item}"
)
DELETE = "DELETE FROM {target} WHERE ss_ticket_number = {ticket} AND ss_item_sk = {item}"


@dataclass(frozen=True)
class Base:
    """The table that a case starts from, whose files Iceberg Java wrote.

    `aligned`: sources of the case are bucketed as it is.
    """

    rows: int
    buckets: int | None
    java: TableRef
    aligned: bool = False

    @property
    def name(self) -> str:
        return self.java.name.split(".")[1]


def base(lab: Lab, rows: int, *, bucketed: bool = True, aligned: bool = False) -> Base:
    if bucketed:
        return Base(rows, lab.options.buckets, tables.clean(lab, rows), aligned)
    return Base(rows, None, tables.unpartitioned(lab, rows))


class Editor(System):
    """The base of all systems that change rows.

    `max_rounds` holds without --full; a system that runs in a process of its own takes its own
    time and needs no warm-up.
    """

    max_rounds: int | None = None
    needs_warmup = True

    def fresh(self, start: Base) -> None:
        raise NotImplementedError

    def merge(self, source: Source) -> Any:
        raise NotImplementedError

    def upsert(self, source: Source) -> Any:
        """Write whole rows by key; systems without such a statement use MERGE."""
        return self.merge(source)

    def delete_row(self, ticket: int, item: int) -> Any:
        raise NotImplementedError

    def update_row(self, ticket: int, item: int) -> Any:
        raise NotImplementedError

    def read(self) -> Any:
        raise NotImplementedError

    def compact(self) -> Any:
        """Rewrite the table so that no deletes and no small files are left."""
        raise NotImplementedError

    def compact_deletes(self) -> Any:
        """Rewrite the delete files only."""
        raise NotImplementedError

    def truth(self) -> tuple[str, ...]:
        raise NotImplementedError

    def facts(self) -> dict[str, float]:
        return {}

    def drop(self) -> None:
        """Leave nothing of the table behind."""
