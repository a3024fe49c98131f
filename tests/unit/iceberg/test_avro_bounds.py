"""Avro files that ask for more than they are: refused, in little time and memory."""

from __future__ import annotations

import bz2
import json
import lzma
import time
import tracemalloc
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.codecs import avro_file
from rowlake.codecs.avro_bounds import LEAST_LIMIT_BYTES, MOST_DEPTH, plain_limit
from rowlake.codecs.avro_container import container_header
from rowlake.codecs.avro_file import decode_file
from rowlake.errors import CorruptTableError
from rowlake.storage.files import Storage

STORAGE = Storage({})
MB = 1 << 20
TEXT = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string", "field-id": 1}]}


def deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def snappy(data: bytes) -> bytes:
    return pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big")


PACKERS = {
    "deflate": deflate,
    "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "snappy": snappy,
    "null": bytes,
}


def long(number: int) -> bytes:
    number, made = (number << 1) ^ (number >> 63), bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def write(tmp_path, blocks, schema=TEXT, codec="null"):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    head, sync = container_header({"avro.schema": text}, codec)
    framed = [long(count) + long(len(data)) + data + sync for count, data in blocks]
    path = tmp_path / "m.avro"
    path.write_bytes(b"".join([head, *framed]))
    return str(path)


def refused(path: str, *, most_bytes: int = 3 * LEAST_LIMIT_BYTES) -> CorruptTableError:
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(CorruptTableError) as raised:
            decode_file(path, STORAGE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert raised.value.location == path
    assert peak < most_bytes
    assert time.process_time() - started < 10
    return raised.value


@pytest.fixture(params=["python", "datafusion"])
def decoder(request, monkeypatch):
    limit = 0 if request.param == "datafusion" else 1 << 40
    monkeypatch.setattr(avro_file, "SMALL_FILE_BYTES", limit)
    monkeypatch.setattr(avro_file, "TINY_FILE_BYTES", limit)


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "bzip2", "xz"])
@pytest.mark.parametrize("blocks", [1, 8])
def test_a_block_that_unpacks_to_far_more_than_the_file_is_refused(
    tmp_path, decoder, codec, blocks
) -> None:
    value = long(24 * MB // blocks) + bytes(24 * MB // blocks)
    path = write(tmp_path, [(1, PACKERS[codec](value))] * blocks, codec=codec)
    assert "unpacks to more than" in str(refused(path))


@pytest.mark.parametrize("size", [2**31 - 1, 2**40, 2**62])
def test_a_snappy_block_that_claims_to_be_large_is_refused(tmp_path, decoder, size) -> None:
    varint = long(size // 2) if size % 2 == 0 else long(-(size // 2) - 1)
    path = write(tmp_path, [(1, varint + b"\0" * 100)], codec="snappy")
    assert "cannot be decompressed" in str(refused(path))


@pytest.mark.parametrize("codec", PACKERS)
def test_a_large_honest_file_is_read_whatever_its_codec(tmp_path, codec) -> None:
    rows = [long(40) + f"{number:040d}".encode() for number in range(20_000)]
    packed = PACKERS[codec](b"".join(rows))
    found, _ = decode_file(write(tmp_path, [(20_000, packed)] * 3, codec=codec), STORAGE)
    assert found.num_rows == 60_000
    assert found["a"][-1].as_py() == f"{19_999:040d}"


def test_large_files_may_unpack_to_much(tmp_path) -> None:
    assert plain_limit(8 * MB) >= 800 * MB
    assert plain_limit(1 << 50) <= 4 << 30


@pytest.mark.parametrize("count", [5, 2**40, 2**62])
@pytest.mark.parametrize("type_of", ["null", {"type": "fixed", "name": "f", "size": 0}])
def test_rows_that_take_no_bytes_are_refused(tmp_path, decoder, count, type_of) -> None:
    schema = {**TEXT, "fields": [{"name": "a", "type": type_of, "field-id": 1}]}
    refused(write(tmp_path, [(count, b"")], schema))


EMPTY = {"type": "record", "name": "e", "fields": []}


@pytest.mark.parametrize(
    "items", ["null", EMPTY, {"type": "fixed", "name": "f", "size": 0}], ids=str
)
def test_arrays_of_items_that_take_no_bytes_are_refused(tmp_path, decoder, items) -> None:
    of = {"type": "array", "items": items}
    schema = {**TEXT, "fields": [{"name": "a", "type": of, "field-id": 1}]}
    refused(write(tmp_path, [(1, long(2**40) + long(0))], schema))


def test_an_array_of_absurd_length_is_refused(tmp_path, decoder) -> None:
    of = {"type": "array", "items": "long"}
    schema = {**TEXT, "fields": [{"name": "a", "type": of, "field-id": 1}]}
    refused(write(tmp_path, [(1, long(2**40) + bytes(100))], schema))


def nested(levels: int) -> str:
    opening, closing = '{"type":"array","items":', "}"
    field = f'{{"name":"a","field-id":1,"type":{opening * levels}"int"{closing * levels}}}'
    return f'{{"type":"record","name":"r","fields":[{field}]}}'


@pytest.mark.parametrize("levels", [MOST_DEPTH + 1, 500, 100_000])
def test_a_schema_nested_too_deep_is_refused(tmp_path, decoder, levels) -> None:
    refused(write(tmp_path, [], nested(levels)))


def test_a_schema_that_doubles_with_every_name_is_refused(tmp_path, decoder) -> None:
    fields = [{"name": "x0", "type": {**EMPTY, "name": "n0"}}]
    for number in range(1, 30):
        below = [{"name": side, "type": f"n{number - 1}"} for side in "ab"]
        made = {"type": "record", "name": f"n{number}", "fields": below}
        fields.append({"name": f"x{number}", "type": made})
    refused(write(tmp_path, [], {**TEXT, "fields": fields}))


@pytest.mark.parametrize("size", [-1, "7", True, None, 2.5])
def test_a_fixed_type_of_no_size_is_refused(tmp_path, size) -> None:
    of = {"type": "fixed", "name": "f", "size": size}
    refused(write(tmp_path, [], {**TEXT, "fields": [{"name": "a", "type": of}]}))


@pytest.mark.parametrize(
    "text", ["[]", "null", "7", '"x"', "{", "NaN", '{"type":"record","fields":7}', "\ud800"]
)
def test_a_schema_that_is_none_is_refused(tmp_path, text) -> None:
    head, _ = container_header({"avro.schema": "@"}, "null")
    raw = text.encode("utf-8", "surrogatepass")
    path = tmp_path / "m.avro"
    path.write_bytes(head.replace(long(1) + b"@", long(len(raw)) + raw))
    refused(str(path))


def test_a_number_that_never_ends_is_refused(tmp_path, decoder) -> None:
    refused(write(tmp_path, [(1, b"\x80" * 500_000 + b"\0")]))


def test_a_block_whose_count_never_ends_is_refused(tmp_path, decoder) -> None:
    path = Path(write(tmp_path, []))
    path.write_bytes(path.read_bytes() + b"\xff" * 1000)
    refused(str(path))
