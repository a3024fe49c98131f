"""Decimals as 128-bit integers in two NumPy columns: what bucket and truncate compute with.

A decimal's unscaled value is `high * 2**64 + low`, with `high` signed and `low` unsigned, as
Arrow stores it (16 bytes, little-endian, two's complement).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[Any, Any]

_BYTES = 16
# A value of k bytes is below 2**(8k - 1); these are the first that need another byte.
_LIMITS = np.array([1 << (8 * count - 1) for count in range(1, 9)], dtype=np.uint64)


def decimal_words(values: pa.Array) -> tuple[Numbers, Numbers]:
    """Return the unscaled values as (high, low); those of nulls mean nothing."""
    held = values.buffers()[1]
    if held is None:
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.uint64)
    first = values.offset * _BYTES
    rows = np.frombuffer(held, np.uint8)[first : first + len(values) * _BYTES].view("<u8")
    return rows[1::2].view(np.int64), rows[0::2]


def shortest_bytes(high: Numbers, low: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Return (bytes, starts, lengths): each value in big-endian order, in the fewest bytes.

    Fewest: as many as hold it in two's complement, at least one (spec, Appendix B).
    """
    rows = np.empty((len(high), 2), dtype=">u8")
    rows[:, 0], rows[:, 1] = high.view(np.uint64), low
    sign = high >> 63
    above, below = (high ^ sign).view(np.uint64), low ^ sign.view(np.uint64)
    lengths = 1 + np.searchsorted(_LIMITS, below, side="right")
    if above.any():
        wide = 9 + np.searchsorted(_LIMITS, above, side="right")
        lengths = np.where(above > 0, wide, lengths)
    starts = np.arange(1, len(high) + 1) * _BYTES - lengths
    return rows.reshape(-1).view(np.uint8), starts, lengths


def rounded_down(values: pa.Array, width: int) -> pa.Array:
    """Return decimals whose unscaled values are rounded down to multiples of `width`."""
    high, low = decimal_words(values)
    cut = np.empty((len(high), 2), dtype="<u8")
    left: Numbers
    if (high == low.view(np.int64) >> 63).all():  # all of them are 64-bit integers
        left = (low.view(np.int64) % np.int64(width)).view(np.uint64)
    else:
        divisor = np.uint64(width)
        of_high = (high % np.int64(width)).view(np.uint64) * np.uint64((1 << 64) % width)
        left = (of_high + low % divisor) % divisor
    cut[:, 0] = low - left
    cut[:, 1] = high.view(np.uint64) - (low < left)
    validity = values.is_valid().buffers()[1] if values.null_count else None
    return pa.Array.from_buffers(
        values.type, len(values), [validity, pa.py_buffer(cut)], values.null_count
    )
