"""Changes a table with PyIceberg and reads it. Argument: an order as JSON.

The order has the table's metadata file, a verb with what it needs, and the path for a copy of
the rows by which the table is checked; the copy is not counted.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

from bench.children.report import timed
from bench.peers.pyarrow_limit import aggregate_arrow


def change(table: Any, order: dict[str, Any]) -> None:
    if order["verb"] == "delete":
        table.delete(order["where"])
        return
    table.upsert(ds.dataset(order["source"]).to_table(), join_cols=order["keys"])


def main(text: str) -> None:
    order = json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
        catalog.create_namespace("bench")
        table = catalog.register_table("bench.t", order["metadata"])
        cost, _ = timed(lambda: change(table, order))
        columns = ("ss_store_sk", "ss_net_paid")
        read, answer = timed(
            lambda: aggregate_arrow(table.scan(selected_fields=columns).to_arrow())
        )
        pq.write_table(table.scan().to_arrow(), order["rows"])
    said = {"change": cost, "read": read, "answer": answer, "metadata": table.metadata_location}
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
