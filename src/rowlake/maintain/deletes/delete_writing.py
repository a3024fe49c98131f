"""What tasks that rewrite deletes yield: data files with new deletes, and the delete files written.

Runs in tasks. A dry run goes the same way with a writer that writes nothing, so that it says what
the real run then does.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import RowlakeError
from rowlake.model.file_layout import operation_mark
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.secrets import redacted_repr
from rowlake.storage.files import Storage
from rowlake.write.position_deletes import PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.model.file_layout import VectorFiles
    from rowlake.write.position_deletes import DeletedPositions

_DELETE_KEY = pa.struct([("location", pa.string()), ("content_offset", pa.int64())])
# Rows of two kinds: of a data file that was read or has new deletes (`source`), and of a delete
# file that was written (`file`), with the data sequence number that it keeps, if any.
DELETES_WRITTEN = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("has_new_deletes", pa.bool_()),
        pa.field("rows", pa.int64()),
        pa.field("replaced_deletes", pa.list_(_DELETE_KEY)),
        pa.field("sequence_number", pa.int64()),
        pa.field("file", pa.struct(list(WRITTEN_FILES))),
    ]
)


@dataclass(frozen=True)
class DeleteWriting:
    """Where and how tasks write delete files; `operation_id` is in the names of the files."""

    folder: str
    as_vectors: bool
    granularity: str
    operation_id: str
    io_properties: Mapping[str, str]
    dry_run: bool = False
    vectors: VectorFiles | None = None

    __repr__ = redacted_repr

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return Storage(self.io_properties)

    def writer(self, storage: Storage) -> Writer:
        """Return what writes delete files, or says what would be written."""
        if self.dry_run:
            return _Counter(self.as_vectors, self.granularity)
        return PositionDeleteWriter(
            self.folder, self.as_vectors, self.granularity, storage, self.operation_id, self.vectors
        )

    def remove_attempt(self) -> None:
        """Remove the files of tasks whose answers were lost; they are found by their names.

        A storage that cannot be listed must not hide why the work failed.
        """
        if self.dry_run:
            return
        with suppress(RowlakeError):
            storage = self.storage
            found = storage.list(self.folder)
            mark = operation_mark(self.operation_id)
            storage.delete([each.location for each in found if mark in each.location])


class Writer(Protocol):
    """What writes delete files."""

    def write(self, deleted: list[DeletedPositions]) -> pa.Table:
        """Return the delete files of some deleted positions."""


@dataclass(frozen=True)
class _Counter:
    """Says which delete files would be written: rows without names and sizes."""

    as_vectors: bool
    granularity: str

    def write(self, deleted: list[DeletedPositions]) -> pa.Table:
        by_file = self.as_vectors or self.granularity == "file"
        counts: dict[object, int] = defaultdict(int)
        for one in deleted:
            key = one.location if by_file else (one.spec_id, one.partition)
            counts[key] += len(one.positions)
        content = int(Content.POSITION_DELETES)
        rows = [
            {**dict.fromkeys(WRITTEN_FILES.names), "content": content, "record_count": count}
            for count in counts.values()
        ]
        return pa.Table.from_pylist(rows, WRITTEN_FILES)


def source_batch(sources: Sequence[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield rows of `DELETES_WRITTEN` for data files."""
    if sources:
        yield pa.RecordBatch.from_pylist([dict(row) for row in sources], DELETES_WRITTEN)


def file_batches(files: pa.Table, sequence_number: int | None) -> Iterator[pa.RecordBatch]:
    """Yield rows of `DELETES_WRITTEN` for written delete files."""
    for batch in files.combine_chunks().to_batches():
        struct = pa.StructArray.from_arrays(batch.columns, fields=list(WRITTEN_FILES))
        columns = [pa.nulls(len(batch), kind.type) for kind in DELETES_WRITTEN][:-2]
        numbers = pa.repeat(pa.scalar(sequence_number, pa.int64()), len(batch))
        yield pa.RecordBatch.from_arrays([*columns, numbers, struct], schema=DELETES_WRITTEN)


@dataclass(frozen=True)
class WrittenDeletes:
    """What all tasks did, put together."""

    data_files: frozenset[str]
    read: int
    rows: int
    replaced_deletes: frozenset[tuple[str, int | None]]
    sequence_numbers: Mapping[str, int]
    files: pa.Table

    @classmethod
    def of(cls, found: pa.Table) -> WrittenDeletes:
        """Return the sum of what tasks yielded."""
        is_file = pc.is_valid(found["file"])
        written, sources = found.filter(is_file), found.filter(pc.invert(is_file))
        data_files = sources.filter(pc.fill_null(sources["has_new_deletes"], False))
        files = unwrapped(written["file"])
        numbers = zip(
            files["location"].to_pylist(), written["sequence_number"].to_pylist(), strict=True
        )
        replaced = pc.list_flatten(sources["replaced_deletes"]).to_pylist()
        return cls(
            data_files=frozenset(data_files["source"].to_pylist()),
            read=sources.num_rows,
            rows=pc.sum(sources["rows"]).as_py() or 0,
            replaced_deletes=frozenset(
                (old["location"], old["content_offset"]) for old in replaced
            ),
            sequence_numbers={
                place: number for place, number in numbers if place and number is not None
            },
            files=files,
        )

    @property
    def size_in_bytes(self) -> int:
        """The bytes of the delete files: of vectors their own, not those of their Puffin file."""
        sizes = pc.coalesce(self.files["content_size_in_bytes"], self.files["file_size_in_bytes"])
        return pc.sum(sizes).as_py() or 0


def unwrapped(structs: pa.ChunkedArray) -> pa.Table:
    """Return structs of `WRITTEN_FILES` as a table."""
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=WRITTEN_FILES)
        for chunk in structs.chunks
        if len(chunk)
    ]
    return pa.Table.from_batches(batches, WRITTEN_FILES)
