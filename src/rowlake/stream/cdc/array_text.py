"""Arrays as PostgreSQL writes them (`{1,NULL,"a,b"}`) -> lists of texts, nested ones too."""

from __future__ import annotations

from typing import Any

_MOST_LEVELS = 16


def parse_array(text: str) -> list[Any]:
    """Return the elements as texts; None for NULL. Bounds before the array are left out."""
    start = text.find("{")
    if start < 0 or (start > 0 and not text[:start].endswith("=")):
        raise ValueError("it is no array")
    found, end = _parse(text, start, 0)
    if end != len(text):
        raise ValueError(f"it goes on after the array, at character {end}")
    return found


def _parse(text: str, start: int, level: int) -> tuple[list[Any], int]:
    if level > _MOST_LEVELS:
        raise ValueError(f"it has more than {_MOST_LEVELS} levels")
    found: list[Any] = []
    at = start + 1
    if text[at : at + 1] == "}":
        return found, at + 1
    while at < len(text):
        item, at = _element(text, at, level)
        found.append(item)
        after = text[at : at + 1]
        if after == "}":
            return found, at + 1
        if after != ",":
            break
        at += 1
    raise ValueError("the array does not end")


def _element(text: str, at: int, level: int) -> tuple[Any, int]:
    first = text[at : at + 1]
    if first == "{":
        return _parse(text, at, level + 1)
    if first == '"':
        return _quoted(text, at + 1)
    end = at
    while end < len(text) and text[end] not in ",}":
        end += 1
    bare = text[at:end]
    return (None if bare.upper() == "NULL" else bare), end


def _quoted(text: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    while at < len(text):
        sign = text[at]
        if sign == '"':
            return "".join(parts), at + 1
        if sign == "\\":
            at += 1
            sign = text[at : at + 1]
        parts.append(sign)
        at += 1
    raise ValueError("a quoted element does not end")
