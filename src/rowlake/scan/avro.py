"""Avro data files.

DataFusion decodes Avro into Arrow; it is imported when the first Avro file is read. It reads
whole files by path, and drops the ids. So the file's header and the index of its blocks are read
here, runs of blocks are handed over as small files (header + blocks), and the ids are taken from
the schema in the header (`rowlake.scan.avro_layout`). Units are runs of blocks; nothing is
pruned. Blocks are decompressed here, within bounds (`rowlake.scan.avro_blocks`).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from rowlake.scan.avro_blocks import pieces_of
from rowlake.scan.avro_layout import (
    Window,
    plain_header,
    read_header,
    runs_of_blocks,
    with_avro_ids,
)
from rowlake.scan.failures import guarded, reading
from rowlake.scan.ids import with_ids
from rowlake.scan.shape import leaf_ranges
from rowlake.storage.tally import count_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping
    from rowlake.scan.project import Columns
    from rowlake.scan.source import Unit
    from rowlake.storage.files import Storage

_UNIT_BYTES = 16 * 1024 * 1024
_PATIENCE_IN_SECONDS = 30.0
_SLOWEST_BYTES_PER_SECOND = 500_000

Decoded = TypeVar("Decoded")


class AvroSource:
    """One open Avro file."""

    def __init__(
        self, location: str, storage: Storage, table: Schema, name_mapping: NameMapping | None
    ) -> None:
        self.location = location
        with reading(location):
            self._stream = storage.open_input(location)
            self._bytes = Window(self._stream)
            header = read_header(self._bytes)
            count_read(header.end)
            self._codec, self._head = header.codec, plain_header(header)
            self._decoder = _Decoder()
            found = with_avro_ids(self._decoder.schema(self._head), header.schema)
            self.units, self._ends = runs_of_blocks(self._bytes, header.end, _UNIT_BYTES)
        self.schema = with_ids(found, table, name_mapping, by_position=False)

    def kept(self, leaves: frozenset[int]) -> frozenset[int]:
        """Return the leaves that come when these are asked for: whole columns."""
        wanted = [
            numbers for _, numbers in leaf_ranges(self.schema.arrow) if leaves.intersection(numbers)
        ]
        return frozenset(leaf for numbers in wanted for leaf in numbers)

    def read(self, unit: Unit, kept: frozenset[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield a run's rows in order."""
        ranges = enumerate(numbers for _, numbers in leaf_ranges(self.schema.arrow))
        indices = [index for index, numbers in ranges if kept.intersection(numbers)]
        with reading(self.location):
            blocks = self._stream.read_at(self._ends[unit.index] - unit.offset, unit.offset)
            count_read(len(blocks))
        for decoded in guarded(self.location, self._decoded(blocks)):
            yield from decoded.select(indices).combine_chunks().to_batches(batch_rows)

    def _decoded(self, blocks: bytes) -> Iterator[pa.Table]:
        for piece in pieces_of(blocks, self._codec):
            decoded = self._decoder.table(self._head + piece.data)
            if decoded.num_rows != piece.num_rows:
                raise ValueError(f"{decoded.num_rows} rows in blocks that count {piece.num_rows}")
            yield decoded

    def may_match(
        self,
        units: list[Unit],
        predicate: Predicate,  # noqa: ARG002
        columns: Columns,  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """Return True for every run: Avro has no statistics."""
        return np.ones(len(units), np.bool_)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class _Decoder:
    """DataFusion's Avro reader, over bytes."""

    def __init__(self) -> None:
        from datafusion import SessionConfig, SessionContext

        # One partition: row positions need the file's order.
        self._context = SessionContext(SessionConfig().with_target_partitions(1))

    def schema(self, data: bytes) -> pa.Schema:
        with _TemporaryFile(data) as path:
            return _in_time(len(data), lambda: self._context.read_avro(path).schema())

    def table(self, data: bytes) -> pa.Table:
        with _TemporaryFile(data) as path:
            return _in_time(len(data), lambda: self._table(path))

    def _table(self, path: str) -> pa.Table:
        frame = self._context.read_avro(path)
        return pa.Table.from_batches(frame.collect(), schema=frame.schema())


def _in_time(size: int, decode: Callable[[], Decoded]) -> Decoded:
    """Return the decoded result; raises `ValueError` if decoding fails or does not end.

    DataFusion 55 never returns from a block whose content is damaged, and cannot be stopped:
    the thread is left behind, the task fails.
    """
    answers: SimpleQueue[tuple[Decoded | None, Exception | None]] = SimpleQueue()

    def run() -> None:
        try:
            answers.put((decode(), None))
        except Exception as error:  # noqa: BLE001 - DataFusion raises nothing more precise
            answers.put((None, error))

    Thread(target=run, daemon=True, name="rowlake-avro").start()
    patience = _PATIENCE_IN_SECONDS + size / _SLOWEST_BYTES_PER_SECOND
    try:
        decoded, error = answers.get(timeout=patience)
    except Empty:
        raise ValueError("its blocks cannot be decoded: their content is damaged") from None
    if error is not None:
        raise ValueError(" ".join(str(error).split())) from error
    assert decoded is not None
    return decoded


class _TemporaryFile:
    """A file with these bytes, removed at the end."""

    def __init__(self, data: bytes) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rowlake-avro-")
        self._path = Path(self._folder.name) / "blocks.avro"
        self._path.write_bytes(data)

    def __enter__(self) -> str:
        return str(self._path)

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
