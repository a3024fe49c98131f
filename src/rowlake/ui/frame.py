"""What pages share: the head, the tabs of a table, tiles, badges, commands to copy, paging."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING

from rowlake.model.history_rows import LATEST_MS
from rowlake.ui.markup import Element, Node, address, el
from rowlake.version import __version__

if TYPE_CHECKING:
    from rowlake.ui.site import Site

TABS = {
    "/table": "Overview",
    "/table/history": "History",
    "/table/files": "Files",
    "/table/schema": "Schema",
    "/table/changes": "Changes",
    "/table/optimize": "Optimize",
}
_MARKS = {"ok": "✓", "watch": "◐", "act": "▲"}
_SPANS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def page(site: Site, path: str, *parts: Node) -> Element:
    """Return the body of a page."""
    running = site.operations.running
    activity: list[Node] = ["Activity"]
    if running is not None:
        activity.append(el("span", " 1 running", class_="pill live"))
    return el(
        "body",
        el("a", "Skip to content", href="#content", class_="skip"),
        el(
            "header",
            el(
                "div",
                el("a", _logo(), el("span", "rowlake"), href="/", class_="brand"),
                el("span", site.place, class_="place", title=site.place),
                el(
                    "nav",
                    _link("/", "Tables", path),
                    _link("/activity", activity, path),
                    aria_label="Lake",
                ),
                el("span", *_rights(site)),
                class_="wide",
            ),
            class_="top",
        ),
        el("main", *parts, id="content", class_="wide", tabindex="-1"),
        el("footer", el("span", f"rowlake {__version__}"), el("span", _seen()), class_="wide"),
    )


def _rights(site: Site) -> list[Node]:
    if site.allow_actions:
        return [el("span", "actions allowed", class_="pill strong")]
    return [el("span", "read-only", class_="pill", title="Start with --allow-actions for buttons")]


def _seen() -> str:
    return f"Read at {dt.datetime.now(dt.timezone.utc):%H:%M:%S} UTC"


def _link(to: str, text: Node, path: str) -> Element:
    return el("a", text, href=to, aria_current="page" if to == path else None)


def _logo() -> Element:
    lines = [
        el("path", d=f"M3 {y}q4-3 8 0t8 0", class_=f"wave wave{place}")
        for place, y in enumerate((7, 12, 17))
    ]
    return el("svg", *lines, viewBox="0 0 22 22", class_="logo", aria_hidden="true")


def table_head(name: str, path: str, *beside: Node) -> list[Node]:
    """Return the head of a table's page: where it is, its name, its tabs."""
    tabs = [
        el(
            "a",
            text,
            href=address(to, name=name),
            aria_current="page" if to == path else None,
        )
        for to, text in TABS.items()
    ]
    return [
        el("p", el("a", "Tables", href="/"), " / ", class_="crumbs"),
        el("div", el("h1", name), *beside, class_="title"),
        el("nav", *tabs, class_="tabs", aria_label="Table"),
    ]


def card(title: str, *parts: Node, note: Node = None, class_: str = "") -> Element:
    """Return a part of a page with a heading."""
    head = el("div", el("h2", title), el("p", note, class_="note") if note else None)
    return el("section", head, *parts, class_=f"card {class_}".strip())


def tiles(*given: tuple[str, Node, Node]) -> Element:
    """Return numbers with their names and a word on each."""
    return el(
        "dl",
        *(
            el("div", el("dt", name), el("dd", value), el("dd", said, class_="said"))
            for name, value, said in given
        ),
        class_="tiles",
    )


def badge(verdict: str) -> Element:
    """Return a verdict; its mark tells it without colour."""
    mark = el("span", _MARKS.get(verdict, "•"), aria_hidden="true")
    return el("span", mark, " ", verdict, class_=f"badge {verdict}")


def command(text: str, what: str = "command") -> Element:
    """Return a command with a button that copies it."""
    button = el(
        "button",
        "Copy",
        type="button",
        class_="copy",
        data_copy=text,
        aria_label=f"Copy the {what}",
    )
    return el("div", el("code", text), button, class_="command")


def facts(*given: tuple[str, Node]) -> Element:
    """Return names with their values."""
    return el(
        "dl", *(el("div", el("dt", name), el("dd", value)) for name, value in given), class_="facts"
    )


def grid(caption: str, heads: list[Node], rows: list[list[Node]], class_: str = "") -> Element:
    """Return a table that scrolls by itself on a narrow screen."""
    head = [one if isinstance(one, Element) else el("th", one, scope="col") for one in heads]
    lines = [el("tr", *(one if _is_cell(one) else el("td", one) for one in row)) for row in rows]
    table = el(
        "table",
        el("caption", caption, class_="unseen"),
        el("thead", el("tr", *head)),
        el("tbody", *lines),
        class_=f"grid {class_}".strip(),
    )
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _is_cell(node: Node) -> bool:
    return isinstance(node, Element) and node.name in {"td", "th"}


def number(value: int | None, *, about: bool = False) -> Element:
    """Return a cell with a count."""
    return el("td", count(value, about=about), class_="number")


def count(value: int | None, *, about: bool = False) -> str:
    """Return a count as people read it; `–` where nobody knows it."""
    return "–" if value is None else f"{'~' if about else ''}{value:,}"


def moment(milliseconds: int) -> Element:
    """Return a time, with how long ago it was."""
    if not 0 < milliseconds <= LATEST_MS:
        return el("span", "–")
    when = dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc)
    return el(
        "time",
        ago(milliseconds),
        datetime=when.isoformat(timespec="seconds"),
        title=f"{when:%Y-%m-%d %H:%M:%S} UTC",
    )


def clock(milliseconds: int) -> str:
    """Return a time in full."""
    if not 0 < milliseconds <= LATEST_MS:
        return "–"
    return f"{dt.datetime.fromtimestamp(milliseconds / 1000, dt.timezone.utc):%Y-%m-%d %H:%M} UTC"


def ago(milliseconds: int) -> str:
    """Return how long ago a time was."""
    seconds = time.time() - milliseconds / 1000
    for noun, size in _SPANS:
        whole = int(seconds // size)
        if whole >= 1:
            return f"{whole:,} {noun}{'' if whole == 1 else 's'} ago"
    return "just now" if seconds >= -60 else "in the future"


def paging(path: str, first: int, most: int, total: int, **query: str | int | None) -> Node:
    """Return links to the pages before and after; nothing where all is on one."""
    if total <= most:
        return None
    last = min(first + most, total)
    before = el(
        "a", "← Previous", href=address(path, **query, first=max(first - most, 0)), rel="prev"
    )
    after = el("a", "Next →", href=address(path, **query, first=first + most), rel="next")
    return el(
        "nav",
        before if first > 0 else el("span", "← Previous", class_="off"),
        el("span", f"{first + 1:,} – {last:,} of {total:,}"),
        after if last < total else el("span", "Next →", class_="off"),
        class_="paging",
        aria_label="Pages",
    )


def nothing(text: str) -> Element:
    """Return a line that says that there is nothing."""
    return el("p", text, class_="nothing")
