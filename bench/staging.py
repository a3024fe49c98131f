"""Sources of MERGE, prepared for every system in the form that suits it best.

Each is written once and kept in the cache: a plain Parquet folder, the same rows with the bucket
as a column (for Delta, which has no bucket transform), and an Iceberg table bucketed as the
target is.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.changes import KEYS, bucket_of, source_rows
from bench.data import ROWS_PER_TICKET
from bench.peers.base import SPARK_SCHEMA, Layout, TableRef
from bench.tables import shared

if TYPE_CHECKING:
    from pathlib import Path

    from bench.changes import Workload
    from bench.lab import Lab

VERSION = 1
BUCKET = "ss_bucket"


@dataclass(frozen=True)
class Source:
    """The source rows of one round; `aligned` is None where the case has a plain source."""

    rows: int
    plain: Path
    with_bucket: Path
    aligned: TableRef | None = None
    some_keys: tuple[tuple[int, int], ...] = ()


def stage(lab: Lab, rows: int, workload: Workload, number: int, *, aligned: bool) -> Source:
    """Return the source of a round, making what the cache does not have."""
    buckets = lab.options.buckets
    name = f"changes_v{VERSION}_{rows}_{buckets}_{workload.name}_{number}"
    folder = lab.cache / "changes" / name
    if not folder.exists():
        made = source_rows(lab.data(rows), rows, buckets, workload, number)
        _write(folder, made, buckets)
    plain = folder / "plain"
    keys = pq.read_table(plain, columns=list(KEYS))
    table = shared(lab, name, lambda made: _fill(lab, made, plain)) if aligned else None
    return Source(keys.num_rows, plain, folder / "with_bucket", table, some_old_keys(keys, rows))


def some_old_keys(keys: pa.Table, rows: int, count: int = 10) -> tuple[tuple[int, int], ...]:
    """Return keys from all over the table, of those that it has already."""
    old = keys.filter(pc.less(keys["ss_ticket_number"], rows // ROWS_PER_TICKET))
    step = max(1, old.num_rows // count)
    found = old.take(pa.array(range(step // 2, old.num_rows, step)))
    columns = [found[name].to_pylist() for name in KEYS]
    return tuple(zip(*columns, strict=True))[:count]  # type: ignore[return-value]


def _write(folder: Path, rows: pa.Table, buckets: int) -> None:
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    of_row = pa.array(bucket_of(rows["ss_ticket_number"].to_numpy(), buckets), pa.int32())
    forms = {"plain": rows, "with_bucket": rows.append_column(BUCKET, of_row)}
    for form, table in forms.items():
        (unfinished / form).mkdir(parents=True)
        path = unfinished / form / "part-00000.parquet"
        pq.write_table(
            table, path, compression="zstd", store_decimal_as_integer=True, row_group_size=100_000
        )
    unfinished.rename(folder)


def _fill(lab: Lab, table: TableRef, plain: Path) -> None:
    java = lab.peer("iceberg-java")
    layout = Layout(lab.options.buckets)
    java.create(table, layout)
    java.append(table, lab.spark.read.schema(SPARK_SCHEMA).parquet(str(plain)), layout)
