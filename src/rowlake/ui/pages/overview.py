"""A table at a glance: its numbers, its health, its last commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.health import Verdict, count_text
from rowlake.model.plan import size_text
from rowlake.secrets import without_passwords
from rowlake.ui.frame import (
    badge,
    card,
    command,
    count,
    facts,
    moment,
    page,
    table_head,
    tiles,
)
from rowlake.ui.markup import Element, Node, address, el
from rowlake.ui.pages.history import activity_picture, timeline
from rowlake.ui.pages.schema import order_of
from rowlake.ui.pasts import pasts_of

if TYPE_CHECKING:
    from rowlake.model.health import Finding
    from rowlake.ui.looks import Look
    from rowlake.ui.site import Asked, Site

PATH = "/table"
COMMITS = 6


def overview_page(site: Site, asked: Asked) -> Element:
    """Return the first page of a table."""
    look = asked.look(site)
    health = look.health
    recent = pasts_of(look, 0, COMMITS)
    more = el("a", "All of the history", href=address("/table/history", name=look.name))
    beside: list[Node] = [badge(health.verdict.value)]
    return page(
        site,
        PATH,
        *table_head(look.name, PATH, *beside),
        _tiles(look),
        el(
            "div",
            card("Health", _findings(site, look), note="Worst first, from metadata alone."),
            el(
                "div",
                card(
                    "Commits", activity_picture(look.handle.snapshots), timeline(look, recent), more
                ),
                card("About", _about(look)),
                class_="stack",
            ),
            class_="columns",
        ),
    )


def _tiles(look: Look) -> Element:
    health = look.health
    snapshots = len(look.handle.snapshots)
    average = health.size_in_bytes // max(health.data_files, 1)
    deleted = round(float(look.survey.deletes.deleted.sum()))
    return tiles(
        (
            "Rows",
            count(look.rows, about=not look.rows_are_exact),
            f"{deleted:,} deleted rows still stored" if deleted else "none deleted in place",
        ),
        ("Size", size_text(health.size_in_bytes), f"{size_text(average)} a file"),
        ("Data files", count(health.data_files), count_text(health.partitions, "partition")),
        ("Delete files", count(health.delete_files), "position, vector, equality"),
        ("Snapshots", count(snapshots), [moment(look.handle.last_updated_ms)]),
    )


def _findings(site: Site, look: Look) -> Element:
    found = sorted(look.health.findings, key=lambda each: -each.verdict.weight)
    return el("ul", *(_finding(site, each) for each in found), class_="findings")


def _finding(site: Site, finding: Finding) -> Element:
    run: list[Node] = []
    if finding.verdict is not Verdict.OK:
        run.append(el("p", finding.why))
        if finding.command:
            run.append(command(site.run(finding.command)))
    return el(
        "li",
        el(
            "div",
            badge(finding.verdict.value),
            el("strong", finding.name),
            el("span", finding.shown, class_="shown"),
            class_="line",
        ),
        *run,
        class_=finding.verdict.value,
    )


def _about(look: Look) -> Element:
    handle = look.handle
    view = handle.view()
    refs = ", ".join(sorted(handle.refs)) or "none"
    return facts(
        ("Format", f"{look.table.format}, version {handle.format_version}"),
        ("Location", el("code", without_passwords(handle.location))),
        ("Partitioned by", str(look.table.spec)),
        ("Sorted by", order_of(view)),
        ("Branches and tags", refs),
    )
