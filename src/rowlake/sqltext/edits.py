"""Replace spans of a text."""

from __future__ import annotations

Edit = tuple[int, int, str]


def spliced(text: str, edits: list[Edit]) -> str:
    """Return the text with spans replaced; an edit inside of another does not count."""
    parts, offset = [], 0
    for start, end, replacement in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start < offset:
            continue
        parts += [text[offset:start], replacement]
        offset = end
    return "".join([*parts, text[offset:]])
