"""Reads of one table by all systems: whole, by a range of a sort column, after deletes."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bench import tables
from bench.case import Case, Contestant, Step, entrants
from bench.data import ROWS_PER_TICKET
from bench.measure import Reported, measure
from bench.peers.base import FILTER_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.lab import Lab

READERS = ("rowlake", "iceberg-java", "spark-parquet", "pyarrow", "pyiceberg")
FILTER_SHARE = 0.01
FOOTER_BYTES = 64 * 1024


def same(answer: Any) -> Any:
    """The rows of a query are their own truth."""
    return answer


def full(lab: Lab) -> list[Contestant]:
    """Aggregate over the clean bench table."""
    table = tables.clean(lab)

    def make(name: str) -> Contestant:
        return Contestant(
            name, (Step("aggregate", partial(lab.peer(name).aggregate, table), same),)
        )

    return entrants(lab.wanted(*READERS), make)


def deletes(lab: Lab) -> list[Contestant]:
    """Aggregate over tables in which Iceberg Java deleted 1 % of the rows, and over a clean one."""
    steps = {
        "clean": tables.clean(lab),
        "v2 positions": tables.with_deletes(lab, 2),
        "v3 vectors": tables.with_deletes(lab, 3),
    }

    def make(name: str) -> Contestant:
        read = lab.peer(name).aggregate
        return Contestant(
            name, tuple(Step(step, partial(read, table), same) for step, table in steps.items())
        )

    return entrants(lab.wanted("rowlake", "iceberg-java"), make)


def filtered(lab: Lab) -> list[Contestant]:
    """Read a range of tickets, 1 % of them, from files that are sorted by ticket."""
    table = tables.sorted_by_ticket(lab)
    tickets = lab.options.total_rows // ROWS_PER_TICKET
    low = tickets // 2
    high = low + max(1, int(tickets * FILTER_SHARE)) - 1
    needed, groups = needed_bytes(table.data, low, high)

    def run(name: str) -> Reported:
        sample, answer = measure(lambda: lab.peer(name).filter(table, low, high))
        sample.facts["needed_bytes"] = needed
        sample.facts["read_to_needed"] = sample.read_bytes / needed
        if name == "rowlake":
            with row_groups_opened() as opened:
                lab.peer(name).filter(table, low, high)
            sample.facts["row_groups_to_needed"] = len(opened) / groups
        return Reported(sample, answer)

    return entrants(
        lab.wanted(*READERS),
        lambda name: Contestant(name, (Step("filter", partial(run, name), same),)),
    )


@contextmanager
def row_groups_opened() -> Iterator[set[tuple[str, int]]]:
    """Count the row groups that rowlake's own reader opens inside the block, in this process."""
    from rowlake.engine import spark as engine
    from rowlake.scan.parquet import ParquetSource

    opened: set[tuple[str, int]] = set()
    read, is_tiny = ParquetSource.read, engine.is_tiny

    def counted(source: Any, unit: Any, *arguments: Any) -> Any:
        opened.add((source.location, unit.index))
        return read(source, unit, *arguments)

    ParquetSource.read = counted  # type: ignore[method-assign]
    engine.is_tiny = lambda *_: True  # what Spark's workers open would not be counted
    try:
        yield opened
    finally:
        ParquetSource.read = read  # type: ignore[method-assign]
        engine.is_tiny = is_tiny


def needed_bytes(folder: Path, low: int, high: int) -> tuple[int, int]:
    """Return the bytes of the column chunks that the filter query cannot do without, and in how
    many row groups they are.

    Of every file the footer, and of row groups whose tickets overlap the range the chunks of
    the query's columns.
    """
    total = groups = 0
    for path in folder.rglob("*.parquet"):
        footer = pq.read_metadata(path)
        total += min(FOOTER_BYTES, footer.serialized_size + 8)
        columns = [footer.schema.names.index(name) for name in FILTER_COLUMNS]
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            tickets = group.column(columns[0]).statistics
            if tickets.max >= low and tickets.min <= high:
                total += sum(group.column(column).total_compressed_size for column in columns)
                groups += 1
    return total, groups


CASES = [
    Case("read_full", "Full-scan aggregate of the bench table", full, rounds=5, warmups=2),
    Case("read_filter", "1 % of the tickets, by range, from sorted files", filtered, rounds=5),
    Case(
        "read_deletes", "Aggregate after 1 % of the rows was deleted", deletes, rounds=5, warmups=2
    ),
]
