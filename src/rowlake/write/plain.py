"""Write rows of plain files to a table's files: a load that bypasses Spark rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.scan.plain import plain_rows
from rowlake.write.kernel import write_batches
from rowlake.write.spread import spread_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from rowlake.scan.plain import PlainTask
    from rowlake.write.context import WriteContext


def write_plain(context: WriteContext, task: PlainTask) -> Iterator[pa.RecordBatch]:
    """Write the rows of a task; see `write_batches`."""
    return write_batches(context, plain_rows(task))


def spread_plain(context: WriteContext, keys: int, task: PlainTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task as batches of `SPREAD`; see `spread_batches`."""
    return spread_batches(context, keys, plain_rows(task))
