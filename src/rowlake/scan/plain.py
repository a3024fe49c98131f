"""Read row groups of plain Parquet files, which belong to no table.

Comes in: pieces of files, the wanted columns and their target types. Goes out: batches of the
task's schema. Nothing is resolved here: the footers were read when the tasks were made
(`rowlake.sources.plain_parquet`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rowlake.errors import InvalidStatementError
from rowlake.scan.failures import UNREADABLE
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH_ROWS = 128 * 1024


@dataclass(frozen=True)
class PlainPiece:
    """Some row groups of a file; `size_in_bytes` of all their columns."""

    location: str
    row_groups: tuple[int, ...]
    size_in_bytes: int


@dataclass(frozen=True)
class PlainTask:
    """What one task reads: `columns` by their names in the files, which come out as `schema`."""

    files: tuple[PlainPiece, ...]
    columns: tuple[str, ...]
    schema: pa.Schema


def plain_rows(task: PlainTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's files, in their order.

    Raises `InvalidStatementError` with the location for a damaged file, `StorageError` for one that
    cannot be opened.
    """
    for piece in task.files:
        batches = _read(piece, task.columns)
        while True:
            try:
                batch = next(batches, None)
            except UNREADABLE as error:
                cause = " ".join(str(error).split())
                raise InvalidStatementError(
                    f"Cannot read rows from {piece.location}: {cause}. Nothing was written; check "
                    "the file, or read it again."
                ) from error
            if batch is None:
                break
            yield _shaped(batch, task)


def _read(piece: PlainPiece, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    with (
        Storage({}).open_input(piece.location) as stream,
        pq.ParquetFile(stream, arrow_extensions_enabled=False) as file,
    ):
        yield from file.iter_batches(
            batch_size=BATCH_ROWS,
            row_groups=list(piece.row_groups),
            columns=list(columns),
            use_threads=False,
        )


def _shaped(batch: pa.RecordBatch, task: PlainTask) -> pa.RecordBatch:
    found = [batch.column(name) for name in task.columns]
    return pa.RecordBatch.from_arrays(
        [
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(found, task.schema, strict=True)
        ],
        schema=task.schema,
    )
