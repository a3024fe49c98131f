"""A pipeline from PostgreSQL through four tables; run as a script that can be killed at any time.

    medallion.py WAREHOUSE CHECKPOINTS DATABASE run|finish

- `raw.orders` follows a table of the database (`rowlake cdc`);
- `bronze.order_changes` is the log of its changes, appended;
- `silver.orders` has the orders that were not cancelled, by key;
- `gold.totals` has their number and sum by status, kept by MERGE of silver's changes.

`run` goes on until it is killed; `finish` ends once all tables have what the database has.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import rowlake
from rowlake.cli.cdc import follow
from rowlake.engine.session import make_session
from rowlake.stream.cdc.follow import Pace
from tests.spark_session import QUICK

if TYPE_CHECKING:
    from rowlake.lake import Lake

AUTO = {
    "format-version": "3",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "rowlake.auto-optimize.enabled": "true",
    "rowlake.auto-optimize.every-commits": "4",
    "rowlake.auto-optimize.min-interval-seconds": "0",
}
TABLES = {
    "bronze.order_changes": "id bigint, status string, amount bigint, op string, at int",
    "silver.orders": "id bigint, status string, amount bigint",
    "gold.totals": "status string, orders bigint, amount bigint",
}


def create(warehouse: str) -> None:
    """Create the tables that streams write to."""
    with rowlake.connect(warehouse) as lake:
        for name, columns in TABLES.items():
            lake.create_namespace(name.split(".")[0], if_not_exists=True)
            lake.create_table(name, columns, properties=AUTO)


def copy(lake: Lake, database: str) -> None:
    """Bring `raw.orders` to the end of the database's log."""
    follow(
        lake,
        database,
        source_tables=["public.orders"],
        tables=["raw.orders"],
        publication="medallion",
        namespace=None,
        slot="medallion",
        once=True,
        pace=Pace(rows=200),
    )


def to_bronze(lake: Lake, checkpoints: str, trigger: dict[str, Any]) -> Any:
    """Append the changes of `raw.orders`."""
    changes = lake.read_stream("raw.orders", changes=True).selectExpr(
        "id", "status", "amount", "_change_type AS op", "_change_ordinal AS at"
    )
    return lake.table("bronze.order_changes").stream_append(
        changes, app_id="bronze", checkpoint=f"{checkpoints}/bronze", trigger=trigger
    )


def to_silver(lake: Lake, checkpoints: str, trigger: dict[str, Any]) -> Any:
    """Keep the orders that were not cancelled."""
    return lake.table("silver.orders").stream_upsert(
        lake.read_stream("bronze.order_changes"),
        ["id"],
        sequence_by="at",
        apply_as_deletes="op = 'delete' OR status = 'cancelled'",
        app_id="silver",
        checkpoint=f"{checkpoints}/silver",
        trigger=trigger,
    )


def by_status(batch: Any) -> Any:
    """Return by how much a batch of changes moves the totals of each status."""
    signed = batch.selectExpr("status", "amount", "if(_change_type = 'insert', 1, -1) AS sign")
    moves = signed.selectExpr("status", "sign AS orders", "sign * amount AS amount")
    sums = moves.groupBy("status").sum("orders", "amount")
    return sums.toDF("status", "orders", "amount")


def to_gold(lake: Lake, checkpoints: str, trigger: dict[str, Any]) -> Any:
    """Keep the totals by status."""
    return lake.table("gold.totals").stream_merge(
        lake.read_stream("silver.orders", changes=True),
        ["status"],
        lambda merge: (
            merge.when_matched_delete("t.orders + s.orders = 0")
            .when_matched_update({"orders": "t.orders + s.orders", "amount": "t.amount + s.amount"})
            .when_not_matched_insert_all("s.orders <> 0")
        ),
        prepare=by_status,
        app_id="gold",
        checkpoint=f"{checkpoints}/gold",
        trigger=trigger,
    )


STAGES = (to_bronze, to_silver, to_gold)


def main() -> None:
    warehouse, checkpoints, database, mode = sys.argv[1:]
    spark, _ = make_session({"spark.master": "local[2]", "spark.driver.memory": "1g", **QUICK})
    with rowlake.connect(warehouse, spark=spark) as lake:
        copy(lake, database)
        if mode == "run":
            queries = [
                stage(lake, checkpoints, {"processingTime": "0 seconds"}) for stage in STAGES
            ]
            while all(query.isActive for query in queries):
                copy(lake, database)
            print([query.exception() for query in queries], flush=True)
            sys.exit(1)
        for stage in (each for each in STAGES for _ in range(2)):
            # A query that replays a batch may end after it, and leave the rest to its next run.
            query = stage(lake, checkpoints, {"availableNow": True})
            query.awaitTermination()
            assert query.exception() is None
    spark.stop()


if __name__ == "__main__":
    main()
