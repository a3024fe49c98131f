"""Which Parquet encoding each column gets, chosen from its first rows.

Comes in: a sample of each leaf. Goes out: `dictionary`, `delta` or `plain` by Parquet path.
Only encodings that Spark's vectorised reader, parquet-mr and Iceberg's readers decode are chosen
(BYTE_STREAM_SPLIT is smaller for floating point, but Spark 4.1 refuses it). A dictionary pays
where values repeat; DELTA_BINARY_PACKED for whole numbers, dates, times and decimals up to 18
digits where they do not; plain for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.write.leaves import Leaf, leaf_values

if TYPE_CHECKING:
    from collections.abc import Mapping

SAMPLE_ROWS = 32 * 1024
MINIBLOCK = 32
DICTIONARY, DELTA, PLAIN = "dictionary", "delta", "plain"
BITS_OF_LONG = 64


@dataclass(frozen=True)
class Encodings:
    """Settings for pyarrow: columns with a dictionary, and the encodings of the others."""

    dictionary: tuple[str, ...]
    others: Mapping[str, str]


def choose_encodings(
    leaves: list[Leaf], batch: pa.RecordBatch, rows: int, wanted: Mapping[str, bool]
) -> Encodings:
    """Choose from a batch; `rows` is about what a row group will hold.

    `wanted` says by column name whether a dictionary must or must not be used.
    """
    sample = batch.slice(0, SAMPLE_ROWS).columns
    share = max(rows, 1) / max(min(len(batch), SAMPLE_ROWS), 1)
    chosen = {}
    for leaf in leaves:
        asked = wanted.get(leaf.name)
        values = leaf_values(leaf, sample)
        chosen[leaf.parquet_path] = DICTIONARY if asked else _choose(values, share, asked)
    return Encodings(
        tuple(path for path, encoding in chosen.items() if encoding == DICTIONARY),
        {path: "DELTA_BINARY_PACKED" for path, encoding in chosen.items() if encoding == DELTA},
    )


def _choose(values: pa.Array, share: float, asked: bool | None) -> str:
    if pa.types.is_boolean(values.type):
        return PLAIN
    present = values.drop_null() if values.null_count else values
    if not len(present):
        return PLAIN if asked is False else DICTIONARY
    whole = as_longs(present)
    plain_bits = _plain_bits(present)
    other_bits = plain_bits if whole is None else min(_delta_bits(whole), plain_bits)
    if asked is None and _dictionary_bits(present, whole, share, plain_bits) < other_bits:
        return DICTIONARY
    return PLAIN if whole is None else DELTA


def as_longs(values: pa.Array) -> Any:
    """Return what Parquet stores as int32 or int64 (no nulls given), None for other types."""
    kind, types = values.type, pa.types
    if types.is_decimal128(kind) and kind.precision <= 18:
        words = np.frombuffer(values.buffers()[1], dtype="<i8")
        return words[2 * values.offset : 2 * (values.offset + len(values)) : 2]
    if types.is_date32(kind):
        return values.view(pa.int32()).to_numpy()
    if types.is_time64(kind) or types.is_timestamp(kind):
        return values.view(pa.int64()).to_numpy()
    if types.is_int32(kind) or types.is_int64(kind):
        return values.to_numpy()
    return None


def _plain_bits(values: pa.Array) -> float:
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        return 8.0 * (4 + float(values.nbytes) / len(values))
    if pa.types.is_decimal128(values.type):
        precision = values.type.precision
        return 32.0 if precision <= 9 else 64.0 if precision <= 18 else 128.0
    return float(values.type.bit_width)


def _delta_bits(whole: np.ndarray) -> float:
    """Return the bits a value takes in DELTA_BINARY_PACKED: each miniblock takes its widest."""
    deltas = np.diff(whole.astype(np.int64, copy=False))
    blocks = deltas[: len(deltas) // MINIBLOCK * MINIBLOCK].reshape(-1, MINIBLOCK)
    if not len(blocks):
        blocks = deltas.reshape(1, -1)
    if not blocks.size:
        return float(BITS_OF_LONG)
    spread = blocks.max(axis=1).astype(np.float64) - blocks.min(axis=1).astype(np.float64)
    return float(np.ceil(np.log2(spread + 1)).mean()) + 0.5


def _dictionary_bits(
    values: pa.Array, whole: np.ndarray | None, share: float, plain_bits: float
) -> float:
    """Return the bits a value takes with a dictionary: its index and its part of the entries."""
    distinct = _distinct(values, whole)
    if distinct * 4 > len(values):
        distinct = int(distinct * share)  # still growing: expect as many more in the rest
    rows = len(values) * share
    return float(np.ceil(np.log2(max(distinct, 2)))) + distinct * plain_bits / rows


def _distinct(values: pa.Array, whole: np.ndarray | None) -> int:
    if whole is None:
        return int(pc.count_distinct(values).as_py())
    # Sorting a few thousand numbers is many times quicker than hashing them.
    ordered = np.sort(whole)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1
