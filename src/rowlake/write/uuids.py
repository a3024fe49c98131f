"""UUIDs as text to the 16 bytes that tables hold, without a Python loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import SchemaMismatchError

TEXT_LENGTH = 36
DASHES = (8, 13, 18, 23)
DIGITS = [place for place in range(TEXT_LENGTH) if place not in DASHES]
PATTERN = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_NIBBLES = np.zeros(256, dtype=np.uint8)
for _digit in "0123456789abcdefABCDEF":
    _NIBBLES[ord(_digit)] = int(_digit, 16)


def uuids_from_text(values: pa.Array, column: str) -> pa.Array:
    """Return fixed_size_binary(16) of canonical UUID texts (or of 16-byte binaries)."""
    kind = pa.types
    if kind.is_binary(values.type) or kind.is_large_binary(values.type):
        return _from_bytes(values, column)
    if not (kind.is_string(values.type) or kind.is_large_string(values.type)):
        if not kind.is_string_view(values.type):
            raise _misfit(column, f"values of type {values.type}")
        values = values.cast(pa.string())
    fits = pc.match_substring_regex(values, PATTERN)
    if pc.all(fits).as_py() is False:
        raise _misfit(column, repr(values.filter(pc.invert(fits))[0].as_py()))
    present = values.drop_null().cast(pa.binary(TEXT_LENGTH), safe=True)
    text = np.frombuffer(present.buffers()[1], dtype=np.uint8)
    start = present.offset * TEXT_LENGTH
    rows = text[start : start + len(present) * TEXT_LENGTH].reshape(-1, TEXT_LENGTH)[:, DIGITS]
    nibbles = _NIBBLES[rows]
    packed = np.zeros((len(values), 16), dtype=np.uint8)
    valid = np.asarray(values.is_valid())
    packed[valid] = (nibbles[:, 0::2] << 4) | nibbles[:, 1::2]
    validity = values.is_valid().buffers()[1] if values.null_count else None
    return pa.Array.from_buffers(pa.binary(16), len(values), [validity, pa.py_buffer(packed)])


def _from_bytes(values: pa.Array, column: str) -> pa.Array:
    lengths = pc.binary_length(values)
    wrong = pc.not_equal(lengths, 16)
    if pc.any(wrong).as_py():
        raise _misfit(column, f"{lengths.filter(wrong)[0].as_py()} bytes")
    return values.cast(pa.binary(16))


def _misfit(column: str, sample: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Cannot write {sample} to column {column} of type uuid: "
        f"expected 16 bytes or text like 123e4567-e89b-12d3-a456-426614174000.",
        column=column,
    )
