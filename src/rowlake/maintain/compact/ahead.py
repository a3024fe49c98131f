"""Rows read ahead: the next batches are read while the ones before are written."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    import pyarrow as pa

DEPTH = 3
NAME = "rowlake-read-ahead"


def read_ahead(
    batches: Iterable[pa.RecordBatch], depth: int = DEPTH
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the same batches, produced by a thread that runs a bounded number ahead.

    What fails there fails here, in its place. Closing the generator ends the thread.
    """
    made = iter(batches)
    with ThreadPoolExecutor(1, NAME) as reader:
        try:
            waiting = deque(reader.submit(next, made, None) for _ in range(depth))
            while (batch := waiting.popleft().result()) is not None:
                waiting.append(reader.submit(next, made, None))
                yield batch
        finally:
            reader.shutdown(cancel_futures=True)
