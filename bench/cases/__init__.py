"""The workloads, in the order in which a run takes them."""

from bench.cases import (
    engine,
    maintenance,
    memory,
    planning,
    reads,
    rowlevel,
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
        *engine.CASES,
        *planning.CASES,
        *reads.CASES,
        *writes.CASES,
        *rowlevel.CASES,
        *share.CASES,
        *upsert.CASES,
        *memory.CASES,
        *maintenance.CASES,
        *streams.CASES,
        *stream_changes.CASES,
        *stream_postgres.CASES,
    )
}

__all__ = ["CASES"]
