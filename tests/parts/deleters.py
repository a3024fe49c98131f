"""What racing deleters do; in a module of its own, so that other processes can import it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier


def delete_rows(
    number: int, start: Barrier, warehouse: str, catalog: Any, table: str, commits: int
) -> tuple[int, float]:
    """Delete one row of one's own per commit; return the retries that took, and the seconds."""
    from rowlake import connect

    with connect(warehouse, catalog) as lake:
        opened = lake.table(table)
        start.wait()
        began = time.perf_counter()
        retries = 0
        for commit in range(commits):
            result = opened.delete(f"id = {number * commits + commit}", mode="merge-on-read")
            assert result.rows_deleted == 1
            retries += result.retries
        return retries, time.perf_counter() - began


def delete_any_rows(
    number: int, start: Barrier, warehouse: str, catalog: Any, table: str, commits: int
) -> list[int]:
    """Delete the same rows as all others, in an order of one's own; return those one deleted."""
    from rowlake import connect
    from rowlake.errors import CommitConflictError

    deleted = []
    with connect(warehouse, catalog) as lake:
        opened = lake.table(table)
        start.wait()
        for commit in range(commits):
            row = (commit * 7 + number * 3) % commits
            for _ in range(100):
                try:
                    result = opened.delete(f"id = {row}", mode="merge-on-read")
                except CommitConflictError as error:
                    assert error.retryable, error
                    continue
                deleted += [row] * result.rows_deleted
                break
    return deleted
