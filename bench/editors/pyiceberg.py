"""PyIceberg's upsert and delete: each round is one process that takes its own time.

The table is a copy like the others', registered in a SQLite catalog of its own. PyIceberg
rewrites files, and builds its filters key by key: large sources are not given to it.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from bench import tables
from bench.changes import KEYS
from bench.children import run_child
from bench.editors.base import Base, Editor
from bench.measure import OWN_PROCESS, Reported, Sample
from bench.peers.base import SPARK_SCHEMA, checksum, sorted_rows
from bench.rounds import Skipped

if TYPE_CHECKING:
    from bench.lab import Lab
    from bench.peers.base import TableRef
    from bench.staging import Source

# Its time grows with keys times rows; beyond this it takes minutes.
MAX_PAIRS = 200_000_000
TIMEOUT_S = 300


class PyIcebergEditor(Editor):
    """PyIceberg alone, without an engine."""

    name = "pyiceberg-upsert"
    max_rounds = 3
    needs_warmup = False

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.table: TableRef | None = None

    def configuration(self) -> dict[str, str]:
        return {
            "calls": "Table.upsert(rows, join_cols=keys), Table.delete(filter)",
            "process": "one for each round; imports are not counted",
            "sizes": f"keys times rows of the table at most {MAX_PAIRS:,}",
        }

    def fresh(self, start: Base) -> None:
        self.drop()
        self.rows = start.rows
        self.table = tables.copy_of(
            self.lab, start.java, "pyiceberg_upsert", {"format-version": "2"}
        )
        self.metadata = self.table.metadata_location

    def merge(self, source: Source) -> Reported:
        if source.rows * self.rows > MAX_PAIRS:
            what = f"{source.rows:,} keys into {self.rows:,} rows"
            raise Skipped(f"{what} would take PyIceberg's upsert too long")
        return self._run({"verb": "upsert", "source": str(source.plain), "keys": list(KEYS)})

    def delete_row(self, ticket: int, item: int) -> Reported:
        where = f"ss_ticket_number == {ticket} and ss_item_sk == {item}"
        return self._run({"verb": "delete", "where": where})

    def read(self) -> Reported:
        return self.read_report

    def truth(self) -> tuple[str, ...]:
        rows = self.lab.spark.read.schema(SPARK_SCHEMA).parquet(str(self._copy_of_rows))
        return checksum(rows)

    @property
    def _copy_of_rows(self) -> Any:
        return self.lab.scratch / "pyiceberg-rows.parquet"

    def _run(self, order: dict[str, Any]) -> Reported:
        order |= {"metadata": self.metadata, "rows": str(self._copy_of_rows)}
        try:
            said = run_child("pyiceberg_change", json.dumps(order), timeout_s=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Skipped(f"PyIceberg was still running after {TIMEOUT_S} s") from None
        self.metadata = said["metadata"]
        self.read_report = Reported(
            Sample(**said["read"], place=OWN_PROCESS), sorted_rows(said["answer"])
        )
        return Reported(Sample(**said["change"], place=OWN_PROCESS))

    def drop(self) -> None:
        if self.table is not None:
            self.lab.peer("iceberg-java").drop(self.table)
            self.table = None
