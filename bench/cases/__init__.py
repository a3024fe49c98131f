"""The workloads, in the order in which a run takes them."""

from bench.cases import (
    engine,
    key_index,
    maintenance,
    memory,
    planning,
    reads,
    rowlevel,
    share,
    startup,
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
        *key_index.CASES,
        *memory.CASES,
        *maintenance.CASES,
    )
}

__all__ = ["CASES"]
