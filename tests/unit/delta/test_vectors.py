"""Deletion vectors of every storage type, in both forms, whole and damaged."""

from __future__ import annotations

import struct
import uuid
import zlib

import pytest
from pyroaring import BitMap, BitMap64

from rowlake import connect
from rowlake.codecs import deletion_vector, z85
from rowlake.errors import CorruptTableError
from rowlake.model.format import FileAction
from tests.delta_logs import HandMade, features, people

UUID = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
ENCODED = z85.encode(UUID.bytes)
FEATURES = features("deletionVectors")


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


def native(*positions):
    """Return the older form of a vector: bitmaps by their place in a list."""
    parts = [deletion_vector.NATIVE_MAGIC, struct.pack("<i", 1)]
    bitmap = BitMap(positions).serialize()
    return b"".join([*parts, struct.pack("<i", len(bitmap)), bytes(bitmap)])


def portable(*positions):
    return deletion_vector.encode(BitMap64(positions))[4:-4]


def framed(data):
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def described(kind, path, data, cardinality, offset=1):
    found = {
        "storageType": kind,
        "pathOrInlineDv": path,
        "sizeInBytes": len(data),
        "cardinality": cardinality,
    }
    return found if offset is None else {**found, "offset": offset}


def padded(data):
    return z85.encode(data + b"\0" * (-len(data) % 4))


def read(lake, made):
    return sorted(lake.table(made.name).arrow(["id"])["id"].to_pylist())


def table(tmp_path, vector):
    made = HandMade(tmp_path / "t").create(FEATURES)
    made.commit(made.add("f.parquet", people(*range(6)), deletionVector=vector))
    return made


@pytest.mark.parametrize("form", [native, portable])
def test_an_inline_vector_is_in_the_log_itself(lake, tmp_path, form):
    data = form(1, 4)
    made = table(tmp_path, described("i", padded(data), data, 2, offset=None))
    assert read(lake, made) == [0, 2, 3, 5]


@pytest.mark.parametrize("form", [native, portable])
@pytest.mark.parametrize("prefix", ["", "ab"])
def test_a_vector_is_in_a_file_named_by_its_uuid(lake, tmp_path, form, prefix):
    first, second = form(0), form(2, 3)
    content = b"\1" + framed(first) + framed(second)
    offset = 1 + len(framed(first))
    made = table(tmp_path, described("u", prefix + ENCODED, second, 2, offset))
    folder = made.folder / prefix
    folder.mkdir(exist_ok=True)
    (folder / f"deletion_vector_{UUID}.bin").write_bytes(content)
    assert read(lake, made) == [0, 1, 4, 5]


def test_a_vector_is_in_a_file_at_an_absolute_path(lake, tmp_path):
    data = portable(5)
    place = tmp_path / "with space.bin"
    place.write_bytes(b"\1" + framed(data))
    path = f"file://{tmp_path}/with%20space.bin"
    assert read(lake, table(tmp_path, described("p", path, data, 1))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "CRC-32"),
        (lambda data: data[:-3], "does not fit"),
        (lambda data: b"\1\0\0\0\7" + data[5:], "length field"),
    ],
)
def test_a_damaged_vector_is_named(lake, tmp_path, damage, message):
    data = portable(2)
    made = table(tmp_path, described("u", ENCODED, data, 1))
    path = made.folder / f"deletion_vector_{UUID}.bin"
    path.write_bytes(damage(b"\1" + framed(data)))
    with pytest.raises(CorruptTableError, match=message) as failure:
        read(lake, made)
    assert failure.value.location == str(path)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (described("i", padded(portable(1)), portable(1), 3, offset=None), "expected 3"),
        (described("i", "~~~~~", b"12345", 1, offset=None), "no Z85 character"),
        (described("i", padded(b"\0" * 16), b"\0" * 16, 1, offset=None), "magic bytes"),
        (described("x", "abc", b"", 1), "storage type 'x'"),
        (described("u", "short", b"", 1), "names no UUID"),
        (described("u", "../" + ENCODED, b"", 1), "the path"),
    ],
)
def test_a_vector_that_cannot_be_is_an_error(lake, tmp_path, vector, message):
    with pytest.raises(CorruptTableError, match=message):
        read(lake, table(tmp_path, vector))


def test_a_native_vector_with_absurd_counts_is_damaged():
    for counts in ((-1,), (2**20,), (1, -5), (1, 2**30)):
        data = deletion_vector.NATIVE_MAGIC + b"".join(struct.pack("<i", one) for one in counts)
        with pytest.raises(CorruptTableError, match="not readable"):
            deletion_vector.decode_bare(data, "here")


def test_the_text_of_z85_is_the_one_of_its_specification():
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert z85.encode(data) == "HelloWorld" and z85.decode("HelloWorld") == data
    for text in ("abcd", "#####", "ab\u00e9cd"):
        with pytest.raises(ValueError, match=r"Z85|too large"):
            z85.decode(text)


def test_a_new_vector_replaces_the_old_one_of_its_file(lake, tmp_path):
    old = described("i", padded(portable(1)), portable(1), 1, offset=None)
    new = described("i", padded(portable(1, 2)), portable(1, 2), 2, offset=None)
    made = table(tmp_path, old)
    add = {"add": {**made.adds["f.parquet"], "deletionVector": new}}
    made.commit(made.remove("f.parquet", deletionVector=old), add)
    assert read(lake, made) == [0, 3, 4, 5]
    handle = lake.table(made.name).handle
    commit = handle.format.commit_of(handle, 2)
    assert commit.read(FileAction.ADDED_DATA) == commit.read(FileAction.REMOVED_DATA) == {}
    added = commit.read(FileAction.ADDED_DELETES)[0]
    removed = commit.read(FileAction.REMOVED_DELETES)[0]
    assert (added["record_count"].to_pylist(), removed["record_count"].to_pylist()) == ([2], [1])
    assert added["referenced_data_file"].to_pylist() == [str(made.folder / "f.parquet")]
