"""What maintenance would do for a table, what it would save, and the commands to copy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rowlake.maintain.autopilot.optimize import PLANNED
from rowlake.model.plan import size_text
from rowlake.ui.frame import badge, card, command, nothing, page, table_head, tiles
from rowlake.ui.markup import Element, Node, address, el

if TYPE_CHECKING:
    from rowlake.maintain.autopilot.optimize import OptimizeStep
    from rowlake.ui.looks import Look
    from rowlake.ui.site import Asked, Site

PATH = "/table/optimize"


def optimize_page(site: Site, asked: Asked) -> Element:
    """Return the page of what `optimize` would do now."""
    look = asked.look(site)
    report = look.advice
    planned = report.planned
    skipped = [each for each in report.steps if each.state != PLANNED]
    saves, costs = (
        sum(each.saves_in_bytes for each in planned),
        sum(each.costs_in_bytes for each in planned),
    )
    numbers = tiles(
        ("Steps that pay", str(len(planned)), f"{len(skipped)} looked at and left out"),
        ("Saves", size_text(saves) if planned else "–", "on every read of the whole table"),
        ("Costs", size_text(costs) if planned else "–", "read and written, once"),
    )
    return page(
        site,
        PATH,
        *table_head(look.name, PATH, badge(look.health.verdict.value)),
        numbers,
        card(
            "What optimize would do",
            _steps(site, list(planned)) if planned else nothing("Nothing pays off right now."),
            *_whole(site, look, "optimize"),
            note="Each step commits by itself; what another writer holds is left to it.",
        ),
        card("What it would leave", _left(skipped)) if skipped else None,
        card(
            "Old snapshots",
            el(
                "p",
                "Expiring removes snapshots that are older than the table keeps them, and the "
                "files that only they need.",
            ),
            *_whole(site, look, "expire"),
        ),
    )


def _steps(site: Site, steps: list[OptimizeStep]) -> Element:
    return el(
        "ol",
        *(
            el(
                "li",
                el("strong", each.verb),
                el("p", each.why),
                command(site.run(each.command)),
            )
            for each in steps
        ),
        class_="steps",
    )


def _left(steps: list[OptimizeStep]) -> Element:
    lines = [el("li", el("strong", each.verb), " ", each.why) for each in steps]
    return el("ul", *lines, class_="plain")


def _whole(site: Site, look: Look, verb: str) -> list[Node]:
    """Return the command that does it, and where actions are allowed the way to a button."""
    text = f"rowlake {verb} {shlex.quote(look.name)}"
    parts: list[Node] = [command(site.run(text))]
    if site.allow_actions:
        to = address("/action", name=look.name, verb=verb)
        parts.append(el("p", el("a", f"Dry run and {verb} …", href=to, class_="button")))
    return parts
