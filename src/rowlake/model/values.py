"""Single values as the spec stores them (Appendix D): binary for bounds, JSON for defaults.

Comes in: Arrow arrays of a column's type. Goes out: arrays of bytes, and back. Binary layouts:

- boolean: 1 byte, 0 or 1
- int (and narrower), date: 4 bytes; long, time, timestamp, timestamp_ns: 8 bytes; little-endian
- float, double: 4 or 8 bytes, IEEE 754, little-endian
- decimal: unscaled value, two's complement, big-endian, the fewest bytes that hold it
- string: UTF-8; uuid: 16 bytes, big-endian; fixed, binary, and what else is opaque: as it is

Invariants: null stays null; a value written before a type promotion decodes to the promoted type.
"""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CorruptTableError, InvalidStatementError
from rowlake.model.files import ENCODED_PARTITION
from rowlake.model.schema import children, field_id, type_name
from rowlake.model.type_names import ARROW_TYPES

DECIMAL_BYTES = 16
INT_BITS = 32
MICROS_PER_DAY = 86_400_000_000
_WITHOUT_WIDTH = ("boolean", "string", "binary", "unknown")
FIXED_WIDTHS = {name: held for name, held in ARROW_TYPES.items() if name not in _WITHOUT_WIDTH}


def encode(values: pa.Array, iceberg_type: str | None = None) -> pa.BinaryArray:
    """Return each value's binary form; `iceberg_type` (`long`, …) casts first where it is given."""
    array = _normalized(values)
    if iceberg_type in FIXED_WIDTHS:
        array = array.cast(FIXED_WIDTHS[iceberg_type])
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.binary())
    if pa.types.is_decimal(array.type):
        return _encode_decimals(array)
    if pa.types.is_boolean(array.type):
        return _from_rows(np.asarray(array.cast(pa.uint8()).fill_null(0))[:, None], array)
    if pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    if pa.types.is_binary(array.type) or pa.types.is_string(array.type):
        return array.cast(pa.binary())
    if pa.types.is_nested(array.type):
        raise InvalidStatementError(f"A {array.type} has no single-value form.")
    return _from_rows(_fixed_rows(array), array)


def decode(encoded: pa.BinaryArray, to: pa.DataType) -> pa.Array:
    """Return the values of an encoded array as type `to`.

    Accepts what a narrower type wrote before promotion: 4 bytes for long, double, and (a date)
    for timestamps; decimals of any length up to 16 bytes. Raises CorruptTableError otherwise.
    """
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if pa.types.is_null(to):
        return pa.nulls(len(encoded))
    if isinstance(to, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(to, decode(encoded, to.storage_type))
    try:
        if pa.types.is_decimal(to):
            return _decode_decimals(encoded, to)
        if _is_bytes(to):
            return encoded.cast(to)
        if pa.types.is_integer(to) and to.bit_width < INT_BITS:
            return _decode_fixed(encoded, pa.int32()).cast(to)
        return _decode_fixed(encoded, to)
    except pa.ArrowInvalid as error:
        raise CorruptTableError(f"a value of type {to}", str(error)) from error


def encode_partitions(partitions: pa.StructArray) -> pa.ListArray:
    """Return native partition values as lists of encodings (`ENCODED_PARTITION`)."""
    if isinstance(partitions, pa.ChunkedArray):
        partitions = partitions.combine_chunks()
    rows, width = len(partitions), partitions.type.num_fields
    columns = [encode(column) for column in partitions.flatten()]
    offsets = pa.array(np.arange(rows + 1, dtype=np.int64) * width, pa.int32())
    if not columns:
        return pa.ListArray.from_arrays(offsets, pa.array([], pa.binary()), ENCODED_PARTITION)
    row_major = np.arange(rows * width).reshape(width, rows).T.ravel()
    flat = pa.concat_arrays(columns).take(pa.array(row_major))
    return pa.ListArray.from_arrays(offsets, flat, ENCODED_PARTITION)


def decode_partitions(encoded: pa.ListArray, to: pa.StructType) -> pa.StructArray:
    """Return encoded partitions as structs of type `to`, which has one field per encoding."""
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    rows, width = len(encoded), to.num_fields
    if rows and not pc.all(pc.equal(pc.list_value_length(encoded), width)).as_py():
        raise InvalidStatementError(f"A partition of {to} needs {width} values.")
    fields = [to.field(index) for index in range(width)]
    if not fields:
        return pa.array([{}] * rows, to)
    flat = encoded.flatten()
    places = np.arange(rows) * width
    columns = [
        decode(flat.take(pa.array(places + index)), field.type)
        for index, field in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _normalized(values: pa.Array) -> pa.Array:
    """Return one plain array: no chunks, dictionaries, extensions, views or odd units."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    if pa.types.is_large_binary(array.type) or pa.types.is_binary_view(array.type):
        return array.cast(pa.binary())
    if pa.types.is_decimal(array.type) and not pa.types.is_decimal128(array.type):
        return array.cast(pa.decimal128(array.type.precision, array.type.scale))
    if pa.types.is_time(array.type):
        return array.cast(pa.time64("us"), safe=False)
    if pa.types.is_timestamp(array.type) and array.type.unit in ("s", "ms"):
        return array.cast(pa.timestamp("us", array.type.tz))
    if pa.types.is_integer(array.type) and array.type.bit_width < 32:
        return array.cast(pa.int32())
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    return array


def _is_bytes(to: pa.DataType) -> bool:
    return any(
        test(to)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_fixed_size_binary,
        )
    )


def _fixed_rows(array: pa.Array) -> np.ndarray:
    """Return the bytes of a fixed-width array, one row per value; what is under nulls is any."""
    width = array.type.bit_width // 8
    data = np.frombuffer(array.buffers()[1] or b"", dtype=np.uint8)
    start = array.offset * width
    return data[start : start + len(array) * width].reshape(len(array), width)


def _from_rows(rows: np.ndarray, source: pa.Array) -> pa.BinaryArray:
    """Return rows of equally many bytes as a binary array with the nulls of `source`."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int32) * width
    return _binary(offsets.astype(np.int32), np.ascontiguousarray(rows), source)


def _binary(offsets: np.ndarray, data: np.ndarray, source: pa.Array) -> pa.BinaryArray:
    mask = source.is_null() if source.null_count else None
    validity = None if mask is None else pc.invert(mask).buffers()[1]
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(source), buffers)


def _encode_decimals(array: pa.Array) -> pa.BinaryArray:
    big_endian = _fixed_rows(array)[:, ::-1]
    if array.null_count:
        big_endian = np.where(np.asarray(array.is_null())[:, None], 0, big_endian).astype(np.uint8)
    lengths = _needed_bytes(big_endian)
    kept = np.arange(DECIMAL_BYTES)[None, :] >= (DECIMAL_BYTES - lengths)[:, None]
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return _binary(offsets, big_endian[kept], array)


def _needed_bytes(big_endian: np.ndarray) -> np.ndarray:
    """Return how many trailing bytes of each two's complement row hold its value."""
    sign = np.where(big_endian[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    redundant = (big_endian[:, :-1] == sign) & ((big_endian[:, 1:] & 0x80) == (sign & 0x80))
    leading = np.cumprod(redundant, axis=1).sum(axis=1)
    return np.asarray(DECIMAL_BYTES - leading)


def _dense(encoded: pa.BinaryArray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (start, length, bytes) of the values that are not null."""
    values = encoded.drop_null() if encoded.null_count else encoded
    buffers = values.buffers()
    offsets = np.frombuffer(buffers[1] or b"\0\0\0\0", dtype=np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(buffers[2] or b"", dtype=np.uint8)
    return offsets[:-1], np.diff(offsets), data


def _scatter(dense: np.ndarray, encoded: pa.BinaryArray) -> np.ndarray:
    """Return rows for all values of `encoded`: dense ones where it is valid, zeros elsewhere."""
    if not encoded.null_count:
        return np.ascontiguousarray(dense)
    rows = np.zeros((len(encoded), dense.shape[1]), dtype=np.uint8)
    rows[np.asarray(encoded.is_valid())] = dense
    return rows


def _to_arrow(rows: np.ndarray, to: pa.DataType, encoded: pa.BinaryArray) -> pa.Array:
    validity = encoded.is_valid().buffers()[1] if encoded.null_count else None
    return pa.Array.from_buffers(to, len(encoded), [validity, pa.py_buffer(rows)])


def _decode_decimals(encoded: pa.BinaryArray, to: pa.DataType) -> pa.Array:
    starts, lengths, data = _dense(encoded)
    if len(lengths) and (lengths.min() < 1 or lengths.max() > DECIMAL_BYTES):
        raise _bad_width(to, lengths)
    places = (
        starts[:, None] + np.arange(DECIMAL_BYTES)[None, :] - (DECIMAL_BYTES - lengths)[:, None]
    )
    held = places >= starts[:, None]
    negative = data[starts] & 0x80 if len(starts) else np.zeros(0, dtype=np.uint8)
    rows = np.repeat(np.where(negative, 0xFF, 0).astype(np.uint8)[:, None], DECIMAL_BYTES, axis=1)
    rows[held] = data[places[held]]
    wide = pa.decimal128(to.precision, to.scale)
    array = _to_arrow(_scatter(rows[:, ::-1], encoded), wide, encoded)
    return array if wide == to else array.cast(to)


def _decode_fixed(encoded: pa.BinaryArray, to: pa.DataType) -> pa.Array:
    starts, lengths, data = _dense(encoded)
    if pa.types.is_boolean(to):
        flags = _scatter(_rows_at(starts, lengths, data, 1, to), encoded)[:, 0] != 0
        return pa.array(flags, mask=np.asarray(encoded.is_null()))
    width = to.bit_width // 8
    narrow = lengths == 4 if width == 8 else np.zeros(len(lengths), dtype=bool)
    if not narrow.any():
        rows = _rows_at(starts, lengths, data, width, to)
    else:
        rows = np.empty((len(lengths), width), dtype=np.uint8)
        wide = ~narrow
        rows[wide] = _rows_at(starts[wide], lengths[wide], data, width, to)
        rows[narrow] = _promoted(_rows_at(starts[narrow], lengths[narrow], data, 4, to), to)
    return _to_arrow(_scatter(rows, encoded), to, encoded)


def _rows_at(
    starts: np.ndarray, lengths: np.ndarray, data: np.ndarray, width: int, to: pa.DataType
) -> np.ndarray:
    if (lengths != width).any():
        raise _bad_width(to, lengths)
    if len(starts) and starts[-1] - starts[0] == (len(starts) - 1) * width:
        return data[starts[0] : starts[0] + len(starts) * width].reshape(len(starts), width)
    return data[starts[:, None] + np.arange(width)[None, :]]


def _promoted(rows: np.ndarray, to: pa.DataType) -> np.ndarray:
    """Return 4-byte values as the 8-byte ones they were promoted to (spec, Schema Evolution)."""
    if pa.types.is_floating(to):
        wide = np.ascontiguousarray(rows).view("<f4").astype("<f8")
    elif pa.types.is_integer(to):
        wide = np.ascontiguousarray(rows).view("<i4").astype("<i8")
    elif pa.types.is_timestamp(to) and to.tz is None:
        per_day = MICROS_PER_DAY * (1000 if to.unit == "ns" else 1)
        wide = np.ascontiguousarray(rows).view("<i4").astype("<i8") * per_day
    else:
        raise _bad_width(to, np.array([4]))
    return wide.view(np.uint8).reshape(len(rows), 8)


def _bad_width(to: pa.DataType, lengths: np.ndarray) -> CorruptTableError:
    sizes = sorted({int(length) for length in lengths})
    return CorruptTableError(f"a value of type {to}", f"its encoding has {sizes} bytes")


def from_json(text: str, field: pa.Field) -> pa.Scalar:
    """Return the value of a JSON single-value text (a column default) as the field's type."""
    try:
        return pa.scalar(_from_json(json.loads(text), field), field.type)
    except (ValueError, ArithmeticError, TypeError, AttributeError, KeyError) as error:
        raise InvalidStatementError(
            f"{text} is not a {type_name(field) or field.type} value for {field.name}."
        ) from error


def to_json(value: pa.Scalar, field: pa.Field) -> str:
    """Return the JSON single-value text of a value of this field."""
    scalar = value if isinstance(value, pa.Scalar) else pa.scalar(value, field.type)
    return json.dumps(_to_json(scalar, field))


def _from_json(value: Any, field: pa.Field) -> Any:
    """Return what `pa.scalar` takes for a parsed JSON value of this field."""
    if value is None:
        return None
    to = field.type
    if pa.types.is_struct(to):
        below = {child.name: value.get(str(field_id(child))) for child in children(to)}
        return {child.name: _from_json(below[child.name], child) for child in children(to)}
    if pa.types.is_map(to):
        key, item = children(to)
        pairs = zip(value["keys"], value["values"], strict=True)
        return [(_from_json(name, key), _from_json(held, item)) for name, held in pairs]
    if children(to):
        return [_from_json(element, children(to)[0]) for element in value]
    return _leaf_from_json(value, field)


def _leaf_from_json(value: Any, field: pa.Field) -> Any:
    to = field.type
    if type_name(field) == "uuid":
        return uuid.UUID(value).bytes
    if pa.types.is_fixed_size_binary(to) or pa.types.is_binary(to) or pa.types.is_large_binary(to):
        return bytes.fromhex(value)
    if pa.types.is_decimal(to):
        return Decimal(value)
    if pa.types.is_time(to):  # Arrow parses no text to a time of day, but to a timestamp
        return pa.scalar(f"1970-01-01T{value}").cast(pa.timestamp(to.unit)).cast(to)
    if pa.types.is_temporal(to):
        return pa.scalar(value, pa.string()).cast(to)
    expected = _json_kind(to)
    if isinstance(value, bool) is not (expected is bool) or not isinstance(value, expected):
        raise TypeError(value)
    return value


def _json_kind(to: pa.DataType) -> Any:
    if pa.types.is_boolean(to):
        return bool
    if pa.types.is_integer(to):
        return int
    return (int, float) if pa.types.is_floating(to) else str


def _to_json(scalar: pa.Scalar, field: pa.Field) -> Any:
    to = field.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(to):
        return {str(field_id(child)): _to_json(scalar[child.name], child) for child in children(to)}
    if pa.types.is_map(to):
        key, item = children(to)
        keys, items = scalar.values.flatten()
        return {
            "keys": [_to_json(name, key) for name in keys],
            "values": [_to_json(held, item) for held in items],
        }
    if children(to):
        return [_to_json(element, children(to)[0]) for element in scalar.values]
    return _leaf_to_json(scalar, field)


def _leaf_to_json(scalar: pa.Scalar, field: pa.Field) -> Any:
    to = field.type
    if type_name(field) == "uuid":
        return str(uuid.UUID(bytes=scalar.as_py()))
    if pa.types.is_temporal(to):
        text = scalar.cast(pa.string()).as_py().replace(" ", "T")
        return text[:-1] + "+00:00" if text.endswith("Z") else text
    value = scalar.as_py()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value
