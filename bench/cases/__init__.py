"""The workloads, in the order in which a run takes them."""

from bench.cases import (
    delta_log,
    engine,
    first_statement,
    key_index,
    latency,
    maintenance,
    memory,
    planning,
    reads,
    rowlevel,
    shapes,
    share,
    startup,
    stream_changes,
    stream_postgres,
    streams,
    upsert,
    writes,
)

CASES = {
    case.name: case
    for case in (
        *startup.CASES,
        *first_statement.CASES,
        *engine.CASES,
        *planning.CASES,
        *delta_log.CASES,
        *reads.CASES,
        *writes.CASES,
        *rowlevel.CASES,
        *share.CASES,
        *upsert.CASES,
        *shapes.CASES,
        *latency.CASES,
        *key_index.CASES,
        *memory.CASES,
        *maintenance.CASES,
        *streams.CASES,
        *stream_changes.CASES,
        *stream_postgres.CASES,
    )
}

__all__ = ["CASES"]
