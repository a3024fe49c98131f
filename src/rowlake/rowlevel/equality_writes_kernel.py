"""The kernel of blind upserts: one task's source rows become data files and equality deletes.

Comes in: source rows with the table's columns, rows of equal keys side by side. Goes out: rows of
`WRITTEN_FILES`, data files and delete files. Invariants: one row per key; on failure no file of the
task is left; memory is bounded by the write contexts, whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.rowlevel.unique import unique_rows
from rowlake.storage.files import Storage
from rowlake.write.conform import conform
from rowlake.write.equality_deletes import EqualityDeleteWriter, key_batch
from rowlake.write.kernel import pieces, write_batches
from rowlake.write.partitions import column_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from rowlake.rowlevel.unique import Keys
    from rowlake.write.context import WriteContext


@dataclass(frozen=True)
class UpsertContext:
    """What all tasks of one blind upsert share; `deletes` has a context per spec."""

    data: WriteContext
    deletes: tuple[WriteContext, ...]
    keys: Keys


def upsert_kernel(
    context: UpsertContext, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the rows, and the deletes of what they replace."""
    deletes = [EqualityDeleteWriter(each) for each in context.deletes]
    conformed = (conform(batch, context.data.schema) for batch in batches if len(batch))
    rows = pieces(unique_rows(conformed, context.keys))
    written: list[pa.RecordBatch] = []
    try:
        written += write_batches(context.data, _with_deletes(context.keys, rows, deletes))
        finished = [writer.close() for writer in deletes]
    except BaseException as error:
        for writer in deletes:
            writer.remove_all(error)
        for batch in written:
            Storage(context.data.io_properties).delete(batch["location"].to_pylist())
        raise
    yield from (batch for batch in (*written, *finished) if len(batch))


def _with_deletes(
    keys: Keys, batches: Iterable[pa.RecordBatch], writers: list[EqualityDeleteWriter]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows as they are; their keys go to the delete writers on the way."""
    for batch in batches:
        columns = {each: column_at(batch, keys.schema, each) for each in keys.field_ids}
        for writer in writers:
            writer.add(key_batch(writer.schema, columns))
        yield batch
