"""The rows that changed between two snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.model.feed import DELETE, INSERT, POSTIMAGE, PREIMAGE
from rowlake.ui.diffs import ROWS_SHOWN, snapshot_number
from rowlake.ui.frame import (
    badge,
    card,
    clock,
    command,
    count,
    grid,
    nothing,
    page,
    table_head,
    tiles,
)
from rowlake.ui.markup import el
from rowlake.ui.pasts import pasts_of

if TYPE_CHECKING:
    from rowlake.ui.diffs import ChangedRow, Diff
    from rowlake.ui.looks import Look
    from rowlake.ui.markup import Element, Node
    from rowlake.ui.pasts import Past
    from rowlake.ui.site import Asked, Site

PATH = "/table/changes"
OFFERED = 200
BEGINNING = "beginning"
_SIGNS = {INSERT: "+", DELETE: "−", PREIMAGE: "~", POSTIMAGE: "→"}
_WORDS = {
    INSERT: "inserted",
    DELETE: "deleted",
    PREIMAGE: "updated, before",
    POSTIMAGE: "updated, after",
}


def changes_page(site: Site, asked: Asked) -> Element:
    """Return the page that compares two snapshots; without an end, the form alone."""
    look = asked.look(site)
    offered = pasts_of(look, 0, OFFERED)
    head = table_head(look.name, PATH, badge(look.health.verdict.value))
    if not offered:
        return page(site, PATH, *head, nothing("This table has no snapshots."))
    form = card(
        "Compare two snapshots",
        _form(look, asked, offered),
        note="Rows that changed after the first, up to and with the second. Rewrites change none.",
    )
    return page(site, PATH, *head, form, *_found(site, look, asked))


def _form(look: Look, asked: Asked, offered: list[Past]) -> Element:
    newest = offered[0]
    start = asked.text("start", "" if asked.text("end") else str(newest.parent_id or ""))
    end = asked.text("end", str(newest.snapshot_id))
    return el(
        "form",
        el("input", type="hidden", name="name", value=look.name),
        el("label", "After ", _select("start", offered, start or BEGINNING, with_none=True)),
        el("label", "Up to ", _select("end", offered, end)),
        el(
            "label",
            "Pair updates by ",
            el(
                "input",
                name="keys",
                value=asked.text("keys"),
                placeholder=_default_keys(look),
                autocomplete="off",
            ),
        ),
        el("button", "Compare", type="submit", class_="primary"),
        method="get",
        action=PATH,
        class_="choice",
    )


def _default_keys(look: Look) -> str:
    schema = look.handle.view().schema
    named = [".".join(schema.paths[number]) for number in schema.identifier_field_ids]
    return ", ".join(named) or ("row ids" if look.handle.can.row_ids else "no key columns")


def _select(name: str, offered: list[Past], chosen: str, *, with_none: bool = False) -> Element:
    options = [
        el(
            "option",
            f"{each.statement} · {clock(each.when_ms)} · {each.snapshot_id}",
            value=each.snapshot_id,
            selected=str(each.snapshot_id) == chosen,
        )
        for each in offered
    ]
    if all(str(each.snapshot_id) != chosen for each in offered) and chosen != BEGINNING:
        options.append(el("option", chosen, value=chosen, selected=True))
    if with_none:
        first = el("option", "the beginning", value=BEGINNING, selected=chosen == BEGINNING)
        options.append(first)
    return el("select", *options, name=name)


def _found(site: Site, look: Look, asked: Asked) -> list[Node]:
    if not asked.text("end"):
        return []
    begin = asked.text("start", BEGINNING) or BEGINNING
    keys = [key.strip() for key in asked.text("keys").split(",") if key.strip()]
    try:
        end = snapshot_number(asked.text("end"), "Up to")
        start = None if begin == BEGINNING else snapshot_number(begin, "After")
        found = site.comparing.diff(look.handle, start, end, keys)
    except InvalidStatementError as error:
        return [card("Not comparable", el("p", site.looks.plain(error), class_="trouble"))]
    return _shown(site, found)


def _shown(site: Site, found: Diff) -> list[Node]:
    run = command(site.run(found.command))
    if found.refusal:
        return [card("Not compared here", el("p", found.refusal), run)]
    counts = found.counts
    total = sum(counts.values())
    numbers = tiles(
        ("Inserted", count(counts[INSERT]), "rows"),
        ("Updated", count(counts[POSTIMAGE]), "rows"),
        ("Deleted", count(counts[DELETE]), "rows"),
    )
    if not total:
        return [numbers, card("Rows", nothing("No row changed."), run)]
    heads: list[Node] = ["", *found.columns, "Snapshot"]
    rows = [_row(each) for each in found.rows]
    told = f"{min(ROWS_SHOWN, total):,} of {total:,} changes, in the order of commits."
    if found.columns_left_out:
        told += f" {found.columns_left_out:,} more columns are not shown."
    return [numbers, card("Rows", grid("Changed rows", heads, rows, "diff"), run, note=told)]


def _row(row: ChangedRow) -> list[Node]:
    sign = el(
        "td",
        el("span", _SIGNS.get(row.kind, "?"), aria_hidden="true"),
        el("span", _WORDS.get(row.kind, row.kind), class_="unseen"),
        class_=f"sign {row.kind}",
        title=_WORDS.get(row.kind, row.kind),
    )
    cells: list[Node] = [
        el("td", el("mark", text) if place in row.marked else text, class_=row.kind)
        for place, text in enumerate(row.cells)
    ]
    return [sign, *cells, el("td", row.snapshot_id, class_="id")]
