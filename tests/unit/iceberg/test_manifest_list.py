"""Manifest lists that we write: numbers assigned, read back, read by others."""

from __future__ import annotations

import fastavro
import pyarrow as pa
import pytest

from rowlake.codecs.avro_decode import read_header
from rowlake.errors import CorruptTableError, InternalError, UnsupportedFeatureError
from rowlake.iceberg.manifest_list import (
    ManifestListHeader,
    read_manifest_list,
    write_manifest_list,
)
from rowlake.model.files import MANIFESTS
from rowlake.storage.files import Storage

STORAGE = Storage({})


def manifest(**values):
    made = {
        "location": "s3://bucket/m.avro",
        "manifest_length": 1234,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": None,
        "min_sequence_number": None,
        "added_snapshot_id": 77,
        "added_files_count": 1,
        "existing_files_count": 1,
        "deleted_files_count": 0,
        "added_rows_count": 100,
        "existing_rows_count": 25,
        "deleted_rows_count": 3,
        "partitions": [],
    }
    return {**made, **values}


def write(tmp_path, rows, version=3, **header):
    values = {"snapshot_id": 77, "parent_snapshot_id": None, "sequence_number": 9, **header}
    location = str(tmp_path / "snap.avro")
    for at, row in enumerate(rows):
        row["location"] += at * "+"  # a list has each manifest once
    table = pa.Table.from_pylist(rows, schema=MANIFESTS)
    next_row_id = write_manifest_list(
        location, table, ManifestListHeader(version, **values), STORAGE
    )
    return read_manifest_list(location, STORAGE), next_row_id


SUMMARY = {
    "contains_null": True,
    "contains_nan": None,
    "lower_bound": b"\x00",
    "upper_bound": None,
}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_come_back_as_written(tmp_path, version):
    known = {"sequence_number": 4, "min_sequence_number": 2}
    rows = [
        manifest(partitions=[SUMMARY, SUMMARY], key_metadata=b"k", **known),
        manifest(partitions=None, location="other", **known),
    ]
    if version >= 2:
        rows.append(manifest(content=1, **known))
    found, _ = write(tmp_path, rows, version, first_row_id=0)
    expected = pa.Table.from_pylist(rows, schema=MANIFESTS).to_pylist()
    if version == 1:
        expected = [{**row, "sequence_number": 0, "min_sequence_number": 0} for row in expected]
    if version == 3:
        assert found["first_row_id"].to_pylist() == [0, 125, None]
        found = found.set_column(15, MANIFESTS.field(15), pa.nulls(3, pa.int64()))
    assert found.to_pylist() == expected
    assert found.schema == MANIFESTS


def test_new_manifests_get_the_sequence_number_of_the_snapshot(tmp_path):
    rows = [
        manifest(),
        manifest(min_sequence_number=3),
        manifest(sequence_number=5, min_sequence_number=1, added_snapshot_id=70),
    ]
    found, next_row_id = write(tmp_path, rows, 2)
    assert found["sequence_number"].to_pylist() == [9, 9, 5]
    assert found["min_sequence_number"].to_pylist() == [9, 3, 1]
    assert next_row_id == 0


@pytest.mark.spec("First Row ID Assignment: data manifests without one get a range")
def test_data_manifests_without_row_ids_get_a_range(tmp_path):
    rows = [
        manifest(first_row_id=925, added_rows_count=75),
        manifest(added_rows_count=100, existing_rows_count=25),
        manifest(added_rows_count=0, existing_rows_count=100),
        manifest(content=1, added_rows_count=1000),
        manifest(added_rows_count=125, existing_rows_count=25),
    ]
    found, next_row_id = write(tmp_path, rows, 3, first_row_id=1000)
    assert found["first_row_id"].to_pylist() == [925, 1000, 1125, None, 1225]
    assert next_row_id == 1375


def test_a_list_of_nothing_keeps_the_row_ids(tmp_path):
    found, next_row_id = write(tmp_path, [], 3, first_row_id=40)
    assert found.num_rows == 0
    assert next_row_id == 40


@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_say_whose_list_it_is(tmp_path, version):
    write(tmp_path, [manifest()], version, parent_snapshot_id=70, first_row_id=6)
    metadata = dict(read_header((tmp_path / "snap.avro").read_bytes(), "").metadata)
    for schema in ("avro.schema", "iceberg.schema", "avro.codec"):
        del metadata[schema]
    expected = {"snapshot-id": "77", "parent-snapshot-id": "70", "format-version": str(version)}
    if version >= 2:
        expected["sequence-number"] = "9"
    if version == 3:
        expected["first-row-id"] = "6"
    assert metadata == expected


def test_avro_readers_see_the_rows(tmp_path):
    write(tmp_path, [manifest(partitions=[SUMMARY])], 2)
    with (tmp_path / "snap.avro").open("rb") as file:
        (row,) = fastavro.reader(file)
    assert row["manifest_path"] == "s3://bucket/m.avro"
    assert row["sequence_number"] == 9
    assert row["partitions"] == [SUMMARY]


def test_v1_lists_hold_no_delete_manifests(tmp_path):
    with pytest.raises(UnsupportedFeatureError):
        write(tmp_path, [manifest(content=1)], 1)
    assert not (tmp_path / "snap.avro").exists()


def test_v3_lists_need_a_first_row_id(tmp_path):
    with pytest.raises(InternalError):
        write(tmp_path, [manifest()], 3)


def test_a_damaged_list_is_named(tmp_path):
    path = tmp_path / "snap.avro"
    write(tmp_path, [manifest()], 2)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptTableError) as caught:
        read_manifest_list(str(path), STORAGE)
    assert caught.value.location == str(path)
