"""Which types a column may be widened to, and how schemas note it (PROTOCOL.md, "Type Widening").

Files that are there keep the narrower type; readers cast. A field has all of its changes in its
metadata, oldest first.
"""

from __future__ import annotations

import re
from typing import Any

ENABLE = "delta.enableTypeWidening"
CHANGES = "delta.typeChanges"
_INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_TO = {
    "float": ("double",),
    "byte": ("double",),
    "short": ("double",),
    "integer": ("double",),
    "date": ("timestamp_ntz",),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def is_widening(before: Any, after: Any) -> bool:
    """Return whether every value of one type (as schemas name it) is one of the other."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(after)
    if after in _TO.get(before, ()):
        return True
    to = _DECIMAL.fullmatch(after)
    if to is None:
        return False
    of = _DECIMAL.fullmatch(before)
    if of is not None:
        digits, scale = int(of[1]), int(of[2])
    elif before in _DIGITS:
        digits, scale = _DIGITS[before], 0
    else:
        return False
    more, finer = int(to[1]) - digits, int(to[2]) - scale
    return more >= finer >= 0 and before != after


def widen(field: dict[str, Any], after: str) -> None:
    """Give a field of a schema a wider type, and note the change in its metadata."""
    metadata = field["metadata"]
    change = {"fromType": field["type"], "toType": after}
    metadata[CHANGES] = [*metadata.get(CHANGES, ()), change]
    field["type"] = after
