"""Manifests that we write: what other readers see in them, and what we read back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.manifest import read_manifest_list as pyiceberg_list

from rowlake.codecs import avro_file
from rowlake.codecs.avro_decode import read_header
from rowlake.codecs.avro_encode import varints
from rowlake.codecs.avro_schema import sanitized
from rowlake.errors import InternalError, InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.manifest_list import ManifestListHeader, write_manifest_list
from rowlake.iceberg.manifest_reader import read_by_spec
from rowlake.iceberg.manifest_writer import (
    manifest_codec,
    partition_summaries,
    write_manifest,
    write_manifests,
)
from rowlake.storage.files import Storage
from tests.manifest_samples import (
    PARTITION,
    UNPARTITIONED,
    committed,
    entries,
    entry,
    header,
    partition_field,
    partition_type,
    partition_values,
)

STORAGE = Storage({})
METRICS = {
    "column_sizes": [(1, 10), (2, 1 << 40)],
    "value_counts": [(1, 10)],
    "null_value_counts": [],
    "lower_bounds": [(1, b""), (2, b"\x00\xff")],
    "upper_bounds": [(2, b"x" * 200)],
    "key_metadata": b"key",
    "split_offsets": [4, 1 << 33],
    "sort_order_id": 3,
}


def read_back(manifests, partition=UNPARTITIONED, **options):
    options = {"live_only": False, "cache": ManifestCache(), **options}
    return read_by_spec(manifests, {0: partition}, STORAGE, **options)[0]


@pytest.fixture(params=["python", "datafusion"])
def decoder(request, monkeypatch):
    limit = 0 if request.param == "datafusion" else 1 << 40
    monkeypatch.setattr(avro_file, "SMALL_FILE_BYTES", limit)
    monkeypatch.setattr(avro_file, "TINY_FILE_BYTES", limit)
    return request.param


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy", "null"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_entries_come_back_as_written(tmp_path, version, codec, decoder):
    of = partition_type()
    numbers = {"data_sequence_number": 4, "file_sequence_number": 4}
    values = partition_values(of)
    rows = [
        entry(status=1, partition=values, **METRICS),
        entry(status=0, snapshot_id=70, partition=dict.fromkeys(values), **numbers),
        entry(status=2, partition=values, record_count=0, **numbers, **METRICS),
    ]
    head = header(format_version=version, codec=codec)
    manifest = write_manifest(str(tmp_path / "m.avro"), entries(rows, of), head, STORAGE)
    found = read_back(committed(manifest, 0 if version == 1 else 5), of).to_pylist()
    inherited = {"data_sequence_number": 5, "file_sequence_number": 5}
    expected = entries([{**rows[0], **inherited}, *rows[1:]], of).to_pylist()
    if version == 1:
        zero = {"data_sequence_number": 0, "file_sequence_number": 0}
        expected = [{**row, **zero} for row in expected]
    assert found == expected


def test_delete_files_and_vectors_come_back(tmp_path, decoder):
    rows = [
        entry(
            content=1,
            file_format="PUFFIN",
            referenced_data_file="s3://b/a.parquet",
            content_offset=4,
            content_size_in_bytes=40,
        ),
        entry(content=2, equality_ids=[1, 7]),
    ]
    head = header(format_version=3, content=1)
    manifest = write_manifest(str(tmp_path / "m.avro"), entries(rows), head, STORAGE)
    assert read_header((tmp_path / "m.avro").read_bytes(), "").metadata["content"] == "deletes"
    found = read_back(committed(manifest))
    for name in ("content", "referenced_data_file", "content_offset", "equality_ids"):
        assert found[name].to_pylist() == [row.get(name) for row in rows]
    assert found["first_row_id"].null_count == 2


def test_avro_readers_see_every_type(tmp_path):
    of = partition_type()
    row = entry(partition=partition_values(of), **METRICS)
    path = tmp_path / "m.avro"
    write_manifest(str(path), entries([row], of), header(format_version=3), STORAGE)
    with path.open("rb") as file:
        (seen,) = fastavro.reader(file)
    assert seen["status"] == 1
    assert seen["sequence_number"] is None
    found = seen["data_file"]["partition"]
    for name, of_type, value in PARTITION:
        if of_type == pa.timestamp("us"):
            value = value.replace(tzinfo=dt.timezone.utc)
        assert found[sanitized(name)] == value
    assert seen["data_file"]["lower_bounds"] == [
        {"key": 1, "value": b""},
        {"key": 2, "value": b"\x00\xff"},
    ]
    assert seen["data_file"]["split_offsets"] == [4, 1 << 33]


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_our_manifests(tmp_path, version):
    of = partition_type("int", "uuid", "dec38", "odd.name with-é", "fixed", "ts")
    numbers = {"data_sequence_number": 4, "file_sequence_number": 3}
    rows = [
        entry(partition=partition_values(of), **METRICS),
        entry(status=0, snapshot_id=70, partition=dict.fromkeys(partition_values(of)), **numbers),
    ]
    head = header(format_version=version)
    manifest = write_manifest(str(tmp_path / "m.avro"), entries(rows, of), head, STORAGE)
    location = str(tmp_path / "list.avro")
    write_manifest_list(location, manifest, ManifestListHeader(version, 77, 70, 5), STORAGE)
    io = PyArrowFileIO()
    (listed,) = pyiceberg_list(io.new_input(location))
    assert (listed.added_files_count, listed.existing_files_count) == (1, 1)
    assert listed.partitions[0].contains_null
    first, second = listed.fetch_manifest_entry(io)
    assert (first.status, second.status) == (
        ManifestEntryStatus.ADDED,
        ManifestEntryStatus.EXISTING,
    )
    assert (first.snapshot_id, second.snapshot_id) == (77, 70)
    if version == 2:
        assert (first.sequence_number, second.sequence_number) == (5, 4)
        assert second.file_sequence_number == 3
    assert first.data_file.lower_bounds == dict(METRICS["lower_bounds"])
    assert first.data_file.column_sizes == dict(METRICS["column_sizes"])
    assert first.data_file.split_offsets == METRICS["split_offsets"]
    stored = list(first.data_file.partition._data)
    expected = partition_values(of)
    assert stored[0] == expected["int"]
    assert b"\x00\x01\xff" in stored
    assert "odd" in stored
    assert Decimal("12345678901234567890.0123456789") in stored
    assert set(second.data_file.partition._data) == {None}


def test_large_manifests_roll_near_the_target_size(tmp_path):
    rows = [
        entry(location=f"s3://bucket/{hash(str(at))}/{at}.parquet", record_count=at)
        for at in range(3000)
    ]
    table = entries(rows)
    locations = iter(str(tmp_path / f"m{at}.avro") for at in range(1000))
    manifests = write_manifests(
        lambda: next(locations), table, header(), STORAGE, target_size_in_bytes=20_000
    )
    assert manifests.num_rows > 2
    sizes = manifests["manifest_length"].to_pylist()
    for location, size in zip(manifests["location"].to_pylist(), sizes, strict=True):
        assert (tmp_path / location).stat().st_size == size
    assert max(sizes) < 20_000 + 10_000  # the header comes on top
    assert sum(manifests["added_files_count"].to_pylist()) == 3000
    found = read_back(committed(manifests))
    assert found["location"].to_pylist() == table["location"].to_pylist()


def test_no_entries_make_no_manifests(tmp_path):
    made = write_manifests(
        lambda: pytest.fail("no location needed"),
        entries([]),
        header(),
        STORAGE,
        target_size_in_bytes=1000,
    )
    assert made.num_rows == 0
    empty = write_manifest(str(tmp_path / "m.avro"), entries([]), header(), STORAGE)
    assert read_back(committed(empty)).num_rows == 0


def test_rows_of_the_manifest_list_count_what_was_written(tmp_path):
    of = partition_type("double", "string")
    rows = [
        entry(partition={"double": 2.0, "string": "b"}, record_count=5),
        entry(
            status=0,
            partition={"double": float("nan"), "string": None},
            record_count=7,
            data_sequence_number=3,
            file_sequence_number=3,
        ),
        entry(
            status=2,
            partition={"double": -0.0, "string": "aé"},
            record_count=9,
            data_sequence_number=1,
            file_sequence_number=1,
        ),
    ]
    manifest = write_manifest(str(tmp_path / "m.avro"), entries(rows, of), header(), STORAGE)
    (row,) = manifest.to_pylist()
    assert row["manifest_length"] == (tmp_path / "m.avro").stat().st_size
    assert [row[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")] == [1, 1, 1]
    assert [row[f"{kind}_rows_count"] for kind in ("added", "existing", "deleted")] == [5, 7, 9]
    assert row["sequence_number"] is None
    assert row["min_sequence_number"] == 3  # deleted entries do not count
    assert row["partitions"] == [
        {
            "contains_null": False,
            "contains_nan": True,
            "lower_bound": b"\0" * 7 + b"\x80",
            "upper_bound": b"\0\0\0\0\0\0\0\x40",
        },
        {
            "contains_null": True,
            "contains_nan": False,
            "lower_bound": "aé".encode(),
            "upper_bound": b"b",
        },
    ]


@pytest.mark.parametrize("name", [name for name, _, _ in PARTITION])
def test_every_partition_type_has_a_summary(name):
    of = partition_type(name)
    value = partition_values(of)
    (summary,) = partition_summaries(pa.array([value, {name: None}], of))
    assert summary["contains_null"]
    assert (summary["lower_bound"] is None) == (value[name] is None)
    assert summary["lower_bound"] == summary["upper_bound"]


def test_explicit_data_sequence_numbers_of_added_files_are_kept(tmp_path):
    rows = [entry(data_sequence_number=2, file_sequence_number=9)]
    manifest = write_manifest(str(tmp_path / "m.avro"), entries(rows), header(), STORAGE)
    found = read_back(committed(manifest, 5)).to_pylist()[0]
    assert (found["data_sequence_number"], found["file_sequence_number"]) == (2, 5)


def test_existing_entries_need_their_sequence_number(tmp_path):
    with pytest.raises(InternalError, match="sequence number"):
        write_manifest(str(tmp_path / "m"), entries([entry(status=0)]), header(), STORAGE)
    assert not (tmp_path / "m").exists()


def test_data_and_deletes_do_not_share_a_manifest(tmp_path):
    rows = [entry(), entry(content=1)]
    with pytest.raises(InternalError):
        write_manifest(str(tmp_path / "m"), entries(rows), header(), STORAGE)
    with pytest.raises(UnsupportedFeatureError):
        head = header(format_version=1, content=1)
        write_manifest(str(tmp_path / "m"), entries([entry(content=1)]), head, STORAGE)
    with pytest.raises(UnsupportedFeatureError, match="version 4"):
        head = header(format_version=4)
        write_manifest(str(tmp_path / "m"), entries([entry()]), head, STORAGE)


def test_codec_follows_the_table_property():
    assert manifest_codec({}) == "deflate"
    assert manifest_codec({"write.avro.compression-codec": "ZSTD"}) == "zstandard"
    with pytest.raises(InvalidStatementError, match="lzo"):
        manifest_codec({"write.avro.compression-codec": "lzo"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain_1", "plain_1"),
        ("a.b", "a_x2Eb"),
        ("1a", "_1a"),
        ("é", "é"),
        ("a b", "a_x20b"),
        ("😎", "_xD83D_xDE0E"),
        ("-", "_x2D"),
    ],
)
def test_names_are_made_fit_for_avro_as_java_does(name, expected):
    assert sanitized(name) == expected


INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.none() | st.dictionaries(st.integers(0, 2**31 - 1), INT64, max_size=4).map(
    lambda made: list(made.items())
)
BOUNDS = st.none() | st.dictionaries(
    st.integers(0, 2**31 - 1), st.binary(max_size=300), max_size=4
).map(lambda made: list(made.items()))
ENTRIES = st.fixed_dictionaries(
    {
        "status": st.sampled_from([0, 1, 2]),
        "snapshot_id": INT64,
        "data_sequence_number": st.integers(0, 2**62),
        "file_sequence_number": st.integers(0, 2**62),
        "content": st.just(0),
        "location": st.text(max_size=80),
        "file_format": st.sampled_from(["PARQUET", "ORC", "AVRO"]),
        "spec_id": st.just(0),
        "partition": st.fixed_dictionaries(
            {
                "p.q": st.none() | st.text(max_size=10),
                "d": st.none() | st.decimals(-9_999_999, 9_999_999, places=2),
                "f": st.none() | st.floats(allow_nan=False),
                "x": st.none() | st.binary(min_size=5, max_size=5),
            }
        ),
        "record_count": st.integers(0, 2**50),
        "file_size_in_bytes": st.integers(0, 2**62),
        "column_sizes": COUNTS,
        "value_counts": COUNTS,
        "null_value_counts": COUNTS,
        "nan_value_counts": COUNTS,
        "lower_bounds": BOUNDS,
        "upper_bounds": BOUNDS,
        "key_metadata": st.none() | st.binary(max_size=10),
        "split_offsets": st.none() | st.lists(INT64, max_size=4),
        "sort_order_id": st.none() | st.integers(0, 2**31 - 1),
        "first_row_id": st.none() | st.integers(0, 2**60),
    }
)
RANDOM_PARTITION = pa.struct(
    [
        partition_field(1000, "p.q", pa.string()),
        partition_field(1001, "d", pa.decimal128(9, 2)),
        partition_field(1002, "f", pa.float64()),
        partition_field(1003, "x", pa.binary(5)),
    ]
)


@given(rows=st.lists(ENTRIES, max_size=12))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_entries_come_back(tmp_path, decoder, rows):
    table = entries(rows, RANDOM_PARTITION)
    location = str(tmp_path / "m.avro")
    manifest = write_manifest(location, table, header(format_version=3), STORAGE)
    # Not committed yet: nothing is inherited, so what was written is what is read.
    found = read_back(manifest, RANDOM_PARTITION)
    expected = [
        {**row, "file_sequence_number": None} if row["status"] == 1 else row
        for row in table.to_pylist()
    ]
    assert found.to_pylist() == expected


def test_few_numbers_and_many_are_encoded_alike():
    values = [0, -1, 63, 64, -65, 2**31, 2**63 - 1, -(2**63)]
    few = varints(np.array(values))
    assert few.to_pylist()[:5] == [b"\x00", b"\x01", b"\x7e", b"\x80\x01", b"\x81\x01"]
    assert varints(np.array(values * 3)).to_pylist() == few.to_pylist() * 3
