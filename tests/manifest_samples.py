"""Entries of manifests for tests: a partition type with everything in it, and tables of files."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rowlake.iceberg.manifest_writer import ManifestHeader
from rowlake.model.files import files_schema
from rowlake.model.schema import FIELD_ID, TYPE_NAME

UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MOMENT = dt.datetime(2017, 11, 16, 22, 31, 8, 123456)
UTC = dt.timezone.utc

# Name, type and value of every partition type; the golden `types` tables have the same.
PARTITION: list[tuple[str, pa.DataType, Any]] = [
    ("bool", pa.bool_(), True),
    ("int", pa.int32(), -7),
    ("long", pa.int64(), 1 << 40),
    ("float", pa.float32(), 1.5),
    ("double", pa.float64(), -2.25),
    ("date", pa.date32(), dt.date(1969, 12, 29)),
    ("time", pa.time64("us"), dt.time(1, 0, 0, 1)),
    ("ts", pa.timestamp("us"), MOMENT),
    ("tstz", pa.timestamp("us", "UTC"), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("string", pa.string(), "a/b=é"),
    ("uuid", pa.binary(16), UUID.bytes),
    ("fixed", pa.binary(3), b"\x00\x01\xff"),
    ("binary", pa.binary(), b"\x09\x08"),
    ("dec9", pa.decimal128(9, 2), Decimal("-14.20")),
    ("dec38", pa.decimal128(38, 10), Decimal("12345678901234567890.0123456789")),
    ("odd.name with-é", pa.string(), "odd"),
    ("2nd", pa.int32(), 2),
    ("string_bucket", pa.int32(), 3),
    ("ts_day", pa.date32(), dt.date(2017, 11, 16)),
    ("bin_trunc", pa.binary(), b"\x09"),
    ("int_void", pa.int32(), None),
]


def partition_field(field_id: int, name: str, of: pa.DataType) -> pa.Field:
    metadata = {FIELD_ID: str(field_id).encode()}
    if name == "uuid":
        metadata[TYPE_NAME] = b"uuid"
    return pa.field(name, of, metadata=metadata)


def partition_type(*names: str) -> pa.StructType:
    """Return a partition type of these fields of PARTITION, all of them by default."""
    numbered = [(1000 + at, name, of) for at, (name, of, _) in enumerate(PARTITION)]
    return pa.struct(
        [partition_field(*field) for field in numbered if not names or field[1] in names]
    )


def partition_values(of: pa.StructType) -> dict[str, Any]:
    values = {name: value for name, _, value in PARTITION}
    return {field.name: values[field.name] for field in of}


UNPARTITIONED = pa.struct([])


def entry(**values: Any) -> dict[str, Any]:
    """Return one entry: an ADDED Parquet data file, but for the values given."""
    made = {
        "status": 1,
        "snapshot_id": 77,
        "content": 0,
        "location": "s3://bucket/table/data/a.parquet",
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": {},
        "record_count": 10,
        "file_size_in_bytes": 1000,
    }
    return {**made, **values}


def entries(rows: list[dict[str, Any]], partition: pa.StructType = UNPARTITIONED) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=files_schema(partition))


def header(**values: Any) -> ManifestHeader:
    made = {
        "format_version": 2,
        "content": 0,
        "snapshot_id": 77,
        "spec_id": 0,
        "schema_json": '{"type":"struct","schema-id":0,"fields":[]}',
        "spec_json": "[]",
    }
    return ManifestHeader(**{**made, **values})


def committed(manifests: pa.Table, sequence_number: int = 5, first_row_id: int | None = None):
    """Return rows of new manifests as a manifest list would have them."""
    rows = [
        {
            **row,
            "sequence_number": sequence_number,
            "min_sequence_number": row["min_sequence_number"] or sequence_number,
            "first_row_id": first_row_id,
        }
        for row in manifests.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=manifests.schema)
