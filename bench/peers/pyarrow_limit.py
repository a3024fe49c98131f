"""Bare pyarrow on the same files, with as many threads as Spark has cores: the physical limit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from bench.peers.base import FILTER_COLUMNS, System, TableRef, sorted_rows


class PyArrowLimit(System):
    """No table format at all: whatever files lie in the folder."""

    name = "pyarrow"

    def configuration(self) -> dict[str, str]:
        return {"reader": "pyarrow.dataset", "threads": str(pa.cpu_count())}

    def aggregate(self, table: TableRef) -> list[tuple[str, ...]]:
        rows = ds.dataset(table.data).to_table(columns=["ss_store_sk", "ss_net_paid"])
        return aggregate_arrow(rows)

    def filter(self, table: TableRef, low: int, high: int) -> list[tuple[str, ...]]:
        ticket = ds.field("ss_ticket_number")
        condition = (ticket >= low) & (ticket <= high)
        rows = ds.dataset(table.data).to_table(columns=list(FILTER_COLUMNS), filter=condition)
        return summary_of(rows)


def aggregate_arrow(rows: pa.Table) -> list[tuple[str, ...]]:
    """Do the aggregate query on an Arrow table."""
    groups = rows.group_by("ss_store_sk").aggregate([("ss_net_paid", "sum"), ([], "count_all")])
    columns = [groups[name] for name in ("ss_store_sk", "ss_net_paid_sum", "count_all")]
    return sorted_rows(zip(*(column.to_pylist() for column in columns), strict=True))


def summary_of(rows: pa.Table) -> list[tuple[str, ...]]:
    """Do the aggregate of the filter query on rows that passed the filter."""
    values = (rows.num_rows, pc.sum(rows["ss_quantity"]), pc.sum(rows["ss_net_paid"]))
    return sorted_rows([values])
