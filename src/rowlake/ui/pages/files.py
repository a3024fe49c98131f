"""The files of a table in pictures: sizes, deletes, partitions, ranges that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.health import count_text
from rowlake.model.plan import size_text
from rowlake.secrets import without_passwords
from rowlake.ui.frame import (
    badge,
    card,
    count,
    grid,
    nothing,
    number,
    page,
    paging,
    table_head,
)
from rowlake.ui.layouts import (
    columns_with_order,
    default_column,
    deletes_of,
    overlap_of,
    partitions_of,
    sizes_of,
)
from rowlake.ui.markup import Element, Node, el
from rowlake.ui.pictures import Bar, bars, coverage, ranges

if TYPE_CHECKING:
    from rowlake.maintain.autopilot.survey import Survey
    from rowlake.ui.layouts import Overlap
    from rowlake.ui.looks import Look
    from rowlake.ui.site import Asked, Site

PATH = "/table/files"
PARTITIONS = 25


def files_page(site: Site, asked: Asked) -> Element:
    """Return the page of a table's files."""
    look = asked.look(site)
    seen = look.survey
    head = table_head(look.name, PATH, badge(look.health.verdict.value))
    if not seen.count:
        return page(site, PATH, *head, nothing("This table has no data files."))
    return page(
        site,
        PATH,
        *head,
        el("div", _sizes(seen), _deletes(seen), class_="columns even"),
        _overlap(look, asked.number("column", most=2**31)),
        _partitions(look, asked.number("first")),
        _deleted(seen),
    )


def _sizes(seen: Survey) -> Element:
    found = sizes_of(seen)
    rows = [
        Bar(
            each.label,
            each.files,
            [count(each.files), el("small", f" {size_text(each.size_in_bytes)}")],
            each.kind,
        )
        for each in found.bins
    ]
    told = (
        f"Target {size_text(found.target)}. {count_text(found.small, 'file')} far below it; the "
        f"median is {size_text(found.median)}."
    )
    return card("File sizes", bars("File sizes", ("Size", "", "Files"), rows), note=told)


def _deletes(seen: Survey) -> Element:
    found = deletes_of(seen)
    rows = [
        Bar(label, files, count(files), "good" if label == "none" else "deletes")
        for label, files in found.bins
    ]
    told = "No data file has deletes to apply."
    if found.touched:
        told = f"{found.touched:,} of {count_text(seen.count, 'data file')} have deletes to apply."
    return card(
        "Deletes per file",
        bars("Deletes per file", ("Delete files", "", "Data files"), rows),
        note=told,
    )


def _deleted(seen: Survey) -> Node:
    found = deletes_of(seen)
    if not found.worst:
        return None
    rows: list[list[Node]] = [
        [
            el("td", el("code", _tail(each.location), title=without_passwords(each.location))),
            number(each.deletes),
            number(each.deleted),
            number(each.rows),
            el("td", f"{each.share:.1%}", class_="number"),
        ]
        for each in found.worst
    ]
    heads: list[Node] = ["Data file"]
    heads += [_right(name) for name in ("Deletes", "Deleted", "Rows", "Share")]
    told = "Rows that are read to be left out. Where a delete file covers several data files, "
    return card(
        "Files with most deleted rows",
        grid("Files with most deleted rows", heads, rows),
        note=told + "its rows are shared out evenly.",
    )


def _right(name: str) -> Element:
    return el("th", name, scope="col", class_="number")


def _tail(location: str) -> str:
    return without_passwords(location).rpartition("/")[2]


def _partitions(look: Look, first: int) -> Element:
    seen = look.survey
    found = partitions_of(seen, first, PARTITIONS)
    if found.count < 2:
        return card("Partitions", nothing("All files are in one partition."))
    rows = [
        Bar(
            each.name,
            each.size_in_bytes,
            [
                size_text(each.size_in_bytes),
                el("small", f" {count_text(each.files, 'file')}, {each.skew:.1f}×"),
            ],
            "skewed" if each.skew >= 4 else "plain",
        )
        for each in found.shown
    ]
    told = (
        f"{found.count:,} partitions, the largest first. The median holds "
        f"{size_text(found.median)}, the largest {found.largest_skew:.1f} times as much."
    )
    return card(
        "Partitions by size",
        bars("Partitions by size", ("Partition", "", "Size"), rows),
        paging(PATH, first, PARTITIONS, found.count, name=look.name),
        note=told,
    )


def _overlap(look: Look, column: int) -> Element:
    seen = look.survey
    offered = columns_with_order(seen)
    chosen = column or default_column(seen)
    title = "Sort depth"
    if chosen is None:
        return card(title, nothing("No file has bounds of a column to compare."))
    choice = _choice(look.name, offered, chosen)
    found = overlap_of(seen, chosen)
    if found is None:
        return card(title, choice, nothing("No file has bounds of this column."))
    return card(title, choice, *_picture(found), note=_told(found))


def _choice(name: str, offered: list[tuple[int, str]], chosen: int) -> Element:
    options = [
        el("option", text, value=number, selected=number == chosen) for number, text in offered
    ]
    return el(
        "form",
        el("input", type="hidden", name="name", value=name),
        el("label", "Column ", el("select", *options, name="column", data_submit=True)),
        el("button", "Show", type="submit"),
        method="get",
        action=PATH,
        class_="choice",
    )


def _told(found: Overlap) -> str:
    told = ""
    if found.depth is not None:
        told = f"On average {found.depth:.1f} files of a partition hold a value of {found.column}. "
    if found.partition:
        told += f"Shown is {found.partition}, the partition with the most files. "
    if found.unknown:
        told += f"{count_text(found.unknown, 'file')} without bounds left out."
    return told


def _picture(found: Overlap) -> list[Node]:
    most = int(found.counts.max())
    label = f"How many of {count_text(found.files, 'file')} hold each value: at most {most:,}"
    shown = len(found.starts)
    lines = "Each line is one file, from its least to its greatest value"
    if shown < found.files:
        lines = f"{shown:,} files around the value that most files hold. {lines}"
    return [
        el("p", label, class_="label"),
        coverage(label, found.counts),
        _axis(found.whole),
        el("p", lines, class_="label"),
        ranges(lines, found.starts, found.ends),
        _axis(found.zoomed) if shown < found.files else None,
    ]


def _axis(ends: tuple[str, str]) -> Element:
    return el("div", el("span", ends[0]), el("span", ends[1]), class_="axis")
