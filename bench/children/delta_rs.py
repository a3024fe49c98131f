"""Changes a Delta table with delta-rs and reads it; runs in an environment without the project.

Argument: an order as JSON (verb, table, query, and what the verb needs). Answer, on the last
line: the costs of the change and of the read, the rows, delta-rs's own metrics.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder, WriterProperties

if TYPE_CHECKING:
    from collections.abc import Callable


def timed(work: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    cpu, wall = time.process_time(), time.perf_counter()
    answer = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"wall_s": wall, "cpu_s": cpu, "peak_bytes": peak}, answer


def merge(order: dict[str, Any]) -> Any:
    table = DeltaTable(order["table"])
    source = ds.dataset(order["source"]).to_table()
    builder = table.merge(
        source,
        order["on"],
        source_alias="s",
        target_alias="t",
        writer_properties=writing(order),
    )
    builder = builder.when_matched_update(order["set"])
    return builder.when_not_matched_insert(order["insert"]).execute()


def delete(order: dict[str, Any]) -> Any:
    return DeltaTable(order["table"]).delete(order["where"], writer_properties=writing(order))


def writing(order: dict[str, Any]) -> WriterProperties:
    """Return the codec and level that all systems write with; its own default is Snappy."""
    return WriterProperties(compression="ZSTD", compression_level=order["zstd_level"])


def read(order: dict[str, Any]) -> list[list[str]]:
    builder = QueryBuilder().register("t", DeltaTable(order["table"]))
    rows = pa.table(builder.execute(order["query"]).read_all())
    columns = [column.to_pylist() for column in rows.columns]
    return [[str(value) for value in row] for row in zip(*columns, strict=True)]


def main(text: str) -> None:
    order = json.loads(text)
    verbs = {"merge": merge, "delete": delete}
    change, metrics = timed(lambda: verbs[order["verb"]](order))
    read_cost, rows = timed(lambda: read(order))
    print(json.dumps({"change": change, "read": read_cost, "rows": rows, "metrics": metrics}))


if __name__ == "__main__":
    main(sys.argv[1])
