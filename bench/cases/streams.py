"""Upsert streams: small batches of whole rows by key, as Structured Streaming delivers them.

Every system reads the same Parquet files, one a batch, so all pay for Spark's own bookkeeping of a
micro-batch (offsets, commit log). rowlake writes with `stream_upsert` and equality deletes, Iceberg
with MERGE in `foreachBatch`, as its documentation advises. A sample is the time of one batch: a
round takes several, and the time of its query is divided. In the long case rowlake alone takes a
thousand batches, with auto-optimize on.
"""

from __future__ import annotations

import itertools
import statistics
import time
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bench.case import Case, Contestant, Step, entrants
from bench.changes import KEYS, Workload, source_rows
from bench.editors.base import MERGE, Base, base
from bench.measure import Reported, Sample, Watch
from bench.peers.base import SPARK_SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from bench.editors.base import Editor
    from bench.lab import Lab

OURS = "rowlake-equality"
PEERS = ("iceberg-v3", "iceberg-mor-v2", "iceberg-cow")
# With 16 buckets: 800 rows, half of them new.
BATCH = Workload("stream", 25, 25)
FEW_BATCHES = 5
MANY_BATCHES = 1_000
HUNDRED = 100
AUTO_OPTIMIZE = {"rowlake.auto-optimize.enabled": "true"}
_queries = itertools.count()


def beside_peers(lab: Lab) -> list[Contestant]:
    """A few batches a round, on a fresh table."""
    start, folder = _prepared(lab, FEW_BATCHES)

    def make(name: str) -> Contestant:
        editor: Editor = lab.editor(name)
        step = Step("batch", lambda: _few(editor, folder), lambda _: editor.truth())
        return Contestant(name, (step,), lambda _: editor.fresh(start), close=editor.drop)

    return entrants(lab.wanted(OURS, *PEERS), make)


def for_long(lab: Lab) -> list[Contestant]:
    """A thousand batches into one table that looks after itself."""
    batches = MANY_BATCHES if lab.options.rows is None else HUNDRED
    start, folder = _prepared(lab, batches)

    def make(name: str) -> Contestant:
        editor: Editor = lab.editor(name)

        def prepare(_: int) -> None:
            editor.fresh(start)
            editor.lake.table(editor.table.name).set_properties(AUTO_OPTIMIZE)  # type: ignore[attr-defined]

        step = Step("batch", lambda: _many(editor, folder, batches))
        return Contestant(name, (step,), prepare, close=editor.drop, needs_warmup=False)

    return entrants(lab.wanted(OURS), make)


def _prepared(lab: Lab, batches: int) -> tuple[Base, Path]:
    rows = lab.options.write_rows
    return base(lab, rows), _batch_files(lab, rows, batches)


def _batch_files(lab: Lab, rows: int, batches: int) -> Path:
    """Return a folder with a Parquet file of whole rows for every batch."""
    buckets = lab.options.buckets
    folder = lab.cache / "changes" / f"stream_v1_{rows}_{buckets}_{batches}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        workload = Workload(BATCH.name, BATCH.updates * batches, BATCH.inserts * batches)
        every = source_rows(lab.data(rows), rows, buckets, workload, 0)
        for number in range(batches):  # rows that are apart, from all buckets
            mine = every.take(list(range(number, every.num_rows, batches)))
            pq.write_table(mine, unfinished / f"{number:05}.parquet", store_decimal_as_integer=True)
        unfinished.rename(folder)
    return folder


def _few(editor: Editor, folder: Path) -> Reported:
    with Watch() as watch:
        started = time.perf_counter()
        taken = _run(editor, folder)
        wall = time.perf_counter() - started
    each = len(taken)
    return Reported(Sample(wall / each, watch.used.cpu_s / each, watch.peak_bytes))


def _many(editor: Editor, folder: Path, batches: int) -> Reported:
    with Watch() as watch:
        started = time.perf_counter()
        taken = _run(editor, folder)
        wall = time.perf_counter() - started
    part = min(HUNDRED, batches // 2)
    first, last = taken[:part], taken[-part:]
    facts = {
        "batches": float(len(taken)),
        "first_hundred_s": statistics.mean(first),
        "last_hundred_s": statistics.mean(last),
        "first_hundred_median_s": statistics.median(first),
        "last_hundred_median_s": statistics.median(last),
        "slowest_batch_s": max(taken),
        "last_to_first": statistics.median(last) / statistics.median(first),
        "last_to_first_mean": statistics.mean(last) / statistics.mean(first),
    }
    each = len(taken)
    return Reported(Sample(wall / each, watch.used.cpu_s / each, watch.peak_bytes, facts=facts))


def _run(editor: Editor, folder: Path) -> list[float]:
    """Run the query over all files; return the seconds of its batches, in order."""
    spark = editor.lab.spark
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(2 * MANY_BATCHES))
    stream = (
        spark.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    )
    checkpoint = editor.lab.scratch / f"stream-{next(_queries)}"
    query = _started(editor, stream, str(checkpoint))
    query.awaitTermination()
    if query.exception() is not None:
        raise RuntimeError(str(query.exception()))
    told = [one for one in query.recentProgress if one["numInputRows"]]
    return [one["durationMs"]["triggerExecution"] / 1000 for one in told]


def _started(editor: Editor, stream: Any, checkpoint: str) -> Any:
    now = {"availableNow": True}
    table = editor.table  # type: ignore[attr-defined]
    if editor.name == OURS:
        return editor.lake.table(table.name).stream_upsert(  # type: ignore[attr-defined]
            stream,
            list(KEYS),
            app_id="bench",
            checkpoint=checkpoint,
            deletes="equality",
            trigger=now,
        )
    target = editor.java.sql_name(table)  # type: ignore[attr-defined]

    def merge(batch: Any, _: int) -> None:
        batch.sparkSession.sql(MERGE.format(target=target, source="{batch}"), batch=batch)

    writer = stream.writeStream.foreachBatch(merge).option("checkpointLocation", checkpoint)
    return writer.trigger(**now).start()


CASES = [
    Case(
        "stream_upsert",
        f"Upsert stream: a batch of 800 rows, equality deletes or MERGE ({FEW_BATCHES} a round)",
        beside_peers,
        ours=OURS,
    ),
    Case(
        "stream_long",
        "Upsert stream: 1 000 batches of 800 rows with auto-optimize",
        for_long,
        rounds=1,
        warmups=0,
        ours=OURS,
        only_full=True,
    ),
]
