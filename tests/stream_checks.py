"""Checks of streams into and out of tables, for a session of any kind.

Each takes a lake and a folder of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rowlake.model.app_batch import APP_ID

NOW = {"availableNow": True}
FIELDS = "id bigint, status string, amount bigint"


def run(query: Any) -> Any:
    """Wait for the end of a query that reads what there is."""
    assert query.awaitTermination(180)
    assert query.exception() is None
    return query


def rows(table: Any) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.arrow().to_pylist())


def batches(table: Any, app_id: str) -> int:
    """Return how many commits an app has made."""
    return sum(one.summary.get(APP_ID) == app_id for one in table.snapshots())


def tables(lake: Any, folder: str, *names: str) -> list[Any]:
    """Create tables in a namespace of this check."""
    space = re.sub(r"\W", "_", Path(folder).name)
    lake.create_namespace(space, if_not_exists=True)
    for name in names:
        lake.sql(
            f"CREATE TABLE {space}.{name} ({FIELDS}) "
            "TBLPROPERTIES ('format-version' = '3', 'write.update.mode' = 'merge-on-read')"
        )
    return [lake.table(f"{space}.{name}") for name in names]


def some(*given: tuple) -> list[dict]:
    return [dict(zip(("id", "status", "amount"), one, strict=True)) for one in given]


def check_a_stream_appends_each_row_once(lake: Any, folder: str) -> None:
    source, target = tables(lake, folder, "source", "target")
    once = {"app_id": "copy", "checkpoint": f"{folder}/checkpoint", "trigger": NOW}
    for number in range(3):
        source.append(some((number, "new", 1)))
        query = run(target.stream_append(lake.read_stream(source.name), **once))
        assert query.lastProgress["observedMetrics"]["rowlake"]["snapshot_id"] is not None
    run(target.stream_append(lake.read_stream(source.name), **once))
    assert rows(target) == rows(source)
    assert batches(target, "copy") == 3


def check_a_stream_of_changes_keeps_a_copy(lake: Any, folder: str) -> None:
    source, target = tables(lake, folder, "source", "target")
    once = {"app_id": "copy", "checkpoint": f"{folder}/checkpoint", "trigger": NOW}
    by_change = {
        "keys": ["id"],
        "sequence_by": "_change_ordinal",
        "apply_as_deletes": "_change_type = 'delete'",
    }
    source.append(some(*((number, "new", number) for number in range(6))))
    for mode in ("merge-on-read", "copy-on-write"):
        source.update({"amount": "amount + 1"}, "id % 2 = 0", mode=mode)
        source.delete(f"id = {1 if mode == 'merge-on-read' else 3}", mode=mode)
        stream = lake.read_stream(source.name, changes=True)
        run(target.stream_upsert(stream, **by_change, **once))
        assert rows(target) == rows(source), mode
    assert batches(target, "copy") == 2


def summed(batch: Any) -> Any:
    """Return by how much a batch changes the sum of each status."""
    signed = batch.selectExpr("status", "if(_change_type = 'insert', amount, -amount) AS signed")
    sums = signed.groupBy("status").sum("signed")
    return sums.withColumnRenamed("sum(signed)", "amount")


def check_a_stream_keeps_sums_by_merge(lake: Any, folder: str) -> None:
    source, target = tables(lake, folder, "source", "target")
    once = {"app_id": "sums", "checkpoint": f"{folder}/checkpoint", "trigger": NOW}
    source.append(some((1, "new", 1), (2, "new", 2), (3, "paid", 3)))
    for amount in (10, 20):
        source.update({"status": "'paid'", "amount": f"{amount}"}, "id = 1")
        run(
            target.stream_merge(
                lake.read_stream(source.name, changes=True),
                "t.status = s.status",
                lambda merge: merge.when_matched_update(
                    {"amount": "t.amount + s.amount"}
                ).when_not_matched_insert({"status": "s.status", "amount": "s.amount"}),
                prepare=summed,
                **once,
            )
        )
    assert rows(target) == [(None, "new", 2), (None, "paid", 23)]


CHECKS = (
    check_a_stream_appends_each_row_once,
    check_a_stream_of_changes_keeps_a_copy,
    check_a_stream_keeps_sums_by_merge,
)
