"""Rewrite columns that a table's full name qualifies, so that they go by its short name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.sqltext.edits import spliced
from rowlake.sqltext.lexer import Lexer, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.sqltext.names import NameRules

# A name that follows one of these words is a table, not a column.
_READING = ("FROM", "JOIN", "TABLE")


def requalified(text: str, name: Sequence[str], visible: str, names: NameRules) -> str:
    """Return a text in which columns qualified by a table's full name go by its short one.

    What a subquery reads (`FROM ns.t.snapshots`) is not a column.
    """
    if len(name) < 2:
        return text
    tokens = Lexer(text).all()
    width = 2 * len(name)
    edits = []
    for at in range(len(tokens) - width):
        some = tokens[at : at + width + 1]
        dotted = all(token.text == "." for token in some[1::2]) and some[-1].is_name
        before = at > 0 and (tokens[at - 1].text == "." or tokens[at - 1].word in _READING)
        same = all(
            token.is_name and names.same(token.value, part)
            for token, part in zip(some[::2], name, strict=False)
        )
        if dotted and same and not before:
            edits.append((some[0].start, some[width - 2].end, quote(visible)))
    return spliced(text, edits) if edits else text
