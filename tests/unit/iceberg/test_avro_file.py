"""Who decodes an Avro file: DataFusion where it pays, also what it does not read as it stands."""

from __future__ import annotations

import sys

import pytest

from rowlake.codecs import avro_file
from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.manifest_reader import read_by_spec
from rowlake.iceberg.manifest_writer import write_manifest
from rowlake.storage.files import Storage
from tests.manifest_samples import (
    UNPARTITIONED,
    committed,
    entries,
    entry,
    header,
    partition_type,
    partition_values,
)

STORAGE = Storage({})


@pytest.mark.parametrize("parts", [(), ("long", "string")], ids=["plain", "partitioned"])
def test_datafusion_and_python_decode_the_same(tmp_path, monkeypatch, parts):
    partition = partition_type(*parts) if parts else UNPARTITIONED
    values = partition_values(partition)
    rows = [entry(location=f"/data/{number}.parquet", partition=values) for number in range(50)]
    table = entries(rows, partition)
    manifest = committed(write_manifest(str(tmp_path / "m.avro"), table, header(), STORAGE))
    found = {}
    for limit, other in ((1 << 40, "decode_datafusion"), (0, "decode_python")):
        with monkeypatch.context() as patch:
            patch.setattr(avro_file, "SMALL_FILE_BYTES", limit)
            patch.setattr(avro_file, "TINY_FILE_BYTES", limit)
            patch.setattr(avro_file, other, None)  # it is not called
            by_spec = read_by_spec(manifest, {0: partition}, STORAGE, cache=ManifestCache())
            found[other] = by_spec[0]
    first, second = found.values()
    assert first.num_rows == 50
    assert first.schema == second.schema
    assert first.to_pylist() == second.to_pylist()


def test_many_small_files_are_worth_loading_datafusion(monkeypatch):
    monkeypatch.delitem(sys.modules, "datafusion", raising=False)
    monkeypatch.setattr(avro_file, "_SMALL_FILES_READ", [])
    assert avro_file._small_file_bytes() == avro_file.SMALL_FILE_BYTES
    avro_file._SMALL_FILES_READ.extend([50_000] * 30)
    assert avro_file._small_file_bytes() == avro_file.TINY_FILE_BYTES
