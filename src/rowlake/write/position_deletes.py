"""Deleted positions of data files -> deletion vectors or position delete files.

Comes in: for each data file all positions that are deleted now, older ones included. Goes out:
rows of `WRITTEN_FILES`. Vectors of one task share a file (Puffin, or what the table's layout has);
position delete files are sorted
by file and position (spec, "Position Delete Files").
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.codecs.deletion_vector import bitmap_of
from rowlake.codecs.position_delete import write_positions
from rowlake.codecs.puffin import vector_blob, write_puffin
from rowlake.model.file_layout import PackedVectors
from rowlake.model.files import PUFFIN, WRITTEN_FILES, Content
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from pyroaring import BitMap64

    from rowlake.model.file_layout import VectorFiles
    from rowlake.storage.files import Storage

Partition = tuple["bytes | None", ...]


@dataclass(frozen=True)
class DeletedPositions:
    """The deleted positions of one data file."""

    location: str
    spec_id: int
    partition: Partition
    positions: NDArray[np.int64]


@dataclass(frozen=True)
class PositionDeleteWriter:
    """Where and how delete files are written; their names hold the mark of `operation_id`."""

    folder: str
    as_vectors: bool
    granularity: str
    storage: Storage
    operation_id: str = ""
    vectors: VectorFiles | None = None

    def write(self, deleted: list[DeletedPositions]) -> pa.Table:
        """Write deleted positions; return the delete files. A failure leaves none behind."""
        if not deleted:
            return WRITTEN_FILES.empty_table()
        begun: list[str] = []
        write = self._vectors if self.as_vectors else self._positions
        try:
            return pa.Table.from_pylist(write(deleted, begun), WRITTEN_FILES)
        except BaseException:
            self.storage.delete(begun)
            raise

    def _vectors(self, deleted: list[DeletedPositions], begun: list[str]) -> list[dict[str, Any]]:
        kept_in = self.vectors or PUFFIN_VECTORS
        packed = kept_in.pack([(one.location, bitmap_of(one.positions)) for one in deleted])
        begun.append(f"{self.folder}/{kept_in.name(self.operation_id)}")
        self.storage.write(begun[-1], packed.data)
        return [
            _row(
                one,
                location=begun[-1],
                file_format=kept_in.file_format,
                record_count=len(one.positions),
                file_size_in_bytes=len(packed.data),
                referenced_data_file=one.location,
                content_offset=offset,
                content_size_in_bytes=length,
            )
            for one, (offset, length) in zip(deleted, packed.places, strict=True)
        ]

    def _positions(self, deleted: list[DeletedPositions], begun: list[str]) -> list[dict[str, Any]]:
        groups: dict[Any, list[DeletedPositions]] = defaultdict(list)
        for one in deleted:
            by_partition = (one.spec_id, one.partition)
            groups[one.location if self.granularity == "file" else by_partition].append(one)
        return [self._position_file(group, begun) for group in groups.values()]

    def _position_file(self, group: list[DeletedPositions], begun: list[str]) -> dict[str, Any]:
        positions = {one.location: one.positions for one in group}
        begun.append(f"{self.folder}/{new_name(self.operation_id, 'parquet')}")
        made = write_positions(begun[-1], positions, self.storage)
        return _row(
            group[0],
            location=made.location,
            file_format="PARQUET",
            record_count=made.record_count,
            file_size_in_bytes=made.file_size_in_bytes,
            referenced_data_file=made.referenced_data_file,
            column_sizes=list(made.column_sizes.items()),
            value_counts=list(made.value_counts.items()),
            null_value_counts=list(made.null_value_counts.items()),
            lower_bounds=list(made.lower_bounds.items()),
            upper_bounds=list(made.upper_bounds.items()),
            split_offsets=list(made.split_offsets),
        )


@dataclass(frozen=True)
class PuffinVectors:
    """Vectors as blobs of Puffin files."""

    file_format: str = PUFFIN

    def name(self, operation_id: str) -> str:
        """Return a new file name."""
        return new_name(operation_id, "puffin")

    def pack(self, vectors: Sequence[tuple[str, BitMap64]]) -> PackedVectors:
        """Return a Puffin file with a blob for each vector."""
        blobs = [vector_blob(bitmap, location) for location, bitmap in vectors]
        made = write_puffin(blobs, created_by=f"rowlake {__version__}")
        return PackedVectors(made.data, tuple((one.offset, one.length) for one in made.blobs))


PUFFIN_VECTORS = PuffinVectors()


def new_name(operation_id: str, suffix: str) -> str:
    """Return the name of a new delete file of an operation, if there is one."""
    name = "-".join(part for part in (operation_id, str(uuid.uuid4())) if part)
    return f"{name}-deletes.{suffix}"


def _row(one: DeletedPositions, **facts: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(WRITTEN_FILES.names),
        "content": int(Content.POSITION_DELETES),
        "spec_id": one.spec_id,
        "partition": list(one.partition),
        **facts,
    }
