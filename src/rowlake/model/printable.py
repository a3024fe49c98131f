"""Make untrusted text safe to print: nothing in it can move a cursor or reorder a line.

Names, values, paths and messages may hold what their author chose. Control characters, line and
paragraph separators, lone surrogates and characters that override the direction of text are
escaped; everything else, including right-to-left scripts and joined emoji, is unchanged.
"""

from __future__ import annotations

import re

_UNSAFE = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_LINES = re.compile(f"(?![\n\t])[{_UNSAFE}]")
_IN_JSON = re.compile(f"(?![\n\t\r])[{_UNSAFE}]")


def printable_lines(text: str) -> str:
    """Return text of one or more lines with unsafe characters escaped."""
    return text if text.isprintable() else _IN_LINES.sub(_escaped, text)


def printable_line(text: str) -> str:
    """Return text as one line with unsafe characters escaped."""
    return printable_lines(text.expandtabs(4)).replace("\n", "⏎")


def printable_json(text: str) -> str:
    """Return JSON that means the same and is safe to print."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]
