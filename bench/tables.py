"""Tables that all systems read: written once by Iceberg Java, kept in the cache.

Their names hold their sizes, and a marker file in the table's folder says that it is finished; an
unfinished one is rebuilt.
"""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

from bench.parquet import TABLE_PROPERTIES
from bench.peers.base import Layout, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.lab import Lab

FINISHED = ".bench-finished"
COPIES = "copies"
_copies = itertools.count()
# One row in a hundred, spread evenly over files and pages.
ONE_PERCENT = "pmod(xxhash64(ss_ticket_number, ss_item_sk), 100) = 0"
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}
SMALL_ROW_GROUPS = {
    "write.parquet.row-group-size-bytes": str(2 * 1024 * 1024),
    "write.parquet.row-group-check-min-record-count": "1000",
}


def shared(lab: Lab, name: str, build: Callable[[TableRef], None]) -> TableRef:
    """Return a finished table of the Java warehouse, building it when it is not there."""
    table = TableRef(lab.java_warehouse, f"shared.{name}")
    marker = table.location / FINISHED
    if not marker.exists():
        lab.peer("iceberg-java").drop(table)
        shutil.rmtree(table.location, ignore_errors=True)
        build(table)
        marker.touch()
    return table


def clean(lab: Lab, rows: int | None = None) -> TableRef:
    """Return the bench table: bucketed, one file per bucket, no deletes."""

    def build(table: TableRef) -> None:
        _fill(lab, table, Layout(lab.options.buckets), rows)

    return shared(lab, f"clean_{_size(lab, rows)}", build)


def unpartitioned(lab: Lab, rows: int) -> TableRef:
    """Return the bench table without partitions, in as many files as it would have buckets."""

    def build(table: TableRef) -> None:
        java = lab.peer("iceberg-java")
        java.create(table, Layout(properties={"write.distribution-mode": "none"}))
        java.append(table, lab.source(rows).repartition(lab.options.buckets), Layout())

    return shared(lab, f"unpartitioned_{_size(lab, rows)}", build)


def copy_of(lab: Lab, table: TableRef, name: str, properties: dict[str, str]) -> TableRef:
    """Return a fresh table with the same files, linked, which its owner may change freely."""
    made = TableRef(lab.java_warehouse, f"{COPIES}.{name}_{next(_copies)}")
    settings = {**TABLE_PROPERTIES, **properties}
    lines = "\n".join(f"{key}={value}" for key, value in settings.items())
    lab.core.call("copy", lab.java_warehouse.as_uri(), f"{table.name} {made.name}", lines)
    return made


def sorted_by_ticket(lab: Lab) -> TableRef:
    """Return the bench table with rows in ticket order and several row groups in each file."""

    def build(table: TableRef) -> None:
        _fill(lab, table, Layout(lab.options.buckets, properties=SMALL_ROW_GROUPS))

    return shared(lab, f"sorted_{_size(lab)}", build)


def with_deletes(lab: Lab, format_version: int) -> TableRef:
    """Return the bench table after Iceberg Java deleted 1 % of its rows, merge-on-read."""

    def build(table: TableRef) -> None:
        _fill(lab, table, Layout(lab.options.buckets, format_version, MERGE_ON_READ))
        lab.peer("iceberg-java").delete(table, ONE_PERCENT)

    return shared(lab, f"deletes_v{format_version}_{_size(lab)}", build)


def _size(lab: Lab, rows: int | None = None) -> str:
    return f"{rows or lab.options.total_rows}_{lab.options.buckets}"


def _fill(lab: Lab, table: TableRef, layout: Layout, rows: int | None = None) -> None:
    java = lab.peer("iceberg-java")
    java.create(table, layout)
    lab.spark.sql(
        f"ALTER TABLE {java.sql_name(table)} WRITE DISTRIBUTED BY PARTITION "
        "LOCALLY ORDERED BY ss_ticket_number"
    )
    java.append(table, lab.source(rows), layout)
