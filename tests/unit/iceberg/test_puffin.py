"""Puffin files: layout, footer, damage."""

from __future__ import annotations

import json
import struct

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from rowlake.codecs import deletion_vector, puffin
from rowlake.errors import CorruptTableError
from tests.scanning import STORAGE


def made() -> puffin.PuffinFile:
    blobs = [
        puffin.vector_blob(BitMap64([1, 3]), "s3://b/ä.parquet"),
        puffin.vector_blob(BitMap64(range(1000)), "s3://b/b.parquet"),
    ]
    return puffin.write_puffin(blobs, created_by="rowlake 0.1.0")


@pytest.mark.spec("Puffin: file structure")
def test_layout_is_the_specs() -> None:
    data = made().data
    assert data[:4] == data[-4:] == b"PFA1"
    length, flags = struct.unpack_from("<iI", data, len(data) - 12)
    assert flags == 0
    assert data[-16 - length : -12 - length] == b"PFA1"
    footer = json.loads(data[-12 - length : -12])
    assert footer["properties"] == {"created-by": "rowlake 0.1.0"}
    assert footer["blobs"][0] == {
        "type": "deletion-vector-v1",
        "fields": [2147483645],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(deletion_vector.encode(BitMap64([1, 3]))),
        "properties": {"referenced-data-file": "s3://b/ä.parquet", "cardinality": "2"},
    }


def test_blobs_are_read_back_by_their_place(tmp_path) -> None:
    path = tmp_path / "v.puffin"
    path.write_bytes(made().data)
    blobs = puffin.read_footer(str(path), STORAGE)
    assert [blob.properties["cardinality"] for blob in blobs] == ["2", "1000"]
    data = puffin.read_blob(str(path), blobs[1].offset, blobs[1].length, STORAGE)
    assert list(deletion_vector.decode(data, "x")) == list(range(1000))


def test_compressed_footer_is_read(tmp_path) -> None:
    data = made().data
    (length,) = struct.unpack_from("<i", data, len(data) - 12)
    payload = data[-12 - length : -12]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as out:
        out.write(payload)
    packed = sink.getvalue().to_pybytes()
    path = tmp_path / "v.puffin"
    tail = packed + struct.pack("<iI", len(packed), 1) + b"PFA1"
    path.write_bytes(data[: -12 - length] + tail)
    assert len(puffin.read_footer(str(path), STORAGE)) == 2


def test_a_footer_longer_than_the_first_read_is_read(tmp_path) -> None:
    blobs = [puffin.Blob("x", b"1", properties={"p": "y" * 1000}) for _ in range(100)]
    path = tmp_path / "v.puffin"
    path.write_bytes(puffin.write_puffin(blobs, created_by="r").data)
    assert len(puffin.read_footer(str(path), STORAGE)) == 100


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: b"PFA1",
        lambda data: data[:-12] + struct.pack("<iI", 10**9, 0) + b"PFA1",
        lambda data: data[:-12] + struct.pack("<iI", -1, 0) + b"PFA1",
        lambda data: data[:-8] + b"\2\0\0\0PFA1",
        lambda data: data.replace(b'{"blobs"', b'{"blubs"'),
    ],
)
def test_damaged_footers_are_refused(tmp_path, change) -> None:
    path = tmp_path / "v.puffin"
    path.write_bytes(change(made().data))
    with pytest.raises(CorruptTableError):
        puffin.read_footer(str(path), STORAGE)


def test_a_blob_beyond_the_end_is_refused(tmp_path) -> None:
    path = tmp_path / "v.puffin"
    path.write_bytes(made().data)
    with pytest.raises(CorruptTableError, match="at 100 of 1000000 bytes does not fit"):
        puffin.read_blob(str(path), 100, 10**6, STORAGE)


@pytest.mark.parametrize(
    ("offset", "length"),
    [(4, -1), (4, 2**40), (-1, 10), (2**62, 10), (0, 2**63 - 1), (2**63 - 1, 2**63 - 1)],
)
def test_a_blob_outside_the_file_is_refused_before_it_is_read(tmp_path, offset, length) -> None:
    path = tmp_path / "v.puffin"
    path.write_bytes(made().data)
    with pytest.raises(CorruptTableError, match="does not fit") as raised:
        puffin.read_blob(str(path), offset, length, STORAGE)
    assert raised.value.location == str(path)


def with_footer(payload: bytes, flags: int = 0, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return b"PFA1" * 2 + payload + struct.pack("<iI", size, flags) + b"PFA1"


def entry(**values: object) -> bytes:
    blob = {"type": "x", "fields": [], "snapshot-id": 1, "sequence-number": 1}
    return json.dumps({"blobs": [{**blob, "offset": 4, "length": 0, **values}]}).encode()


def bomb() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as out:
        for _ in range(64):
            out.write(b" " * (1 << 20))
    return sink.getvalue().to_pybytes()


DAMAGED = {
    "negative offset": with_footer(entry(offset=-4)),
    "negative length": with_footer(entry(length=-1)),
    "length beyond the file": with_footer(entry(length=2**40)),
    "offset that is no number": with_footer(entry(offset=[])),
    "offset without end": with_footer(entry(offset=float("inf"))),
    "properties that are a number": with_footer(entry(properties=7)),
    "blobs that are no objects": with_footer(b'{"blobs":[7]}'),
    "no object": with_footer(b"[]"),
    "too deep": with_footer(b"[" * 100_000),
    "not text": with_footer(b"\xff\xfe\xff"),
    "bomb": with_footer(bomb(), flags=1),
    "not compressed": with_footer(b"{}", flags=1),
    "length of all there is": with_footer(b"{}", length=2**31 - 1),
    "negative footer length": with_footer(b"{}", length=-7),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_footer_that_means_nothing_is_refused(tmp_path, data) -> None:
    path = tmp_path / "v.puffin"
    path.write_bytes(data)
    with pytest.raises(CorruptTableError) as raised:
        puffin.read_footer(str(path), STORAGE)
    assert raised.value.location == str(path)
