"""Files of deletion vectors: their bytes, and that each vector is found again."""

from __future__ import annotations

import struct
import uuid
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from rowlake import connect
from rowlake.codecs.deletion_vector import decode_bare
from rowlake.codecs.stored_vectors import read_vector
from rowlake.delta import vector_file
from rowlake.delta.vector_file import vector_content, vector_location, write_vectors
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.files import DELTA_VECTOR, Content, DeleteFile
from rowlake.storage.files import Storage
from tests.delta_logs import features
from tests.delta_writing import WrittenTable

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "delta"
NUMBER = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")  # of the protocol's example


def test_a_file_has_a_version_then_framed_vectors():
    vectors = {"a": BitMap64([3, 4, 7]), "b": BitMap64([11, 2**32 + 1])}
    content, found = vector_content(vectors, NUMBER)
    assert content[0] == 1
    for name, positions in vectors.items():
        one = found[name]
        (size,) = struct.unpack_from(">i", content, one.offset)
        data = content[one.offset + 4 : one.offset + 4 + size]
        (crc,) = struct.unpack_from(">I", content, one.offset + 4 + size)
        assert size == one.size
        assert crc == zlib.crc32(data)
        assert decode_bare(data, "x") == positions
        assert one.cardinality == len(positions)
    assert found["a"].offset == 1
    assert found["b"].offset == 1 + 8 + found["a"].size


def test_descriptors_name_the_file_as_the_protocol_says():
    _, found = vector_content({"a": BitMap64([1])}, NUMBER)
    assert found["a"].json() == {
        "storageType": "u",
        "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^",
        "offset": 1,
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    expected = f"/t/deletion_vector_{NUMBER}.bin"
    assert vector_location("/t", NUMBER) == expected


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*/deletion_vector_*.bin")), ids=lambda p: p.stem
)
def test_files_of_delta_on_spark_are_written_in_their_form_and_no_longer(path):
    data = path.read_bytes()
    vectors, offset = {}, 1
    while offset < len(data):
        (size,) = struct.unpack_from(">i", data, offset)
        vectors[str(offset)] = decode_bare(data[offset + 4 : offset + 4 + size], str(path))
        offset += size + 8
    content, found = vector_content(vectors, NUMBER)
    assert content == data if len(content) == len(data) else len(content) < len(data)
    for name, one in found.items():
        written = content[one.offset + 4 : one.offset + 4 + one.size]
        assert decode_bare(written, name) == vectors[name]


def test_vectors_that_are_written_are_read_again(tmp_path):
    vectors = {f"f{number}": BitMap64(range(number * 5)) for number in range(1, 9)}
    location, found = write_vectors(vectors, str(tmp_path), Storage())
    for name, one in found.items():
        delete = DeleteFile(
            Content.POSITION_DELETES,
            location,
            DELTA_VECTOR,
            0,
            one.cardinality,
            content_offset=one.offset,
            content_size_in_bytes=one.size + 8,
        )
        assert read_vector(delete, Storage()) == vectors[name]


def test_vectors_beyond_what_an_offset_can_say_are_refused(monkeypatch):
    monkeypatch.setattr(vector_file, "MOST_BYTES", 50)
    with pytest.raises(UnsupportedFeatureError, match="2 files"):
        vector_content({"a": BitMap64([1]), "b": BitMap64([2])}, NUMBER)


def test_rows_that_vectors_mark_are_gone(tmp_path):
    table = WrittenTable(tmp_path / "t").create(
        protocol=features("deletionVectors"), enableDeletionVectors="true"
    )
    written = [table.write(pa.table({"id": range(4), "name": list("abcd")})) for _ in range(2)]
    table.append(*written)
    first, second = (one["location"][0].as_py() for one in written)
    table.delete({first: [0], second: [1, 2]})
    table.delete({first: [0, 3]})
    with connect(str(tmp_path / "lake")) as lake:
        rows = lake.table(table.name).arrow(["id"])["id"].to_pylist()
    assert sorted(rows) == [0, 1, 2, 3]
