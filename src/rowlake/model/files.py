"""Files of a table, as columns.

A set of data or delete files is an Arrow table, never a list of objects: a table may have
millions. `files_schema` is the one layout, with the spec's names (`data_file` struct of a
manifest entry, `file_path` called `location`). Rows with inherited values already hold them:
`snapshot_id`, both sequence numbers and `first_row_id` are as a reader must see them.

The `partition` column comes in two forms:

- *native*: a struct typed by the partition spec, as manifests store it (one table per spec);
- *encoded* (`ENCODED_PARTITION`): a list of single-value binary encodings (spec, Appendix D),
  one per partition field in spec order, null for null. It is the same for every spec, so files
  of several specs fit one table, and the encodings joined are a hashable key.

What tasks write comes back as `WRITTEN_FILES`: encoded partitions, no entry columns.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


class Content(enum.IntEnum):
    """What a file holds (the spec's `content` numbers).

    `IMAGES` is none of the spec's: rows that a commit changed, each with what happened to it, for
    formats that keep them beside the table's own files.
    """

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2
    IMAGES = 100


class Status(enum.IntEnum):
    """The status of a manifest entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


# Where deletion vectors are kept: blobs of Puffin files (Iceberg), of Delta Lake's own files, or
# the location itself, `inline:` and the vector in Z85.
PUFFIN, DELTA_VECTOR, INLINE_VECTOR = "PUFFIN", "DELTA_VECTOR", "INLINE_VECTOR"
VECTOR_FORMATS = (PUFFIN, DELTA_VECTOR, INLINE_VECTOR)
INLINE_PREFIX = "inline:"

ENCODED_PARTITION = pa.list_(pa.field("element", pa.binary()))
COUNTS = pa.map_(pa.int32(), pa.int64())
BOUNDS = pa.map_(pa.int32(), pa.binary())

ENTRY_FIELDS = [
    pa.field("status", pa.int8()),
    pa.field("snapshot_id", pa.int64()),
    pa.field("data_sequence_number", pa.int64()),
    pa.field("file_sequence_number", pa.int64()),
]


def file_fields(partition: pa.DataType) -> list[pa.Field]:
    """Return the columns of the `data_file` struct, with this type for `partition`."""
    return [
        pa.field("content", pa.int8()),
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),  # upper case: PARQUET, ORC, AVRO, or a vector's
        pa.field("spec_id", pa.int32()),
        pa.field("partition", partition),
        pa.field("record_count", pa.int64()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("column_sizes", COUNTS),
        pa.field("value_counts", COUNTS),
        pa.field("null_value_counts", COUNTS),
        pa.field("nan_value_counts", COUNTS),
        pa.field("lower_bounds", BOUNDS),
        pa.field("upper_bounds", BOUNDS),
        pa.field("key_metadata", pa.binary()),
        pa.field("split_offsets", pa.list_(pa.field("element", pa.int64()))),
        pa.field("equality_ids", pa.list_(pa.field("element", pa.int32()))),
        pa.field("sort_order_id", pa.int32()),
        pa.field("first_row_id", pa.int64()),
        pa.field("referenced_data_file", pa.string()),
        pa.field("content_offset", pa.int64()),
        pa.field("content_size_in_bytes", pa.int64()),
    ]


def files_schema(partition: pa.DataType) -> pa.Schema:
    """Return the layout of entries read from manifests: entry columns, then file columns."""
    return pa.schema(ENTRY_FIELDS + file_fields(partition))


WRITTEN_FILES = pa.schema(file_fields(ENCODED_PARTITION))


@dataclass(frozen=True)
class DeleteFile:
    """One delete file as a scan task applies it; positions and vectors first, then equality."""

    content: Content
    location: str
    file_format: str
    file_size_in_bytes: int
    record_count: int
    equality_ids: tuple[int, ...] = ()
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    @property
    def is_vector(self) -> bool:
        """True for a deletion vector."""
        return self.file_format in VECTOR_FORMATS

    @property
    def key(self) -> tuple[str, int | None]:
        """Identifies a delete file: vectors share files, so location is not enough."""
        return self.location, self.content_offset


def are_vectors(formats: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return which of some file formats are those of deletion vectors."""
    return pc.is_in(formats, value_set=pa.array(VECTOR_FORMATS))


# A snapshot's manifest list as a table; the names are the spec's, `manifest_path` called
# `location`, and counts are those of v2 and v3 (v1's missing ones are read as null).
MANIFESTS = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("manifest_length", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("content", pa.int8()),  # 0 data, 1 deletes
        pa.field("sequence_number", pa.int64()),
        pa.field("min_sequence_number", pa.int64()),
        pa.field("added_snapshot_id", pa.int64()),
        pa.field("added_files_count", pa.int32()),
        pa.field("existing_files_count", pa.int32()),
        pa.field("deleted_files_count", pa.int32()),
        pa.field("added_rows_count", pa.int64()),
        pa.field("existing_rows_count", pa.int64()),
        pa.field("deleted_rows_count", pa.int64()),
        pa.field(
            "partitions",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("contains_null", pa.bool_()),
                            pa.field("contains_nan", pa.bool_()),
                            pa.field("lower_bound", pa.binary()),
                            pa.field("upper_bound", pa.binary()),
                        ]
                    ),
                )
            ),
        ),
        pa.field("key_metadata", pa.binary()),
        pa.field("first_row_id", pa.int64()),
    ]
)
