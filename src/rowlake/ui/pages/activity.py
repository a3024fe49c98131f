"""What goes on: operations of this page with their progress, and the newest commits of anybody."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

from rowlake.errors import RowlakeError
from rowlake.model.health import count_text
from rowlake.ui.frame import card, grid, moment, nothing, page
from rowlake.ui.markup import Element, Node, address, el
from rowlake.ui.operations import RUNNING
from rowlake.ui.pasts import conflicts_of, pasts_of

if TYPE_CHECKING:
    from rowlake.ui.looks import Look
    from rowlake.ui.operations import Operation
    from rowlake.ui.pasts import Past
    from rowlake.ui.site import Asked, Site

PATH = "/activity"
COMMITS = 20
# Tables that were changed last are looked at first, as long as this lasts.
SECONDS = 0.6


def activity_page(site: Site, asked: Asked) -> Element:
    """Return the page of operations, conflicts and commits."""
    del asked
    commits, conflicts, unseen = _newest(site)
    told = "Of all tables, by anybody."
    if unseen:
        told += f" {unseen:,} tables were not looked at, to answer in time."
    return page(
        site,
        PATH,
        el("div", el("h1", "Activity"), class_="title"),
        card(
            "Operations",
            operations_part(site),
            note="Those that this page started. How far operations of other processes are is "
            "recorded nowhere; their commits are below.",
        ),
        card("Newest commits", _table(commits), note=told),
        card(
            "Conflicts of the last day",
            _table(conflicts) if conflicts else nothing("No commit was retried."),
            note="Iceberg commits that landed after lost attempts. A commit that gave up leaves no "
            "trace.",
        ),
    )


def operations_part(site: Site, asked: Asked | None = None) -> Element:
    """Return the operations, for the page and for its script."""
    del asked
    found = site.operations.all()
    running = any(each.state == RUNNING for each in found)
    lines = [_operation(each) for each in found]
    told: Node = el("ol", *lines, class_="operations") if lines else nothing("None was started.")
    return el("div", told, id="operations", data_poll="/operations" if running else None)


def _operation(each: Operation) -> Element:
    parts: list[Node] = [
        el(
            "div",
            el("span", each.state, class_=f"pill {each.state}"),
            el("strong", each.verb),
            el("a", each.table, href=address("/table", name=each.table)),
            el("span", f"{each.seconds:.1f} s", class_="when"),
            class_="line",
        )
    ]
    if each.state == RUNNING:
        bar = {"value": each.done, "max": each.total} if each.total else {}
        parts += [
            el("p", each.phase or "starting"),
            el("progress", aria_label=f"Progress of {each.verb}", **bar),
        ]
    if each.error:
        parts.append(el("p", each.error, class_="trouble"))
    if each.lines:
        parts.append(report_lines(each.lines))
    return el("li", *parts)


def report_lines(lines: tuple[tuple[str, str], ...]) -> Element:
    """Return a report as the command line shows it."""
    rows = [el("tr", el("th", name, scope="row"), el("td", value)) for name, value in lines]
    table = el("table", el("tbody", *rows), class_="report")
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label="Report")


def _newest(site: Site) -> tuple[list[tuple[Look, Past]], list[tuple[Look, Past]], int]:
    until = time.monotonic() + SECONDS
    commits: list[tuple[Look, Past]] = []
    conflicts: list[tuple[Look, Past]] = []
    names = site.looks.names()
    unseen = 0
    for place, name in enumerate(names):
        if time.monotonic() > until:
            unseen = len(names) - place
            break
        try:
            look = site.looks.look(name)
            commits += [(look, past) for past in pasts_of(look, 0, COMMITS)]
            conflicts += [(look, past) for past in conflicts_of(look)[:COMMITS]]
        except RowlakeError:
            continue  # the page of tables says what is wrong with it
    return _latest(commits), _latest(conflicts), unseen


def _latest(found: list[tuple[Look, Past]]) -> list[tuple[Look, Past]]:
    return heapq.nlargest(COMMITS, found, key=lambda each: each[1].when_ms)


def _table(found: list[tuple[Look, Past]]) -> Element:
    if not found:
        return nothing("No commits yet.")
    retried = any(past.lost for _, past in found)
    rows: list[list[Node]] = []
    for look, past in found:
        counts = (("+", past.inserted), ("~", past.updated), ("−", past.deleted))
        told = " ".join(f"{sign}{value:,}" for sign, value in counts if value)
        cells: list[Node] = [
            el("td", moment(past.when_ms), class_="when"),
            el("td", el("a", look.name, href=address("/table/history", name=look.name))),
            past.statement,
            told or "–",
            past.user or "–",
        ]
        rows.append([*cells, count_text(past.lost, "lost attempt")] if retried else cells)
    heads: list[Node] = ["When", "Table", "Statement", "Rows", "By"]
    return grid("Commits", [*heads, "Retried"] if retried else heads, rows)
