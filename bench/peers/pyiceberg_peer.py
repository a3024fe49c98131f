"""PyIceberg on tables of the Hadoop-style catalog, opened by their metadata file."""

from __future__ import annotations

from typing import Any

from bench.peers.base import FILTER_COLUMNS, System, TableRef
from bench.peers.pyarrow_limit import aggregate_arrow, summary_of


class PyIcebergPeer(System):
    """Reads into Arrow; it has no engine to share the work with."""

    name = "pyiceberg"

    def configuration(self) -> dict[str, str]:
        import pyiceberg

        return {"version": pyiceberg.__version__, "table": "StaticTable"}

    def open(self, table: TableRef) -> Any:
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(table.metadata_location)

    def aggregate(self, table: TableRef) -> list[tuple[str, ...]]:
        scan = self.open(table).scan(selected_fields=("ss_store_sk", "ss_net_paid"))
        return aggregate_arrow(scan.to_arrow())

    def filter(self, table: TableRef, low: int, high: int) -> list[tuple[str, ...]]:
        condition = f"ss_ticket_number >= {low} and ss_ticket_number <= {high}"
        scan = self.open(table).scan(row_filter=condition, selected_fields=FILTER_COLUMNS)
        return summary_of(scan.to_arrow())
