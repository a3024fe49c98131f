"""Z85 (ZeroMQ RFC 32): bytes as printable text, five characters for four bytes."""

from __future__ import annotations

import struct

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_BASE = 85
_MOST = 2**32 - 1


def decode(text: str) -> bytes:
    """Return the bytes of a text; raises ValueError where it is not Z85."""
    if len(text) % 5:
        raise ValueError(f"Z85 text has {len(text)} characters, expected a multiple of 5")
    words = [_word(text[start : start + 5]) for start in range(0, len(text), 5)]
    return struct.pack(f">{len(words)}I", *words)


def encode(data: bytes) -> str:
    """Return bytes as text; raises ValueError where their number is not a multiple of 4."""
    if len(data) % 4:
        raise ValueError(f"Z85 takes a multiple of 4 bytes, not {len(data)}")
    words = struct.unpack(f">{len(data) // 4}I", data)
    return "".join(
        ALPHABET[word // _BASE**power % _BASE] for word in words for power in (4, 3, 2, 1, 0)
    )


def _word(group: str) -> int:
    word = 0
    for character in group:
        if character not in _VALUES:
            raise ValueError(f"{character!r} is no Z85 character")
        word = word * _BASE + _VALUES[character]
    if word > _MOST:
        raise ValueError(f"{group!r} is too large for four bytes")
    return word
