"""HTML for notebooks: tables, trees and headings that are readable on light and dark pages.

Comes in: texts, whoever chose them (table content is hostile). Goes out: HTML in which every text
is escaped. Colours are those of the page: lines and faint text are made of its own text colour, and
badges bring their own background.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from rowlake.model.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
# Notebooks style tables themselves (striped, right-aligned, small): these rules are more specific.
_STYLE = (
    ".rowlake{color:inherit;line-height:1.45;overflow-x:auto;margin:.2em 0}"
    ".rowlake table.rowlake-t{border-collapse:collapse;border:0;margin:.3em 0;font-size:inherit;"
    "color:inherit;background:transparent}"
    ".rowlake table.rowlake-t :is(th,td){text-align:left;vertical-align:top;padding:.25em .9em "
    ".25em 0;border:0;border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent);"
    "background:transparent;color:inherit;white-space:pre-wrap;overflow-wrap:anywhere;"
    "max-width:44em}"
    ".rowlake table.rowlake-t th{font-weight:600;white-space:nowrap}"
    ".rowlake table.rowlake-t .r{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}"
    f".rowlake :is(pre,code){{font-family:{_FONT};font-size:.92em;color:inherit;"
    "background:transparent;padding:0;margin:.2em 0;line-height:1.35}"
    ".rowlake pre{white-space:pre;overflow-x:auto}"
    ".rowlake .rowlake-s,.rowlake .null{opacity:.68}"
    ".rowlake .badge{padding:.05em .55em;border-radius:.7em;color:#fff;font-size:.88em;"
    "font-weight:600}"
    ".rowlake .ok{background:#1a7f37}.rowlake .watch{background:#8a5a00}"
    ".rowlake .act{background:#b3261e}"
)
MOST_ROWS = 100
MOST_CHARACTERS = 400


def escaped(text: str) -> str:
    """Return text for HTML; characters that reorder lines or are no text are shown escaped."""
    return html.escape(printable_lines(text))


def block(*parts: str) -> str:
    """Return parts (ready HTML) as one block with its style."""
    return f'<div class="rowlake"><style>{_STYLE}</style>{"".join(parts)}</div>'


def heading(title: str, below: str = "") -> str:
    """Return a title, with a fainter line below it."""
    faint = f'<br><span class="rowlake-s">{escaped(below)}</span>' if below else ""
    return f"<div><b>{escaped(title)}</b>{faint}</div>"


def tree(text: str) -> str:
    """Return lines of text as they are, in a fixed-width font."""
    return f"<pre>{escaped(text)}</pre>"


def code(text: str) -> str:
    """Return text as code."""
    return f"<code>{escaped(text)}</code>"


def badge(text: str, kind: str) -> str:
    """Return a coloured word; `kind` is `ok`, `watch` or `act`."""
    return f'<span class="badge {escaped(kind)}">{escaped(text)}</span>'


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, a line each."""
    lines = "".join(f"<tr><th>{escaped(name)}</th>{cell(value)}</tr>" for name, value in rows)
    return f'<table class="rowlake-t">{lines}</table>'


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of ready cells (`cell`, `marked_cell`)."""
    head = "".join(f"<th>{escaped(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f'<table class="rowlake-t"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def cell(value: object) -> str:
    """Return a value as a cell: numbers to the right, null faint, long texts cut."""
    if value is None:
        return '<td class="null">NULL</td>'
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = str(value)
    if len(text) > MOST_CHARACTERS:
        text = f"{text[:MOST_CHARACTERS]}…"
    return f"<td{' class=r' if number else ''}>{escaped(text)}</td>"


def marked_cell(markup: str) -> str:
    """Return ready HTML as a cell."""
    return f"<td>{markup}</td>"


def note(text: str) -> str:
    """Return a faint line."""
    return f'<div class="rowlake-s">{escaped(text)}</div>'


def progress(label: str, done: int, total: int) -> str:
    """Return a bar of the browser's own; without a total it only shows that work goes on."""
    at = f' value="{int(done)}" max="{int(total)}"' if total else ""
    told = f"{done:,} of {total:,}" if total else "…"
    return block(f"<div><progress{at}></progress> {escaped(label)}: {told}</div>")
