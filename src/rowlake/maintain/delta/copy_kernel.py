"""Copies of files, in tasks: what a deep clone has of its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COPIED = pa.schema([pa.field("location", pa.string()), pa.field("size", pa.int64())])
_CHUNK_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class CopyTask:
    """Files to copy, each from a location to another."""

    pairs: tuple[tuple[str, str], ...]
    io_properties: Mapping[str, str]

    __repr__ = redacted_repr


def copy_kernel(task: CopyTask) -> Iterator[pa.RecordBatch]:
    """Yield a row per file that was copied."""
    storage = Storage(task.io_properties)
    rows = [{"location": to, "size": _copy(source, to, storage)} for source, to in task.pairs]
    yield pa.RecordBatch.from_pylist(rows, schema=COPIED)


def _copy(source: str, to: str, storage: Storage) -> int:
    size = 0
    with storage.open_input(source) as stream, storage.open_output(to) as out:
        while chunk := stream.read(_CHUNK_BYTES):
            out.write(chunk)
            size += len(chunk)
    return size
