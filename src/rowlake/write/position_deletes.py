"""Deleted positions of data files -> deletion vectors or position delete files.

Comes in: for each data file all positions that are deleted now, older ones included. Goes out:
rows of `WRITTEN_FILES`. Vectors of one task share a Puffin file; position delete files are sorted
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
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    """Where and how delete files are written; their names hold `operation_id`."""

    folder: str
    as_vectors: bool
    granularity: str
    storage: Storage
    operation_id: str = ""

    def write(self, marked: list[DeletedPositions]) -> pa.Table:
        """Write the marks of some data files; return the delete files. A failure leaves none."""
        if not marked:
            return WRITTEN_FILES.empty_table()
        begun: list[str] = []
        write = self._vectors if self.as_vectors else self._positions
        try:
            return pa.Table.from_pylist(write(marked, begun), WRITTEN_FILES)
        except BaseException:
            self.storage.delete(begun)
            raise

    def _location(self, suffix: str, begun: list[str]) -> str:
        name = "-".join(part for part in (self.operation_id, str(uuid.uuid4())) if part)
        begun.append(f"{self.folder}/{name}-deletes.{suffix}")
        return begun[-1]

    def _vectors(self, marked: list[DeletedPositions], begun: list[str]) -> list[dict[str, Any]]:
        blobs = [vector_blob(bitmap_of(mark.positions), mark.location) for mark in marked]
        puffin = write_puffin(blobs, created_by=f"rowlake {__version__}")
        location = self._location("puffin", begun)
        self.storage.write(location, puffin.data)
        return [
            _row(
                mark,
                location=location,
                file_format="PUFFIN",
                record_count=len(mark.positions),
                file_size_in_bytes=len(puffin.data),
                referenced_data_file=mark.location,
                content_offset=blob.offset,
                content_size_in_bytes=blob.length,
            )
            for mark, blob in zip(marked, puffin.blobs, strict=True)
        ]

    def _positions(self, marked: list[DeletedPositions], begun: list[str]) -> list[dict[str, Any]]:
        groups: dict[Any, list[DeletedPositions]] = defaultdict(list)
        for mark in marked:
            by_partition = (mark.spec_id, mark.partition)
            groups[mark.location if self.granularity == "file" else by_partition].append(mark)
        return [self._position_file(group, begun) for group in groups.values()]

    def _position_file(self, group: list[DeletedPositions], begun: list[str]) -> dict[str, Any]:
        positions = {mark.location: mark.positions for mark in group}
        made = write_positions(self._location("parquet", begun), positions, self.storage)
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


def _row(mark: DeletedPositions, **facts: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(WRITTEN_FILES.names),
        "content": int(Content.POSITION_DELETES),
        "spec_id": mark.spec_id,
        "partition": list(mark.partition),
        **facts,
    }
