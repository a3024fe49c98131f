"""Blocks of Avro files, decompressed within bounds.

Comes in: the bytes of some blocks as stored in a file, and its codec. Goes out: pieces of
uncompressed blocks, each small enough to be decoded at once. A few hundred kilobytes may decompress
to gigabytes, so no block is given more memory than `MOST_BLOCK_BYTES`: writers make blocks of about
64 KB, and no smaller than one row.
"""

from __future__ import annotations

import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.codecs.avro_bounds import decompress
from rowlake.codecs.avro_container import SYNC_BYTES, Block, block_at, framed

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BLOCK_BYTES = 256 * 1024 * 1024
PIECE_BYTES = 16 * 1024 * 1024
# A row without columns takes no bytes, any other at least one.
MOST_EMPTY_ROWS = 1 << 20


@dataclass(frozen=True)
class Piece:
    """Some blocks as a file without compression has them, and how many rows they have."""

    data: bytes
    num_rows: int


def pieces_of(data: bytes, codec: str) -> Iterator[Piece]:
    """Yield the blocks of these bytes, uncompressed, in pieces of about `PIECE_BYTES`.

    Raises ValueError where a block is damaged or larger than a block may be.
    """
    held: list[bytes] = []
    size = rows = at = 0
    while at < len(data):
        count, start, end = block_at(data, at)
        plain = inflated(data[start:end], codec)
        if count > max(len(plain), MOST_EMPTY_ROWS):
            raise ValueError(f"a block of {len(plain)} bytes claims to have {count} rows")
        held.append(framed(Block(0, count, plain), data[end : end + SYNC_BYTES]))
        at, size, rows = end + SYNC_BYTES, size + len(plain), rows + count
        if size >= PIECE_BYTES or at >= len(data):
            yield Piece(b"".join(held), rows)
            held, size, rows = [], 0, 0


def inflated(data: bytes, codec: str, limit: int = MOST_BLOCK_BYTES) -> bytes:
    """Return the bytes of a block; ValueError where they are damaged or too many."""
    try:
        return decompress(data, codec, limit)
    except (ValueError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
        raise ValueError(f"a block cannot be decompressed: {error}") from error
