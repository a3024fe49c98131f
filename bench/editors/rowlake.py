"""rowlake's ways of writing changes, on tables that are copies of the ones the peers get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import tables
from bench.changes import KEYS, SET_COLUMNS
from bench.editors.base import COMPACT, COMPACT_DELETES, DELETE, MERGE, ON, UPDATE, Base, Editor
from bench.editors.summary import iceberg_facts
from bench.peers.base import checksum
from bench.rounds import Skipped

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.peers.base import TableRef
    from bench.staging import Source

VERBS = ("delete", "update", "merge")
# What a Result says beyond the snapshot's summary, by the name that the bench gives it.
RESULT_FACTS = {
    "bytes_read": "data_read_bytes",
    "files_considered": "files_considered",
    "files_pruned": "files_pruned",
    "files_matched": "files_matched",
}


class RowlakeEditor(Editor):
    """rowlake with one way of writing changes; no mode in the properties means `auto`."""

    mode = ""
    format_version = 3

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.peer = lab.peer("rowlake")
        self.table: TableRef | None = None
        self.start: Base | None = None
        self.said: dict[str, float] = {}

    def configuration(self) -> dict[str, str]:
        return {
            "table": ", ".join(f"{key}={value}" for key, value in self.properties().items()),
            "source": "the same tables and files that the peers get",
        }

    def properties(self) -> dict[str, str]:
        modes = {f"write.{verb}.mode": self.mode for verb in VERBS} if self.mode else {}
        return {"format-version": str(self.format_version), **modes}

    def fresh(self, start: Base) -> None:
        self.drop()
        self.start, self.said = start, {}
        name = self.name.replace("-", "_")
        self.table = tables.copy_of(self.lab, start.java, name, self.properties())

    def merge(self, source: Source) -> None:
        if source.aligned is not None:
            statement = MERGE.format(target=self._table.name, source=source.aligned.name)
            self.lake.sql(statement).collect()
            return
        merge = _verb(self._handle, "merge")(str(source.plain), on=ON)
        merge = merge.when_matched_update(set={name: f"s.{name}" for name in SET_COLUMNS})
        self._note(merge.when_not_matched_insert_all().execute())

    def upsert(self, source: Source) -> None:
        self._note(_verb(self._handle, "upsert")(str(source.plain), keys=list(KEYS)))

    def delete_row(self, ticket: int, item: int) -> None:
        statement = DELETE.format(target=self._table.name, ticket=ticket, item=item)
        self.lake.sql(statement).collect()

    def update_row(self, ticket: int, item: int) -> None:
        statement = UPDATE.format(target=self._table.name, ticket=ticket, item=item)
        self.lake.sql(statement).collect()

    def compact(self) -> None:
        self.lake.sql(COMPACT.format(catalog="", target=self._table.name)).collect()

    def compact_deletes(self) -> None:
        self.lake.sql(COMPACT_DELETES.format(catalog="", target=self._table.name)).collect()

    def read(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = self.peer.aggregate(self._table)
        return rows

    def read_clean(self) -> list[tuple[str, ...]]:
        """Do the read query on the base, which nobody changes."""
        if self.start is None:
            raise RuntimeError("no table yet")
        rows: list[tuple[str, ...]] = self.peer.aggregate(self.start.java)
        return rows

    def truth(self) -> tuple[str, ...]:
        """Return what Iceberg Java reads of the table; its own reader answers the read query."""
        return checksum(self.lab.peer("iceberg-java").fresh_frame(self._table))

    def facts(self) -> dict[str, float]:
        return {**iceberg_facts(self._table), **self.said}

    def drop(self) -> None:
        if self.table is not None:
            self.peer.drop(self.table)
            self.table = None

    @property
    def lake(self) -> Any:
        return self.peer.lake_of(self._table)

    @property
    def _table(self) -> TableRef:
        if self.table is None:
            raise RuntimeError("no table yet")
        return self.table

    @property
    def _handle(self) -> Any:
        return self.lake.table(self._table.name)

    def _note(self, result: Any) -> None:
        """Keep what the result says beyond the snapshot's summary."""
        self.said = {ours: float(getattr(result, name)) for name, ours in RESULT_FACTS.items()}


def _verb(table: Any, name: str) -> Any:
    verb = getattr(table, name, None)
    if verb is None:
        raise Skipped(f"not yet: rowlake has no {name}")
    return verb


class RowlakeLazy(RowlakeEditor):
    name = "rowlake-lazy"
    mode = "merge-on-read"


class RowlakeEager(RowlakeEditor):
    name = "rowlake-eager"
    mode = "copy-on-write"


class RowlakeAuto(RowlakeEditor):
    name = "rowlake-auto"


class RowlakePositions(RowlakeEditor):
    name = "rowlake-v2"
    mode = "merge-on-read"
    format_version = 2


class RowlakeEquality(RowlakeEditor):
    """Whole rows by key with equality deletes: the target is not read."""

    name = "rowlake-equality"
    format_version = 2

    def merge(self, source: Source) -> None:
        upsert = _verb(self._handle, "upsert")
        self._note(upsert(str(source.plain), keys=list(KEYS), deletes="equality"))
