"""The layouts of manifests and manifest lists, v1 to v3.

Comes in: a format version and a partition type. Goes out: the columns of the file, with their
ids, in the order and with the words of Iceberg's Java library.
Invariant: readers find columns by field id, never by name; `FIELD_IDS` names ours.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.codecs.avro_schema import Column, ListOf, MapOf, StructOf
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.schema import children, field_id
from rowlake.model.type_names import primitive_name

if TYPE_CHECKING:
    import pyarrow as pa

DATA_FILE_ID = 2
PARTITION_ID = 102
BLOCK_SIZE_ID = 105

FIELD_IDS = {
    "status": 0,
    "snapshot_id": 1,
    "data_sequence_number": 3,
    "file_sequence_number": 4,
    "content": 134,
    "location": 100,
    "file_format": 101,
    "partition": PARTITION_ID,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "column_sizes": 108,
    "value_counts": 109,
    "null_value_counts": 110,
    "nan_value_counts": 137,
    "lower_bounds": 125,
    "upper_bounds": 128,
    "key_metadata": 131,
    "split_offsets": 132,
    "equality_ids": 135,
    "sort_order_id": 140,
    "first_row_id": 142,
    "referenced_data_file": 143,
    "content_offset": 144,
    "content_size_in_bytes": 145,
}

MANIFEST_FIELD_IDS = {
    "location": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "content": 517,
    "sequence_number": 515,
    "min_sequence_number": 516,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "partitions": 507,
    "key_metadata": 519,
    "first_row_id": 520,
}


_STATUS = Column(0, "status", "int", required=True)
_SNAPSHOT_ID = Column(1, "snapshot_id", "long")
_SEQUENCE_NUMBERS = (
    Column(3, "sequence_number", "long"),
    Column(4, "file_sequence_number", "long"),
)

_FILE_COLUMNS = {
    column.field_id: column
    for column in (
        Column(
            134,
            "content",
            "int",
            required=True,
            doc="Contents of the file: 0=data, 1=position deletes, 2=equality deletes",
        ),
        Column(100, "file_path", "string", required=True, doc="Location URI with FS scheme"),
        Column(
            101,
            "file_format",
            "string",
            required=True,
            doc="File format name: avro, orc, or parquet",
        ),
        Column(103, "record_count", "long", required=True, doc="Number of records in the file"),
        Column(104, "file_size_in_bytes", "long", required=True, doc="Total file size in bytes"),
        Column(BLOCK_SIZE_ID, "block_size_in_bytes", "long", required=True),
        Column(
            108,
            "column_sizes",
            MapOf(117, 118, "long"),
            doc="Map of column id to total size on disk",
        ),
        Column(
            109,
            "value_counts",
            MapOf(119, 120, "long"),
            doc="Map of column id to total count, including null and NaN",
        ),
        Column(
            110,
            "null_value_counts",
            MapOf(121, 122, "long"),
            doc="Map of column id to null value count",
        ),
        Column(
            137,
            "nan_value_counts",
            MapOf(138, 139, "long"),
            doc="Map of column id to number of NaN values in the column",
        ),
        Column(
            125, "lower_bounds", MapOf(126, 127, "binary"), doc="Map of column id to lower bound"
        ),
        Column(
            128, "upper_bounds", MapOf(129, 130, "binary"), doc="Map of column id to upper bound"
        ),
        Column(131, "key_metadata", "binary", doc="Encryption key metadata blob"),
        Column(132, "split_offsets", ListOf(133, "long"), doc="Splittable offsets"),
        Column(135, "equality_ids", ListOf(136, "int"), doc="Equality comparison field IDs"),
        Column(140, "sort_order_id", "int", doc="Sort order ID"),
        Column(
            142,
            "first_row_id",
            "long",
            doc="The first row ID assigned to the first row in the data file",
        ),
        Column(
            143,
            "referenced_data_file",
            "string",
            doc="Fully qualified location (URI with FS scheme) of a data file that all deletes "
            "reference",
        ),
        Column(
            144, "content_offset", "long", doc="The offset in the file where the content starts"
        ),
        Column(
            145,
            "content_size_in_bytes",
            "long",
            doc="The length of referenced content stored in the file",
        ),
    )
}

_METRICS = (108, 109, 110, 137, 125, 128)
_V2_FILE = (134, 100, 101, PARTITION_ID, 103, 104, *_METRICS, 131, 132, 135, 140)
_FILE_ORDER = {
    1: (100, 101, PARTITION_ID, 103, 104, BLOCK_SIZE_ID, *_METRICS, 131, 132, 140),
    2: (*_V2_FILE, 143),
    3: (*_V2_FILE, 142, 143, 144, 145),
}

_SUMMARY = StructOf(
    (
        Column(
            509,
            "contains_null",
            "boolean",
            required=True,
            doc="True if any file has a null partition value",
        ),
        Column(518, "contains_nan", "boolean", doc="True if any file has a nan partition value"),
        Column(510, "lower_bound", "binary", doc="Partition lower bound for all files"),
        Column(511, "upper_bound", "binary", doc="Partition upper bound for all files"),
    )
)
_LIST_COLUMNS = {
    column.field_id: column
    for column in (
        Column(500, "manifest_path", "string", required=True, doc="Location URI with FS scheme"),
        Column(501, "manifest_length", "long", required=True, doc="Total file size in bytes"),
        Column(502, "partition_spec_id", "int", required=True, doc="Spec ID used to write"),
        Column(517, "content", "int", doc="Contents of the manifest: 0=data, 1=deletes"),
        Column(515, "sequence_number", "long", doc="Sequence number when the manifest was added"),
        Column(516, "min_sequence_number", "long", doc="Lowest sequence number in the manifest"),
        Column(
            503,
            "added_snapshot_id",
            "long",
            required=True,
            doc="Snapshot ID that added the manifest",
        ),
        Column(504, "added_files_count", "int", doc="Added entry count"),
        Column(505, "existing_files_count", "int", doc="Existing entry count"),
        Column(506, "deleted_files_count", "int", doc="Deleted entry count"),
        Column(512, "added_rows_count", "long", doc="Added rows count"),
        Column(513, "existing_rows_count", "long", doc="Existing rows count"),
        Column(514, "deleted_rows_count", "long", doc="Deleted rows count"),
        Column(507, "partitions", ListOf(508, _SUMMARY), doc="Summary for each partition"),
        Column(519, "key_metadata", "binary", doc="Encryption key metadata blob"),
        Column(
            520,
            "first_row_id",
            "long",
            doc="Starting row ID to assign to new rows in ADDED data files",
        ),
    )
}
_LIST_ORDER = {
    1: (500, 501, 502, 503, 504, 505, 506, 507, 512, 513, 514, 519),
    2: (500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514, 507, 519),
    3: (500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514, 507, 519, 520),
}
_LIST_REQUIRED_SINCE_V2 = (517, 515, 516, 504, 505, 506, 512, 513, 514)


def entry_struct(format_version: int, partition: pa.StructType) -> StructOf:
    """Return the layout of a manifest's entries (spec, Manifests)."""
    check_version(format_version)
    doc = "Partition data tuple, schema based on the partition spec"
    partition_column = Column(
        PARTITION_ID,
        "partition",
        partition_struct(partition),
        required=True,
        doc=None if format_version == 1 else doc,
    )
    columns = {**_FILE_COLUMNS, PARTITION_ID: partition_column}
    data_file = StructOf(tuple(columns[wanted] for wanted in _FILE_ORDER[format_version]))
    numbers = () if format_version == 1 else _SEQUENCE_NUMBERS
    file_column = Column(DATA_FILE_ID, "data_file", data_file, required=True)
    return StructOf((_STATUS, _SNAPSHOT_ID, *numbers, file_column))


def manifest_list_struct(format_version: int) -> StructOf:
    """Return the layout of a manifest list (spec, Manifest Lists)."""
    check_version(format_version)
    columns = [_LIST_COLUMNS[wanted] for wanted in _LIST_ORDER[format_version]]
    if format_version == 1:
        return StructOf(tuple(columns))
    return StructOf(
        tuple(
            replace(column, required=column.required or column.field_id in _LIST_REQUIRED_SINCE_V2)
            for column in columns
        )
    )


def check_version(format_version: int) -> None:
    """Raise UnsupportedFeatureError unless manifests of this version can be written."""
    if format_version not in _FILE_ORDER:
        raise UnsupportedFeatureError(
            f"Cannot write manifests of format version {format_version}: "
            "rowlake writes versions 1, 2 and 3."
        )


def partition_struct(partition: pa.StructType) -> StructOf:
    """Return the layout of partition values; every field carries its id."""
    columns = []
    for field in children(partition):
        identifier = field_id(field)
        if identifier is None:
            raise UnsupportedFeatureError(f"Partition field {field.name} has no field id.")
        primitive = primitive_name(field)
        if primitive is None:
            raise UnsupportedFeatureError(
                f"{field.name}: a partition value cannot be a {field.type}."
            )
        columns.append(Column(identifier, field.name, primitive))
    return StructOf(tuple(columns))
