"""The lake: its tables, with health at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import TableNotFoundError
from rowlake.model.plan import size_text
from rowlake.ui.frame import badge, count, moment, nothing, number, page, paging, tiles
from rowlake.ui.markup import Element, Node, address, el

if TYPE_CHECKING:
    from rowlake.ui.looks import Line
    from rowlake.ui.site import Asked, Site

SHOWN = 100
# Tables that this does not suffice for are looked at one by one by the script of the page.
SECONDS = 0.6
HEADS = ("Table", "Health", "Rows", "Files", "Size", "Deletes", "Last change")
_NUMBERS = ("Rows", "Files", "Size", "Deletes")


def lake_page(site: Site, asked: Asked) -> Element:
    """Return the page of all tables."""
    names = site.looks.names()
    first = asked.number("first")
    shown = names[first : first + SHOWN]
    lines = site.looks.lines(shown, SECONDS)
    rows = [_row(name, line) for name, line in zip(shown, lines, strict=True)]
    filtering = el(
        "label",
        el("span", "Filter", class_="unseen"),
        el("input", type="search", placeholder="Filter tables  ( / )", data_filter="tables"),
        class_="filter",
    )
    parts: list[Node] = [
        el("div", el("h1", "Tables"), filtering, class_="title"),
        _sums(names, [line for line in lines if line is not None]),
    ]
    if not names:
        return page(site, "/", *parts, nothing("This lake has no tables yet."))
    head = [
        el("th", head, scope="col", class_="number" if head in _NUMBERS else None) for head in HEADS
    ]
    table = el(
        "table",
        el("caption", "Tables of this lake", class_="unseen"),
        el("thead", el("tr", *head)),
        el("tbody", *rows, id="tables"),
        class_="grid lake",
    )
    return page(
        site,
        "/",
        *parts,
        el("section", el("div", table, class_="scroll"), class_="card flush"),
        paging("/", first, SHOWN, len(names)),
    )


def _sums(names: list[str], lines: list[Line]) -> Element:
    verdicts = [line.verdict for line in lines if line.verdict]
    acting, watching = verdicts.count("act"), verdicts.count("watch")
    troubled = sum(1 for line in lines if line.trouble)
    said = f"{watching} to watch" + (f", {troubled} unreadable" if troubled else "")
    return tiles(
        ("Tables", count(len(names)), _told(len(names), len(lines))),
        ("Need action", count(acting), said),
        ("Rows", count(sum(line.rows for line in lines)), "live rows"),
        (
            "Size",
            size_text(sum(line.size_in_bytes for line in lines)),
            f"{count(sum(line.files for line in lines))} data files",
        ),
    )


def _told(names: int, lines: int) -> str:
    return "all on this page" if names == lines else f"sums of {lines:,} of them"


def _row(name: str, line: Line | None) -> Element:
    link = el("a", name, href=address("/table", name=name))
    named = el("th", link, scope="row")
    if line is None:
        wait = el("td", "looking …", colspan=len(HEADS) - 1, class_="waiting")
        return el("tr", named, wait, data_fill=address("/line", name=name))
    return el("tr", *cells(line, named))


def line_part(site: Site, asked: Asked) -> Element:
    """Return one row of the page, for its script."""
    name = asked.text("name")
    if name not in site.looks.names():
        raise TableNotFoundError(name)
    return _row(name, site.looks.line(name))


def cells(line: Line, named: Element) -> list[Node]:
    """Return the cells of a table's row."""
    if line.trouble:
        told = el("td", line.trouble, colspan=len(HEADS) - 2, class_="trouble")
        return [named, el("td", el("span", "unreadable", class_="badge act")), told]
    why = el("span", ", ".join(line.shown), class_="why") if line.shown else None
    named = el("th", *named.children, el("span", line.format, class_="format"), scope="row")
    return [
        named,
        el("td", badge(line.verdict), " ", why),
        number(line.rows, about=not line.rows_are_exact),
        number(line.files),
        el("td", size_text(line.size_in_bytes), class_="number"),
        number(line.delete_files),
        el("td", moment(line.changed_ms), class_="when"),
    ]
