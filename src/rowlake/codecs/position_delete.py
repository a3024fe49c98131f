"""Position delete files: which rows of which data files are deleted, as sorted pairs.

Comes in: batches of (file_path, pos); goes out: sorted positions per data file. And back: pairs
to a Parquet file, sorted by file then position (spec, "Position Delete Files"), with the metrics
that its manifest entry needs: full bounds of `file_path`, by which readers find out that all
deletes are for one data file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rowlake.model.distinct import distinct
from rowlake.model.schema import FIELD_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from rowlake.storage.files import Storage

FILE_PATH_ID = 2147483546
POS_ID = 2147483545

POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), False, metadata={FIELD_ID: str(FILE_PATH_ID).encode()}),
        pa.field("pos", pa.int64(), False, metadata={FIELD_ID: str(POS_ID).encode()}),
    ]
)
_DICTIONARY = pa.schema(
    [
        POSITION_DELETES.field(0).with_type(pa.dictionary(pa.int32(), pa.string())),
        POSITION_DELETES.field(1),
    ]
)
# Iceberg Java marks its delete files so; readers that look at the file alone can tell.
_FILE_METADATA = {b"delete-type": b"position"}
_ROW_GROUP_ROWS = 1_000_000


@dataclass(frozen=True)
class WrittenPositionDeletes:
    """A position delete file that was written; metrics by field id, bounds in binary form."""

    location: str
    file_size_in_bytes: int
    record_count: int
    referenced_data_file: str | None
    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


def positions_by_file(
    batches: Iterable[tuple[pa.Array, pa.Array]],
) -> dict[str, NDArray[np.int64]]:
    """Return the sorted, distinct positions per data file of (file_path, pos) columns."""
    parts: dict[str, list[NDArray[np.int64]]] = defaultdict(list)
    for paths, positions in batches:
        for path, found in _runs(paths, positions):
            parts[path].append(found)
    return {path: merged(found) for path, found in parts.items()}


def merged(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return sorted, distinct positions of several arrays."""
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if not (found[1:] > found[:-1]).all():  # differences of odd positions would overflow
        found = distinct(found)
    return found


def write_positions(
    location: str,
    positions: Mapping[str, NDArray[np.int64]],
    storage: Storage,
    *,
    compression: str = "zstd",
) -> WrittenPositionDeletes:
    """Write sorted positions by data file; paths are a dictionary, never repeated row by row."""
    paths = sorted(positions)
    counts = [len(positions[path]) for path in paths]
    codes = np.repeat(np.arange(len(paths), dtype=np.int32), counts)
    named = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(paths, pa.string()))
    found = pa.array(np.concatenate([positions[path] for path in paths]), pa.int64())
    return _write_ordered(location, pa.table([named, found], _DICTIONARY), storage, compression)


def _write_ordered(
    location: str, ordered: pa.Table, storage: Storage, compression: str
) -> WrittenPositionDeletes:
    settings = {"compression": compression, "store_schema": False}
    with (
        storage.open_output(location) as stream,
        pq.ParquetWriter(stream, ordered.schema, **settings) as writer,
    ):
        writer.add_key_value_metadata(_FILE_METADATA)
        writer.write_table(ordered, row_group_size=_ROW_GROUP_ROWS)
        writer.close()
        size, footer = stream.tell(), writer.writer.metadata
    return _written(location, size, ordered, footer)


def _written(
    location: str, size: int, ordered: pa.Table, footer: pq.FileMetaData
) -> WrittenPositionDeletes:
    paths, positions = ordered["file_path"], ordered["pos"]
    extremes = pc.min_max(positions).as_py()
    first, last = paths[0].as_py(), paths[-1].as_py()
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    ids = (FILE_PATH_ID, POS_ID)
    return WrittenPositionDeletes(
        location=location,
        file_size_in_bytes=size,
        record_count=ordered.num_rows,
        referenced_data_file=first if first == last else None,
        column_sizes={
            key: sum(group.column(at).total_compressed_size for group in groups)
            for at, key in enumerate(ids)
        },
        value_counts=dict.fromkeys(ids, ordered.num_rows),
        null_value_counts=dict.fromkeys(ids, 0),
        lower_bounds={FILE_PATH_ID: first.encode(), POS_ID: _long(extremes["min"])},
        upper_bounds={FILE_PATH_ID: last.encode(), POS_ID: _long(extremes["max"])},
        split_offsets=tuple(_start(group) for group in groups),
    )


def _start(group: pq.RowGroupMetaData) -> int:
    column = group.column(0)
    start: int = column.dictionary_page_offset or column.data_page_offset
    return start


def _long(value: int) -> bytes:
    return int(value).to_bytes(8, "little", signed=True)


def _runs(paths: pa.Array, positions: pa.Array) -> Iterable[tuple[str, NDArray[np.int64]]]:
    """Yield runs of one data file's positions."""
    encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    found = positions.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if not len(codes):
        return
    names = encoded.dictionary
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    if len(starts) > 2 * len(names):  # not sorted by file
        order = np.argsort(codes, kind="stable")
        codes, found = codes[order], found[order]
        starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1))
    for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
        yield names[int(codes[start])].as_py(), found[start:stop]
