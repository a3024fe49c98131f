"""Rows as a text table for people: aligned columns, long values folded.

Comes in: names and cells, all text. Goes out: lines that fit a width if possible. Cells are shown
as they are, with no markup of any kind; control characters are escaped (`rowlake.model.printable`),
so that a value cannot move the cursor.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from rowlake.model.printable import printable_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GAP = "   "
NARROWEST = 8


def text_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], to_right: Sequence[bool], width: int
) -> Iterator[str]:
    """Yield the lines of a table: names, a rule, rows."""
    shown = [[printable_line(cell) for cell in row] for row in (names, *rows)]
    widths = _fit([max(map(cells, column)) for column in zip(*shown, strict=True)], width)
    head, *body = (_lines(row, widths, to_right) for row in shown)
    yield from head
    yield " " + "─" * (sum(widths) + len(GAP) * (len(widths) - 1))
    for lines in body:
        yield from lines


def columns_that_fit(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> int:
    """Return how many columns fit side by side, each as narrow as it may get; at least one."""
    used = 1
    for place, name in enumerate(names):
        wanted = max((cells(printable_line(row[place])) for row in rows), default=0)
        used += min(max(wanted, cells(printable_line(name))), NARROWEST) + (
            len(GAP) if place else 0
        )
        if used > width:
            return max(place, 1)
    return len(names)


def cells(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fit(wanted: Sequence[int], width: int) -> list[int]:
    """Return the widths of columns: the widest shrink first, none below a minimum."""
    widths = list(wanted)
    room = width - 1 - len(GAP) * (len(widths) - 1)
    while sum(widths) > room:
        widest = max(widths)
        if widest <= NARROWEST:
            break
        at = widths.index(widest)
        below = max((each for each in widths if each < widest), default=NARROWEST)
        excess = sum(widths) - room
        widths[at] = max(widest - excess, min(below, widest - 1), NARROWEST)
    return widths


def _lines(row: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> list[str]:
    folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    return [
        " "
        + GAP.join(
            _padded(parts[line] if line < len(parts) else "", width, right=right)
            for parts, width, right in zip(folded, widths, to_right, strict=True)
        ).rstrip()
        for line in range(max(map(len, folded)))
    ]


def _folded(text: str, width: int) -> list[str]:
    if cells(text) <= width:
        return [text]
    parts, part, used = [], "", 0
    for character in text:
        size = _cells_of(character)
        if used + size > width:
            parts.append(part)
            part, used = "", 0
        part += character
        used += size
    return [*parts, part]


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - cells(text))
    return space + text if right else text + space
