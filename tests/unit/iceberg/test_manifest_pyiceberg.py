"""Manifests and manifest lists that PyIceberg wrote, read by us."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    NestedField,
    StringType,
    TimestamptzType,
    UUIDType,
)

from rowlake.codecs import avro_file
from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_by_spec
from rowlake.storage.files import Storage
from tests.manifest_samples import partition_field

UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc)

# Name, PyIceberg's type, Arrow's type, what PyIceberg stores, what we read.
COLUMNS = [
    ("i", IntegerType(), pa.int32(), 7, 7),
    ("s", StringType(), pa.string(), "é", "é"),
    ("uuid", UUIDType(), pa.binary(16), UUID, UUID.bytes),
    ("d", DateType(), pa.date32(), 19724, dt.date(2024, 1, 2)),
    ("t", TimestamptzType(), pa.timestamp("us", "UTC"), 1704164645000006, MOMENT),
    ("n", DecimalType(9, 2), pa.decimal128(9, 2), Decimal("-1.50"), Decimal("-1.50")),
    ("f", DoubleType(), pa.float64(), 2.5, 2.5),
    ("odd name.x", StringType(), pa.string(), "odd", "odd"),
]
SCHEMA = Schema(*(NestedField(at + 1, name, of) for at, (name, of, *_) in enumerate(COLUMNS)))
SPEC = PartitionSpec(
    *(
        PartitionField(at + 1, 1000 + at, IdentityTransform(), name)
        for at, (name, *_) in enumerate(COLUMNS)
    ),
    spec_id=0,
)
OURS = pa.struct(
    [partition_field(1000 + at, name, of) for at, (name, _, of, *_) in enumerate(COLUMNS)]
)


@pytest.fixture(params=["python", "datafusion"])
def decoder(request, monkeypatch):
    limit = 0 if request.param == "datafusion" else 1 << 40
    monkeypatch.setattr(avro_file, "SMALL_FILE_BYTES", limit)
    monkeypatch.setattr(avro_file, "TINY_FILE_BYTES", limit)


def data_file(path: str, partition: Record, **values) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=3,
        file_size_in_bytes=100,
        **values,
    )


def write(folder, version: int) -> str:
    """Write one manifest of two files and the list that has it; return the list's location."""
    io = PyArrowFileIO()
    full = Record(*(stored for *_, stored, _ in COLUMNS))
    files = [
        data_file(
            "s3://b/a.parquet",
            full,
            column_sizes={1: 10, 2: 20},
            value_counts={1: 3},
            null_value_counts={},
            lower_bounds={1: b"\x01", 2: b""},
            upper_bounds={1: b"\x02"},
            split_offsets=[4],
            sort_order_id=0,
        ),
        data_file("s3://b/b.parquet", Record(*(None for _ in COLUMNS))),
    ]
    with write_manifest(
        version, SPEC, SCHEMA, io.new_output(str(folder / "m.avro")), 77, "deflate"
    ) as writer:
        for file in files:
            writer.add_entry(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=77, data_file=file
                )
            )
    location = str(folder / "list.avro")
    with write_manifest_list(version, io.new_output(location), 77, None, 5, "deflate") as lists:
        lists.add_manifests([writer.to_manifest_file()])
    return location


@pytest.mark.parametrize("version", [1, 2])
def test_manifests_of_pyiceberg_are_read(tmp_path, version, decoder):
    manifests = read_manifest_list(write(tmp_path, version), Storage({}))
    (listed,) = manifests.to_pylist()
    assert (listed["added_files_count"], listed["added_rows_count"]) == (2, 6)
    assert listed["sequence_number"] == (0 if version == 1 else 5)
    assert len(listed["partitions"]) == len(COLUMNS)
    found = read_by_spec(manifests, {0: OURS}, Storage({}), cache=ManifestCache())[0]
    first, second = found.to_pylist()
    assert first["partition"] == {name: seen for name, *_, seen in COLUMNS}
    assert second["partition"] == dict.fromkeys(name for name, *_ in COLUMNS)
    assert first["data_sequence_number"] == (0 if version == 1 else 5)
    assert (first["status"], first["content"], first["snapshot_id"]) == (1, 0, 77)
    assert first["column_sizes"] == [(1, 10), (2, 20)]
    assert first["null_value_counts"] == []
    assert first["lower_bounds"] == [(1, b"\x01"), (2, b"")]
    assert second["lower_bounds"] is None
    assert first["split_offsets"] == [4]
    assert first["file_format"] == "PARQUET"
