"""Data files that say more than they hold, or hold far more than they say: within bounds, named."""

from __future__ import annotations

import bz2
import json
import lzma
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from rowlake.errors import CorruptTableError
from rowlake.scan import avro_blocks
from rowlake.scan.avro_blocks import inflated
from tests.forged_files import DATA, FOOTER, INDEX, OFFSET, ROWS, forged_orc, forged_parquet, zigzag
from tests.scanning import field, file_task, scan, scanned, schema, table_of

if TYPE_CHECKING:
    from rowlake.model.schema import Schema

TABLE = schema(field("k", pa.int64(), 1))
HELD = table_of(TABLE, [{"k": index} for index in range(1000)])
SYNC = bytes(range(16))
CODECS = ["null", "deflate", "snappy", "bzip2", "xz", "zstandard"]
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "t",
    "fields": [{"name": "k", "type": ["null", "long"], "field-id": 1}],
}


def corrupt(path: str, file_format: str, table: Schema = TABLE, **facts) -> CorruptTableError:
    with pytest.raises(CorruptTableError) as raised:
        scan(table, file_task(path, file_format), **facts)
    assert raised.value.location == path
    return raised.value


@pytest.mark.parametrize("rows", [-1, 0, 1001, 1 << 31, 1 << 60, (1 << 63) - 1])
@pytest.mark.parametrize("columns", ["read", "not read"])
def test_a_parquet_footer_that_counts_other_rows_than_there_are(tmp_path, rows, columns) -> None:
    path = forged_parquet(tmp_path / "p", HELD, {1000: rows})
    if columns == "read":
        corrupt(path, "PARQUET") if rows else scan(TABLE, file_task(path))
    elif rows in (-1, 1 << 60, (1 << 63) - 1):
        corrupt(path, "PARQUET", projection=schema())


@pytest.mark.parametrize("place", range(0, 400, 7))
def test_a_damaged_parquet_footer_is_named(tmp_path, place) -> None:
    path = Path(forged_parquet(tmp_path / "p", HELD, {}))
    data = bytearray(path.read_bytes())
    data[-9 - place] ^= 0xFF
    path.write_bytes(bytes(data))
    try:
        scan(TABLE, file_task(str(path)))
    except CorruptTableError as error:
        assert error.location == str(path)


@pytest.mark.parametrize(
    "changed",
    [
        *({ROWS: count} for count in (10, 1001, 1 << 62)),
        *({part: 1 << 60} for part in (DATA, FOOTER, INDEX, OFFSET)),
        {OFFSET: 0},
        {DATA: 0},
    ],
)
def test_an_orc_stripe_that_is_not_as_the_footer_says(tmp_path, changed) -> None:
    stored = pa.table(HELD.columns, schema=pa.schema([_orc_field()]))
    corrupt(forged_orc(tmp_path / "o", stored, changed), "ORC")


def _orc_field() -> pa.Field:
    return pa.field("k", pa.int64(), metadata={"iceberg.id": "1"})


def test_an_orc_file_with_an_id_that_is_no_number(tmp_path) -> None:
    stored = pa.table({"k": pa.array([1])}, pa.schema([("k", pa.int64())]))
    named = stored.cast(pa.schema([pa.field("k", pa.int64(), metadata={"iceberg.id": "one"})]))
    path = tmp_path / "o"
    orc.write_table(named, str(path))
    corrupt(str(path), "ORC")


def bomb(size: int) -> bytes:
    """Return a deflate stream of zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    zeros = bytes(1 << 20)
    return b"".join(packer.compress(zeros) for _ in range(size >> 20)) + packer.flush()


def avro_file(path: Path, codec: str, count: int, block: bytes, text: str | None = None) -> str:
    held = {"avro.schema": text or json.dumps(AVRO), "avro.codec": codec}
    pairs = b"".join(_text(part) for pair in held.items() for part in pair)
    head = b"Obj\x01" + zigzag(len(held)) + pairs + b"\0" + SYNC
    path.write_bytes(head + zigzag(count) + zigzag(len(block)) + block + SYNC)
    return str(path)


def _text(text: str) -> bytes:
    return zigzag(len(text.encode())) + text.encode()


def test_a_deflate_bomb_is_refused_before_it_is_in_memory(tmp_path) -> None:
    path = avro_file(tmp_path / "a", "deflate", 700 << 20, bomb(700 << 20))
    assert "unpacks to more than" in corrupt(path, "AVRO").cause


def test_a_snappy_block_of_absurd_size_is_refused(tmp_path) -> None:
    block = b"\xff\xff\xff\xff\x0f" + bytes(20)
    assert "unpacks to" in corrupt(avro_file(tmp_path / "a", "snappy", 5, block), "AVRO").cause


def compressed(codec: str, data: bytes) -> bytes:
    if codec == "snappy":
        found: bytes = pa.Codec("snappy").compress(data, asbytes=True)
        return found + struct.pack(">I", zlib.crc32(data))
    if codec == "deflate":
        packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        return packer.compress(data) + packer.flush()
    plain = {"bzip2": bz2.compress, "xz": lzma.compress, "null": bytes}
    return plain[codec](data) if codec in plain else pa.Codec("zstd").compress(data, asbytes=True)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_bounded(codec) -> None:
    zeros = bytes(3 << 20)
    block = compressed(codec, zeros)
    assert inflated(block, codec, 3 << 20) == zeros
    with pytest.raises(ValueError, match="unpacks to"):
        inflated(block, codec, 2 << 20)
    with pytest.raises(ValueError, match="block cannot be decompressed"):
        inflated(block[: len(block) // 2], codec, 1 << 20)


@pytest.mark.parametrize("count", [1 << 40, (1 << 63) - 1])
def test_a_block_that_counts_more_rows_than_it_has_bytes(tmp_path, count) -> None:
    path = avro_file(tmp_path / "a", "null", count, b"\x02\x02")
    assert "rows" in corrupt(path, "AVRO").cause


@pytest.mark.parametrize("text", ["{}", "[]", "1", '"long"', '{"type": "record"}', "[" * 5000])
def test_an_avro_schema_that_is_none_is_named(tmp_path, text) -> None:
    corrupt(avro_file(tmp_path / "a", "null", 1, b"\x02\x02", text), "AVRO")


@pytest.mark.parametrize("codec", CODECS)
def test_honest_blocks_that_compress_well_are_read_in_pieces(tmp_path, codec, monkeypatch) -> None:
    monkeypatch.setattr(avro_blocks, "PIECE_BYTES", 10_000)
    keys = [None if index % 5 else index for index in range(20_000)]
    path = Path(avro_file(tmp_path / "a", codec, 0, compressed(codec, b"")))
    with path.open("ab") as out:
        for start in range(0, len(keys), 2_000):
            some = [b"\0" if key is None else b"\2" + zigzag(key) for key in keys[start:][:2_000]]
            block = compressed(codec, b"".join(some))
            out.write(zigzag(len(some)) + zigzag(len(block)) + block + SYNC)
    assert scanned(TABLE, file_task(str(path), "AVRO"))["k"].to_pylist() == keys
