"""Arrow columns to Avro bytes, a column at a time.

Comes in: Arrow arrays and the Avro schema that they are written with (plain JSON values, with
`field-id`s). Goes out: one binary value per row, then blocks of a container file
(`rowlake.codecs.avro_container`). No row is looked at from Python: each column becomes an array of
byte strings, and Arrow joins them.
"""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.codecs.avro_container import Block, varint
from rowlake.errors import InternalError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DECIMAL_BYTES = 16
# On entries of manifests higher levels gain a percent and cost several times as much.
DEFLATE_LEVEL = 2
# Up to this many numbers are encoded one by one: NumPy takes longer to start.
_FEW = 8
_NULL_BRANCH, _VALUE_BRANCH = b"\x00", b"\x02"

# A piece of every row: an array with one byte string per row, or one byte string for all rows.
Part: TypeAlias = "pa.BinaryArray | bytes"


def encode_rows(
    fields: Sequence[Mapping[str, Any]], columns: Mapping[int, pa.Array], count: int
) -> pa.BinaryArray:
    """Return the Avro bytes of each row of a record; `columns` are by the fields' `field-id`."""
    named: dict[str, Any] = {}
    parts: list[Part] = []
    for field in fields:
        parts += _parts(columns[field["field-id"]], field["type"], named)
    return _joined(parts, count)


def varints(values: np.ndarray) -> pa.BinaryArray:
    """Return integers as zigzag varints."""
    if len(values) <= _FEW:
        return pa.array(map(varint, values.tolist()), pa.binary())
    signed = values.astype(np.int64, copy=False)
    zigzag = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    largest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-largest.bit_length() // 7))
    if width == 1:
        offsets = np.arange(len(zigzag) + 1, dtype=np.int32)
        return _binary(offsets, zigzag.astype(np.uint8))
    lengths = np.ones(len(zigzag), dtype=np.int32)
    rows = np.empty((len(zigzag), width), dtype=np.uint8)
    for place in range(width):
        shifted = zigzag >> np.uint64(7 * place)
        rows[:, place] = shifted
        if place:
            lengths += shifted != 0
    rows |= 0x80
    ends = np.arange(len(zigzag)) * width + lengths - 1
    rows.reshape(-1)[ends] &= 0x7F
    if int(lengths.min()) == width:
        return _binary(np.arange(len(zigzag) + 1, dtype=np.int32) * width, rows)
    offsets = np.zeros(len(zigzag) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return _binary(offsets, rows[np.arange(width)[None, :] < lengths[:, None]])


def _parts(array: pa.Array, avro: Any, named: dict[str, Any], missing: int = 0) -> list[Part]:
    """Return what each row of a column adds to its record.

    Of the records themselves some may be `missing`; a required column is null there, only there.
    """
    if isinstance(avro, list):
        return _option_parts(array, next(branch for branch in avro if branch != "null"), named)
    if array.null_count > missing and avro != "null":
        raise InternalError("A required column of a manifest has nulls.")
    return _value_parts(array, avro, named)


def _option_parts(array: pa.Array, avro: Any, named: dict[str, Any]) -> list[Part]:
    if array.null_count == len(array):
        _remember(avro, named)
        return [_NULL_BRANCH]
    parts = [_VALUE_BRANCH, *_value_parts(array, avro, named)]
    if not array.null_count:
        return parts
    return [pc.if_else(array.is_valid(), _joined(parts, len(array)), _NULL_BRANCH)]


def _remember(avro: Any, named: dict[str, Any]) -> None:
    if isinstance(avro, dict) and "name" in avro:
        named[avro["name"]] = avro


def _value_parts(array: pa.Array, avro: Any, named: dict[str, Any]) -> list[Part]:
    """Return the parts of a column whose nulls, if any, will be overwritten."""
    _remember(avro, named)
    if isinstance(avro, str):
        avro = named.get(avro, {"type": avro})
    encoder = _ENCODERS.get(avro["type"])
    if encoder is None:
        raise UnsupportedFeatureError(f"Cannot write Avro values of type {avro['type']}.")
    return encoder(array, avro, named)


def _nothing(_array: pa.Array, _avro: Any, _named: dict[str, Any]) -> list[Part]:
    return []


def _booleans(array: pa.Array, _avro: Any, _named: dict[str, Any]) -> list[Part]:
    flags = np.asarray(array.cast(pa.uint8()).fill_null(0))
    return [_binary(np.arange(len(flags) + 1, dtype=np.int32), flags)]


def _integers(array: pa.Array, _avro: Any, _named: dict[str, Any]) -> list[Part]:
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if array.null_count:
        array = array.fill_null(0)
    return [varints(array.to_numpy(zero_copy_only=False))]


def _floats(array: pa.Array, avro: Any, _named: dict[str, Any]) -> list[Part]:
    numbers = array.fill_null(0) if array.null_count else array
    rows = numbers.to_numpy().astype("<f4" if avro["type"] == "float" else "<f8")
    width = rows.dtype.itemsize
    return [_binary(np.arange(len(rows) + 1, dtype=np.int32) * width, rows)]


def _byte_strings(array: pa.Array, _avro: Any, _named: dict[str, Any]) -> list[Part]:
    lengths = pc.binary_length(array)
    sizes = (lengths.fill_null(0) if array.null_count else lengths).to_numpy()
    values = array.cast(pa.binary())
    return [varints(sizes), values.fill_null(b"") if values.null_count else values]


def _fixed(array: pa.Array, avro: Any, _named: dict[str, Any]) -> list[Part]:
    size = avro["size"]
    if pa.types.is_decimal(array.type):
        data = np.frombuffer(array.buffers()[1], dtype=np.uint8).reshape(-1, DECIMAL_BYTES)
        rows = data[array.offset : array.offset + len(array), :size][:, ::-1]
        offsets = np.arange(len(array) + 1, dtype=np.int32) * size
        return [_binary(offsets, np.ascontiguousarray(rows))]
    values = array.cast(pa.binary())
    return [values.fill_null(bytes(size)) if values.null_count else values]


def _arrays(array: pa.Array, avro: Any, named: dict[str, Any]) -> list[Part]:
    """Encode lists and maps: items lie one after the other, so a list is a range of their bytes."""
    offsets = array.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    items = _items(array, avro, first, last, named)
    item_offsets = np.frombuffer(items.buffers()[1] or bytes(4), dtype=np.int32)
    bodies = _binary(item_offsets[offsets - first], items.buffers()[2] or b"")
    counts = np.diff(offsets)
    heads = varints(counts)
    if int(counts.min(initial=1)) == 0:
        heads = pc.if_else(pa.array(counts > 0), heads, b"")
    return [heads, bodies, b"\x00"]


def _items(
    array: pa.Array, avro: Any, first: int, last: int, named: dict[str, Any]
) -> pa.BinaryArray:
    count, item = last - first, avro["items"]
    if pa.types.is_map(array.type):
        columns = [array.keys.slice(first, count), array.items.slice(first, count)]
        parts: list[Part] = []
        for column, field in zip(columns, item["fields"], strict=True):
            parts += _parts(column, field["type"], named)
    else:
        parts = _parts(array.values.slice(first, count), item, named)
    joined = _joined(parts, count)
    # A range of offsets must start at the buffer's first value.
    return joined if joined.offset == 0 else pa.concat_arrays([joined])


def _records(array: pa.Array, avro: Any, named: dict[str, Any]) -> list[Part]:
    parts: list[Part] = []
    for column, field in zip(array.flatten(), avro["fields"], strict=True):
        parts += _parts(column, field["type"], named, array.null_count)
    return parts


_ENCODERS: dict[str, Callable[[pa.Array, Any, dict[str, Any]], list[Part]]] = {
    "null": _nothing,
    "boolean": _booleans,
    "int": _integers,
    "long": _integers,
    "float": _floats,
    "double": _floats,
    "string": _byte_strings,
    "bytes": _byte_strings,
    "fixed": _fixed,
    "array": _arrays,
    "record": _records,
}


def _binary(offsets: np.ndarray, data: Any) -> pa.BinaryArray:
    """Return a binary array over offsets and bytes, nothing copied."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32, copy=False)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _joined(parts: Sequence[Part], count: int) -> pa.BinaryArray:
    """Return the parts of each row joined."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += part
        else:
            merged.append(part)
    if all(isinstance(part, bytes) for part in merged):
        return pa.array([b"".join(merged)], pa.binary()).take(pa.array(np.zeros(count, np.int64)))
    if len(merged) == 1:
        return merged[0]
    empty = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(
        *(pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part for part in merged),
        empty,
    )


def encode_blocks(
    rows: pa.BinaryArray, first: int, codec: str, target_size_in_bytes: int
) -> list[Block]:
    """Cut encoded rows into blocks near a size, compressed by several threads."""
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)[: len(rows) + 1]
    data = memoryview(rows.buffers()[2] or b"")
    cuts, at = [], 0
    while at < len(rows):
        limit = int(offsets[at]) + target_size_in_bytes
        end = max(at + 1, int(np.searchsorted(offsets, limit, side="right")) - 1)
        cuts.append((at, end))
        at = end

    def block(cut: tuple[int, int]) -> Block:
        start, end = cut
        raw = data[int(offsets[start]) : int(offsets[end])]
        return Block(first + start, end - start, compress(raw, codec))

    if len(cuts) == 1:
        return [block(cuts[0])]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(block, cuts))


def compress(data: memoryview | bytes, codec: str) -> bytes:
    """Return a block's bytes in an Avro codec: `null`, `deflate`, `snappy` or `zstandard`."""
    if codec == "deflate":
        raw = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return raw.compress(data) + raw.flush()
    if codec == "zstandard":
        packed: bytes = pa.Codec("zstd", compression_level=3).compress(data, asbytes=True)
        return packed
    if codec == "snappy":
        snapped: bytes = pa.Codec("snappy").compress(data, asbytes=True)
        return snapped + zlib.crc32(data).to_bytes(4, "big")
    if codec == "null":
        return bytes(data)
    raise UnsupportedFeatureError(f"Cannot write Avro files with the codec {codec}.")
