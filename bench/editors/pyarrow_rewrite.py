"""A bare loop of pyarrow over all files: what rewriting the whole table costs at the least."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from bench.editors.base import Base, Editor
from bench.parquet import ZSTD_LEVEL

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from bench.staging import Source

THREADS = 2


class PyArrowRewrite(Editor):
    """Reads every file and writes it again; no row changes, no table is kept."""

    name = "pyarrow-rewrite"
    max_rounds = 3

    def configuration(self) -> dict[str, str]:
        return {"loop": f"read_table, write_table, zstd alike; {THREADS} threads, a file each"}

    def fresh(self, start: Base) -> None:
        self.files = sorted(start.java.data.rglob("*.parquet"))

    def merge(self, source: Source) -> None:  # noqa: ARG002 - the rows do not matter
        target = self.lab.scratch / "rewrite"
        target.mkdir(parents=True)
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda at: _rewrite(at[1], target, at[0]), enumerate(self.files)))
        finally:
            shutil.rmtree(target)


def _rewrite(path: Path, folder: Path, number: int) -> None:
    _write(pq.ParquetFile(path).read(use_threads=False), folder, number)


class PyArrowUpsert(Editor):
    """Reads the source and writes it in files of its buckets: what any upsert does at the least."""

    name = "pyarrow-upsert"

    def configuration(self) -> dict[str, str]:
        return {"loop": f"read the source, write it, zstd alike; {THREADS} threads"}

    def fresh(self, start: Base) -> None:
        """Nothing is kept of the table."""
        del start

    def upsert(self, source: Source) -> None:
        target = self.lab.scratch / "upserted"
        target.mkdir(parents=True)
        try:
            rows = pq.read_table(source.plain)
            share = -(-rows.num_rows // THREADS)
            parts = [rows.slice(first, share) for first in range(0, rows.num_rows, share)]
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda at: _write(at[1], target, at[0]), enumerate(parts)))
        finally:
            shutil.rmtree(target)


def _write(rows: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"{number}.parquet"
    pq.write_table(rows, path, compression="zstd", compression_level=ZSTD_LEVEL)
