"""Runs one statement in a fresh process. Arguments: system, statement, warehouse, table.

`count` counts all rows; `merge` changes the rows of a hundred tickets. Spark is started first and
has run an empty job.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import session
from bench.children.report import timed
from bench.peers.base import TableRef

if TYPE_CHECKING:
    from collections.abc import Callable

MERGE = (
    "MERGE INTO {table} t USING (SELECT id AS k FROM range(100)) s ON t.ss_ticket_number = s.k "
    "WHEN MATCHED THEN UPDATE SET ss_quantity = 0"
)


def statement(system: str, step: str, spark: Any, table: TableRef) -> Callable[[], int]:
    """Return the work whose time is taken; what it imports or opens first is part of it."""
    if system == "spark-parquet":
        return lambda: int(spark.read.parquet(str(table.data)).count())
    texts = {"count": "SELECT count(*) FROM {table}", "merge": MERGE}

    def run_on_java() -> int:
        rows = spark.sql(texts[step].format(table=f"{session.CATALOG}.{table.name}")).collect()
        return int(rows[0][0]) if step == "count" else 0

    def run_on_rowlake() -> int:
        import rowlake

        lake = rowlake.connect(str(table.warehouse), catalog="filesystem", spark=spark)
        rows = lake.sql(texts[step].format(table=table.name)).collect()
        return int(rows[0][0]) if step == "count" else 0

    return run_on_rowlake if system == "rowlake" else run_on_java


def main(system: str, step: str, warehouse: str, name: str) -> None:
    spark = session.start_spark(Path(warehouse))
    spark.range(1).count()
    cost, answer = timed(statement(system, step, spark, TableRef(Path(warehouse), name)))
    print(json.dumps({**cost, "answer": answer}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
