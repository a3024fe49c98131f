"""Iceberg's Java library reads the manifests and manifest lists that we write.

Golden tables are written anew, every manifest and list by us, and Java must see in them exactly
what it sees in its own.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.codecs.avro_decode import read_header
from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.manifest_list import (
    ManifestListHeader,
    read_manifest_list,
    write_manifest_list,
)
from rowlake.iceberg.manifest_reader import read_by_spec
from rowlake.iceberg.manifest_writer import ManifestHeader, write_manifest
from rowlake.model.files import MANIFESTS
from rowlake.storage.files import Storage
from tests.golden.manifests.make_manifests import HERE as GOLDEN
from tests.golden.manifests.make_manifests import run_java
from tests.manifest_samples import partition_field, partition_type

TABLES = sorted(path.name for path in GOLDEN.iterdir() if (path / "metadata.json").exists())
STORAGE = Storage({})
TYPES = {
    "types": partition_type(),
    "lifecycle": pa.struct([partition_field(1000, "id_bucket", pa.int32())]),
}


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory):
    """All golden tables, written anew by us and described by Java."""
    folder = tmp_path_factory.mktemp("rewritten")
    for name in TABLES:
        rewrite_table(GOLDEN / name, folder / name)
    run_java("describe", str(folder))
    return folder


def rewrite_table(golden: Path, target: Path) -> None:
    (target / "metadata").mkdir(parents=True)
    text = (golden / "metadata.json").read_text()
    metadata = json.loads(text)
    (target / "metadata" / "v1.metadata.json").write_text(
        text.replace(metadata["location"], str(target))
    )
    (target / "metadata" / "version-hint.text").write_text("1")
    for snapshot in metadata["snapshots"]:
        name = Path(snapshot["manifest-list"]).name
        rewrite_list(golden / name, golden, target / "metadata")


def rewrite_list(listed: Path, golden: Path, folder: Path) -> None:
    rows = read_manifest_list(str(listed), STORAGE).to_pylist()
    for row in rows:
        name = Path(row["location"]).name
        row["location"] = str(folder / name)
        row["manifest_length"] = rewrite_manifest(golden / name, row)
    said = read_header(listed.read_bytes(), str(listed)).metadata
    parent = said["parent-snapshot-id"]
    first_row_id = said.get("first-row-id")
    header = ManifestListHeader(
        format_version=int(said["format-version"]),
        snapshot_id=int(said["snapshot-id"]),
        parent_snapshot_id=None if parent == "null" else int(parent),
        sequence_number=int(said.get("sequence-number", 0)),
        first_row_id=None if first_row_id is None else int(first_row_id),
    )
    table = pa.Table.from_pylist(rows, schema=MANIFESTS)
    write_manifest_list(str(folder / listed.name), table, header, STORAGE)


def rewrite_manifest(source: Path, row) -> int:
    """Write a manifest anew; return its length."""
    # Without a sequence number nothing is inherited: what is stored is what is written.
    raw = {
        **row,
        "location": str(source),
        "manifest_length": source.stat().st_size,
        "sequence_number": None,
    }
    of = TYPES.get(source.parent.name.split("_")[0], pa.struct([]))
    one = pa.Table.from_pylist([raw], schema=MANIFESTS)
    entries = read_by_spec(one, {0: of}, STORAGE, live_only=False, cache=ManifestCache())[0]
    said = read_header(source.read_bytes(), str(source)).metadata
    header = ManifestHeader(
        format_version=int(said["format-version"]),
        content=row["content"],
        snapshot_id=row["added_snapshot_id"],
        spec_id=0,
        schema_json=said["schema"],
        spec_json=said["partition-spec"],
    )
    made = write_manifest(row["location"], entries, header, STORAGE).to_pylist()[0]
    counted = [name for name in MANIFESTS.names if name.endswith("_count")]
    assert {name: made[name] for name in counted} == {name: row[name] for name in counted}
    assert made["partitions"] == row["partitions"]
    return made["manifest_length"]


@pytest.mark.parametrize("table", TABLES)
def test_java_sees_in_our_manifests_what_it_sees_in_its_own(table, rewritten):
    ours = (rewritten / table / "seen_by_java.jsonl").read_text().splitlines()
    assert ours == (GOLDEN / table / "seen_by_java.jsonl").read_text().splitlines()
