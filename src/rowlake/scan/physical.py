"""Values in Parquet's plain encoding, as Bloom filters hash them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from rowlake.scan.compare import scalar

Encoder = Callable[[Any], "bytes | None"]

_INTEGERS = {"INT32": ("<i", 32), "INT64": ("<q", 64)}


def encoder(source: pa.DataType, target: pa.DataType, physical_type: str) -> Encoder | None:
    """Return what encodes a predicate's values for a column chunk; None where none can.

    `source` is the file's type, `target` the table's. The encoder gives None for values that the
    file's type cannot hold. Floats are left out: their zeros and NaNs have many encodings.
    """
    if physical_type in _INTEGERS and _is_number(source, target):
        layout, bits = _INTEGERS[physical_type]
        return lambda value: _packed(_integer(value, target), layout, bits)
    if physical_type == "BYTE_ARRAY" and not pt.is_decimal(target):
        return lambda value: value.encode() if isinstance(value, str) else bytes(value)
    if physical_type == "FIXED_LEN_BYTE_ARRAY" and pt.is_fixed_size_binary(target):
        return lambda value: scalar(value, target).as_py()
    return None


def _is_number(source: pa.DataType, target: pa.DataType) -> bool:
    if pt.is_signed_integer(source) and pt.is_signed_integer(target):
        return True
    if pt.is_decimal(source) and pt.is_decimal(target):
        return bool(source.scale == target.scale)
    return bool(source.equals(target) and (pt.is_date32(source) or pt.is_timestamp(source)))


def _integer(value: Any, target: pa.DataType) -> int | None:
    held = scalar(value, target)
    if not held.type.equals(target):
        return None
    if pt.is_decimal(target):
        return int(held.as_py().scaleb(target.scale))
    if pt.is_integer(target):
        return int(held.as_py())
    return int(held.value)


def _packed(value: int | None, layout: str, bits: int) -> bytes | None:
    if value is None or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        return None
    return struct.pack(layout, value)
