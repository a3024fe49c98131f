"""Actions: a dry run with a button, and what the button starts.

Only with `--allow-actions`. A form names the snapshot that the dry run looked at; where the table
has changed since, nothing runs and the new dry run is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.ui.frame import badge, card, page, table_head
from rowlake.ui.gate import CSRF
from rowlake.ui.markup import Element, Node, address, el
from rowlake.ui.pages.activity import report_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.model.report import Report
    from rowlake.table import Table
    from rowlake.ui.looks import Look
    from rowlake.ui.site import Asked, Site

PATH = "/action"


@dataclass(frozen=True)
class Action:
    """One thing that the page can do to a table."""

    title: str
    told: str
    run: Callable[[Table, bool], Report]


def _optimize(table: Table, dry_run: bool) -> Report:
    return table.optimize(dry_run=dry_run)


def _expire(table: Table, dry_run: bool) -> Report:
    return table.expire_snapshots(dry_run=dry_run)


ACTIONS = {
    "optimize": Action(
        "Optimize",
        "Runs the steps below, each as a commit of its own. Rows stay the same.",
        _optimize,
    ),
    "expire": Action(
        "Expire snapshots",
        "Removes the snapshots below and deletes the files that only they need. This cannot be "
        "undone: time travel to them ends.",
        _expire,
    ),
}


def action_of(site: Site, asked: Asked) -> Action:
    """Return the action that is asked for; raises InvalidStatementError."""
    if not site.allow_actions:
        raise InvalidStatementError(
            "This page is read-only. Start it with rowlake ui --allow-actions."
        )
    found = ACTIONS.get(asked.text("verb"))
    if found is None:
        raise InvalidStatementError(f"There is no action {asked.text('verb')[:40]!r}.")
    return found


def confirm_page(site: Site, asked: Asked, warning: str = "") -> Element:
    """Return the dry run of an action, with the button that runs it."""
    action, look = action_of(site, asked), asked.look(site)
    back = el("a", "Back", href=address("/table/optimize", name=look.name), class_="button")
    parts: list[Node] = [el("p", warning, class_="trouble", role="alert")] if warning else []
    try:
        report = action.run(look.table, True)
        parts += [
            el("p", action.told),
            report_lines(tuple(report.rows())),
            _form(site, asked, look),
        ]
    except RowlakeError as error:
        parts.append(el("p", site.looks.plain(error), class_="trouble"))
    return page(
        site,
        PATH,
        *table_head(look.name, PATH, badge(look.health.verdict.value)),
        card(f"{action.title}: dry run", *parts, el("p", back)),
    )


def _form(site: Site, asked: Asked, look: Look) -> Element:
    hidden = {
        "name": look.name,
        "verb": asked.text("verb"),
        "snapshot": str(look.handle.current_snapshot_id),
        CSRF: site.gate.csrf,
    }
    return el(
        "form",
        *(el("input", type="hidden", name=key, value=value) for key, value in hidden.items()),
        el(
            "label",
            el("input", type="checkbox", name="sure", value="yes", required=True),
            f" Yes, {asked.text('verb')} {look.name}",
            class_="sure",
        ),
        el("button", "Run it", type="submit", class_="primary danger"),
        method="post",
        action=PATH,
    )


def start_action(site: Site, asked: Asked) -> Element | None:
    """Start an action; returns the dry run again where that must not be."""
    action, look = action_of(site, asked), asked.look(site)
    if asked.text("sure") != "yes":
        return confirm_page(site, asked, "Nothing was run: tick the box to confirm.")
    if asked.text("snapshot") != str(look.handle.current_snapshot_id):
        return confirm_page(
            site, asked, "Nothing was run: the table has changed since. This is the new dry run."
        )
    table = look.table
    started = site.operations.start(asked.text("verb"), look.name, lambda: action.run(table, False))
    if started is None:
        return confirm_page(site, asked, "Nothing was run: another operation is running.")
    return None
