"""A few rows as `DataFrame.show` prints them, without Java."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_NARROWEST = 3
_ESCAPED = str.maketrans(
    {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b", "\v": "\\v", "\a": "\\a"}
)


def shown_rows(
    names: Sequence[str], rows: Sequence[Sequence[Any]], most: int, characters: int
) -> str | None:
    """Return the text; None where Spark itself must say it (control and wide characters).

    `characters` is where cells are cut, 0 for not at all.
    """
    shown = [list(names), *[[_text(value) for value in row] for row in rows[: max(most, 0)]]]
    if not all(cell.isascii() or is_narrow(cell) for row in shown for cell in row):
        return None
    cells = [shown[0], *[[_cut(cell, characters) for cell in row] for row in shown[1:]]]
    widths = [max(_NARROWEST, *map(len, column)) for column in zip(*cells, strict=True)]
    rule = "+" + "+".join("-" * width for width in widths) + "+\n"
    lines = [_line(row, widths, to_right=characters > 0) for row in cells]
    text = rule + lines[0] + rule + "".join(lines[1:]) + rule
    if len(rows) > most:
        text += f"only showing top {most} row{'' if most == 1 else 's'}"
    return text


def is_narrow(text: str) -> bool:
    """Return whether every character takes one cell of a terminal."""
    return text.isprintable() and not any(
        unicodedata.combining(one) or unicodedata.east_asian_width(one) in "WF" for one in text
    )


def _line(cells: list[str], widths: list[int], *, to_right: bool) -> str:
    padded = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    return "|" + "|".join(padded) + "|\n"


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value).translate(_ESCAPED)


def _cut(cell: str, characters: int) -> str:
    if characters <= 0 or len(cell) <= characters:
        return cell
    return cell[:characters] if characters < 4 else f"{cell[: characters - 3]}..."
