"""Manifests and manifest lists that Iceberg's Java library wrote, read as it reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowlake.codecs import avro_file
from rowlake.codecs.avro_decode import read_header
from rowlake.codecs.avro_schema import avro_schema, iceberg_schema
from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_by_spec
from rowlake.iceberg.manifest_schema import entry_struct, manifest_list_struct
from rowlake.storage.files import Storage
from tests.manifest_samples import partition_field, partition_type, partition_values

GOLDEN = Path(__file__).parents[2] / "golden" / "manifests"
TABLES = sorted(path.name for path in GOLDEN.iterdir() if (path / "metadata.json").exists())
COMPARED = [
    "location",
    "content",
    "file_format",
    "spec_id",
    "record_count",
    "data_sequence_number",
    "file_sequence_number",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
]
TYPES = {
    "types": partition_type(),
    "lifecycle": pa.struct([partition_field(1000, "id_bucket", pa.int32())]),
    "zstd": pa.struct([]),
    "upgraded": pa.struct([]),
}
# Java's values of this type are not what Avro says; ours are bytes, which all readers take.
JAVA_FIXED = '{"type":"fixed","name":"fixed_3","size":3}'


@pytest.fixture(params=["python", "datafusion"])
def decoder(request, monkeypatch):
    """Both ways of decoding; what DataFusion cannot do right goes to Python in either."""
    limit = 0 if request.param == "datafusion" else 1 << 40
    monkeypatch.setattr(avro_file, "SMALL_FILE_BYTES", limit)
    monkeypatch.setattr(avro_file, "TINY_FILE_BYTES", limit)
    return request.param


def golden_lists(table: str) -> list[tuple[int, pa.Table]]:
    """Return each snapshot's manifest list, with the manifests where the tests have them."""
    metadata = json.loads((GOLDEN / table / "metadata.json").read_text())
    found = []
    for snapshot in metadata["snapshots"]:
        location = GOLDEN / table / Path(snapshot["manifest-list"]).name
        manifests = read_manifest_list(str(location), Storage({}))
        moved = [str(GOLDEN / table / Path(old).name) for old in manifests["location"].to_pylist()]
        found.append(
            (snapshot["snapshot-id"], manifests.set_column(0, "location", pa.array(moved)))
        )
    return found


def read(table: str, manifests: pa.Table, **options) -> pa.Table:
    types = {0: TYPES[table.split("_")[0]]}
    return read_by_spec(manifests, types, Storage({}), cache=ManifestCache(), **options)[0]


@pytest.mark.parametrize("table", TABLES)
def test_live_files_are_those_that_java_sees(table, decoder):
    lines = (GOLDEN / table / "seen_by_java.jsonl").read_text().splitlines()
    expected = [json.loads(line) for line in lines]
    for snapshot_id, manifests in golden_lists(table):
        rows = read(table, manifests).select(COMPARED).to_pylist()
        wanted = [
            {name: line[name] for name in COMPARED}
            for line in expected
            if line["snapshot"] == snapshot_id
        ]
        assert rows == wanted


@pytest.mark.parametrize("version", [1, 2, 3])
def test_partition_values_of_every_type_are_read(version, decoder):
    ((_, manifests),) = golden_lists(f"types_v{version}")
    partitions = read(f"types_v{version}", manifests)["partition"]
    assert partitions.type == partition_type()
    full = partition_values(partition_type())
    assert partitions.to_pylist() == [full, dict.fromkeys(full), full]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metrics_of_java_are_read(version, decoder):
    _, manifests = golden_lists(f"lifecycle_v{version}")[0]
    first = read(f"lifecycle_v{version}", manifests).to_pylist()[0]
    assert sorted(first["column_sizes"]) == [(1, 1000), (2, 7), (3, 800)]
    assert sorted(first["value_counts"]) == [(1, 100), (2, 100), (3, 100)]
    assert sorted(first["null_value_counts"]) == [(1, 0), (2, 50), (3, 1)]
    assert first["nan_value_counts"] == [(3, 2)]
    low = (-100).to_bytes(8, "little", signed=True)
    assert sorted(first["lower_bounds"]) == [(1, low), (2, b"")]
    assert sorted(first["upper_bounds"]) == [(1, (100).to_bytes(8, "little")), (2, "zé".encode())]
    assert first["split_offsets"] == [4, 500]
    assert first["key_metadata"] == b"\x01\x02"
    assert first["sort_order_id"] == 0
    assert first["partition"] == {"id_bucket": 0}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_deleted_entries_are_read_on_demand(version, decoder):
    deleting = next(
        manifests
        for _, manifests in golden_lists(f"lifecycle_v{version}")
        if pc.any(pc.greater(manifests["deleted_files_count"], 0)).as_py()
    )
    everything = read(f"lifecycle_v{version}", deleting, live_only=False)
    gone = everything.filter(pc.equal(everything["status"], 2))
    assert [Path(location).name for location in gone["location"].to_pylist()] == ["b.parquet"]
    live = read(f"lifecycle_v{version}", deleting)
    assert live.num_rows == everything.num_rows - 1


def test_equality_ids_and_vectors_are_read(decoder):
    _, manifests = golden_lists("lifecycle_v3")[-1]
    deletes = read("lifecycle_v3", manifests.filter(pc.equal(manifests["content"], 1))).to_pylist()
    vector, equality = sorted(deletes, key=lambda row: row["content"])
    assert vector["file_format"] == "PUFFIN"
    assert (vector["content_offset"], vector["content_size_in_bytes"]) == (4, 36)
    assert vector["referenced_data_file"].endswith("a.parquet")
    assert equality["equality_ids"] == [1, 2]


@pytest.mark.parametrize("table", [name for name in TABLES if not name.startswith("upgraded")])
def test_headers_are_built_as_java_builds_them(table):
    version = int(table[-1])
    partition = TYPES[table.split("_")[0]]
    for path in (GOLDEN / table).glob("*.avro"):
        metadata = read_header(path.read_bytes(), str(path)).metadata
        is_list = path.name.startswith("snap-")
        struct = manifest_list_struct(version) if is_list else entry_struct(version, partition)
        avro = avro_schema("manifest_file" if is_list else "manifest_entry", struct)
        java = metadata["avro.schema"].replace(JAVA_FIXED, '"bytes"')
        assert _compact(avro) == java
        assert _compact(iceberg_schema(struct)) == metadata["iceberg.schema"]


def _compact(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifest_lists_of_java_are_read(version):
    first, second = golden_lists(f"lifecycle_v{version}")[:2]
    (row,) = first[1].to_pylist()
    assert (row["added_files_count"], row["added_rows_count"]) == (2, 300)
    assert (row["content"], row["partition_spec_id"]) == (0, 0)
    assert row["sequence_number"] == row["min_sequence_number"] == (0 if version == 1 else 1)
    assert row["added_snapshot_id"] == first[0]
    assert row["first_row_id"] == (0 if version == 3 else None)
    assert row["partitions"] == [
        {
            "contains_null": False,
            "contains_nan": False,
            "lower_bound": (0).to_bytes(4, "little"),
            "upper_bound": (1).to_bytes(4, "little"),
        }
    ]
    assert second[1].num_rows == 2
