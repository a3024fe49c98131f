"""The workloads, in the order in which a run takes them."""

from bench.cases import engine, planning, reads, rowlevel, startup, writes

CASES = {
    case.name: case
    for case in (
        *startup.CASES,
        *engine.CASES,
        *planning.CASES,
        *reads.CASES,
        *writes.CASES,
        *rowlevel.CASES,
    )
}

__all__ = ["CASES"]
