"""A bare loop of pyarrow over all files: what rewriting the whole table costs at the least."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from bench.editors.base import Base, Editor

if TYPE_CHECKING:
    from pathlib import Path

    from bench.staging import Source

THREADS = 2


class PyArrowRewrite(Editor):
    """Reads every file and writes it again; no row changes, no table is kept."""

    name = "pyarrow-rewrite"
    max_rounds = 3

    def configuration(self) -> dict[str, str]:
        return {"loop": f"read_table, write_table with zstd; {THREADS} threads, a file each"}

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
    rows = pq.ParquetFile(path).read(use_threads=False)
    pq.write_table(rows, folder / f"{number}.parquet", compression="zstd")
