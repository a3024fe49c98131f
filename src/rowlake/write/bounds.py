"""Lower and upper bounds of a column, as manifests store them (spec, Appendix D).

Comes in: the smallest and largest value of a column, as Parquet footers or Arrow hold them. Goes
out: their single-value binary form, cut where the column's metrics mode says so. Invariant: a
cut lower bound is not above, and a cut upper bound not below, the value it stands for; where no
such upper bound exists there is none.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from rowlake.write.metrics_modes import MetricsMode

SURROGATES = (0xD800, 0xDFFF)
LAST_CODE_POINT = 0x10FFFF
INT_BITS = 32


def encode_raw(value: Any, arrow_type: pa.DataType) -> bytes:
    """Return the binary form of a value that Parquet statistics hold in its physical type."""
    if pa.types.is_decimal(arrow_type):
        return _encode_unscaled(value)
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    if pa.types.is_float32(arrow_type):
        return struct.pack("<f", value)
    if pa.types.is_float64(arrow_type):
        return struct.pack("<d", value)
    # Bytes and shorts are kept as ints (`rowlake.model.values`).
    is_narrow = pa.types.is_date32(arrow_type) or (
        pa.types.is_integer(arrow_type) and arrow_type.bit_width <= INT_BITS
    )
    return struct.pack("<i" if is_narrow else "<q", value)


def _encode_unscaled(value: int | bytes) -> bytes:
    """Return an unscaled decimal, given as int or as big-endian bytes, in the fewest bytes."""
    unscaled = value if isinstance(value, int) else int.from_bytes(value, "big", signed=True)
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def cut_lower(value: bytes, arrow_type: pa.DataType, mode: MetricsMode) -> bytes:
    """Return a lower bound no longer than the mode allows."""
    if mode.length is None:
        return value
    if pa.types.is_string(arrow_type):
        return value.decode()[: mode.length].encode()
    return value[: mode.length] if pa.types.is_binary(arrow_type) else value


def cut_upper(value: bytes, arrow_type: pa.DataType, mode: MetricsMode) -> bytes | None:
    """Return an upper bound no longer than the mode allows, None where there is none."""
    if mode.length is None:
        return value
    if pa.types.is_string(arrow_type):
        return _cut_upper_text(value.decode(), mode.length)
    return _cut_upper_bytes(value, mode.length) if pa.types.is_binary(arrow_type) else value


def _cut_upper_text(text: str, length: int) -> bytes | None:
    if len(text) <= length:
        return text.encode()
    for end in range(length - 1, -1, -1):
        following = ord(text[end]) + 1
        if following == SURROGATES[0]:
            following = SURROGATES[1] + 1
        if following <= LAST_CODE_POINT:
            return (text[:end] + chr(following)).encode()
    return None


def _cut_upper_bytes(value: bytes, length: int) -> bytes | None:
    if len(value) <= length:
        return value
    kept = value[:length].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
