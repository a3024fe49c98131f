"""The history of a table: snapshots with what made them, and commits that had to be retried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.health import count_text
from rowlake.ui.frame import badge, card, clock, count, moment, nothing, page, paging, table_head
from rowlake.ui.markup import Element, Node, address, el
from rowlake.ui.pasts import KINDS, activity_of, conflicts_of, pasts_of
from rowlake.ui.pictures import stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.view import SnapshotInfo
    from rowlake.ui.looks import Look
    from rowlake.ui.pasts import Past
    from rowlake.ui.site import Asked, Site

PATH = "/table/history"
SHOWN = 50
CONFLICTS_SHOWN = 20


def history_page(site: Site, asked: Asked) -> Element:
    """Return the page of a table's snapshots."""
    look = asked.look(site)
    first = asked.number("first")
    total = len(look.handle.snapshots)
    found = pasts_of(look, first, SHOWN)
    parts: list[Node] = [*table_head(look.name, PATH, badge(look.health.verdict.value))]
    parts += [
        card("Commits over time", activity_picture(look.handle.snapshots)),
        card(
            "Snapshots",
            timeline(look, found) if found else nothing("No snapshots yet."),
            paging(PATH, first, SHOWN, total, name=look.name),
            note=f"{count_text(total, 'snapshot')} kept, newest first.",
        ),
        _conflicts(look),
    ]
    return page(site, PATH, *parts)


def activity_picture(snapshots: Sequence[SnapshotInfo]) -> Node:
    """Return when commits were made, by kind."""
    found = activity_of(snapshots)
    if found is None:
        return nothing("No commits yet.")
    sums = [sum(column[place] for column in found.columns) for place in range(len(KINDS))]
    legend = [
        el("li", el("span", class_=f"swatch fill-{kind}"), f"{kind} {count}")
        for kind, count in zip(KINDS, sums, strict=True)
        if count
    ]
    told = ", ".join(f"{number} {kind}" for kind, number in zip(KINDS, sums, strict=True) if number)
    return el(
        "figure",
        stacked(f"Commits over time: {told}", found.columns, KINDS),
        el(
            "div",
            el("span", clock(found.start_ms)),
            el("span", clock(found.end_ms)),
            class_="axis",
        ),
        el("ul", *legend, class_="legend"),
    )


def timeline(look: Look, found: Sequence[Past]) -> Element:
    """Return snapshots as a line in time."""
    return el("ol", *(_entry(look, each) for each in found), class_="timeline")


def _entry(look: Look, past: Past) -> Element:
    refs = [el("span", ref, class_="pill") for ref in past.refs]
    said: list[Node] = [
        el("strong", past.statement, class_="statement"),
        *refs,
        el("span", moment(past.when_ms), class_="when"),
    ]
    if past.lost:
        said.append(el("span", count_text(past.lost, "lost attempt"), class_="pill warn"))
    kind = past.operation if past.operation in KINDS else "replace"
    return el(
        "li",
        el("span", class_=f"dot fill-{kind}", aria_hidden="true"),
        el(
            "div",
            el("div", *said, class_="line"),
            el("div", el("code", past.condition), class_="condition") if past.condition else None,
            el("div", *_numbers(look, past), class_="line small"),
        ),
    )


def _numbers(look: Look, past: Past) -> list[Node]:
    counted = (
        (past.inserted, "+", "inserted"),
        (past.updated, "~", "updated"),
        (past.deleted, "−", "deleted"),
    )
    told: list[Node] = [
        el("span", f"{sign}{value:,} {word}", class_=f"rows {word}")
        for value, sign, word in counted
        if value
    ]
    if not told and past.inserted is not None:
        told.append(el("span", "no rows changed", class_="rows"))
    if past.total is not None:
        told.append(el("span", f"{count(past.total)} rows after"))
    added, removed = past.files
    if added or removed:
        told.append(el("span", f"files +{added or 0:,} −{removed or 0:,}"))
    if past.user:
        told.append(el("span", "by ", el("b", past.user)))
    told.append(el("span", f"#{past.snapshot_id}", class_="id"))
    if past.operation != "replace":
        to = address("/table/changes", name=look.name, start=past.parent_id, end=past.snapshot_id)
        told.append(
            el("a", "rows changed", href=to, aria_label=f"Rows changed by {past.snapshot_id}")
        )
    return told


def _conflicts(look: Look) -> Element:
    found = conflicts_of(look)
    note = (
        "Commits that landed after lost attempts, by the attempt number that Iceberg's writers put "
        "into the names of manifest lists. A commit that gave up leaves no trace in the table."
    )
    if not look.handle.can.manifests:
        note = "This table's format does not record lost attempts."
        return card("Conflicts of the last day", nothing("Not recorded."), note=note)
    if not found:
        return card("Conflicts of the last day", nothing("No commit was retried."), note=note)
    shown = timeline(look, found[:CONFLICTS_SHOWN])
    return card("Conflicts of the last day", shown, note=note)
