"""Actions: only where they are allowed, after a dry run, by a form of this page."""

from __future__ import annotations

import re

import pytest

from rowlake.ui.operations import DONE, FAILED, Operations
from tests.lakes import SALES, sales
from tests.unit.ui.conftest import Browser, serving


@pytest.fixture
def acting(lake):
    with serving(lake, allow_actions=True) as made:
        yield Browser(made).log_in()


@pytest.fixture
def old(lake):
    """Return a table with a snapshot that is to expire."""
    made = lake.create_table(
        "ns.old", SALES, properties={"history.expire.max-snapshot-age-ms": "1"}
    )
    for first in range(6):
        made.append(sales(5, first * 5))
    return made


def form_of(text: str) -> dict[str, str]:
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))
    return {**found, "sure": "yes"}


def test_a_read_only_page_has_no_buttons_and_takes_no_forms(server, browser) -> None:
    assert "/action" not in browser.get("/table/optimize", name="ns.t").text
    assert browser.get("/action", name="ns.t", verb="optimize").status == 400
    answer = browser.post(
        "/action", name="ns.t", verb="optimize", sure="yes", csrf=server.gate.csrf
    )
    assert answer.status == 400
    assert "read-only" in answer.text
    assert server.site.operations.all() == []


def test_a_dry_run_changes_nothing_and_has_a_form(acting, old) -> None:
    before = old.handle.version
    assert (
        "/action?name=ns.old&amp;verb=expire" in acting.get("/table/optimize", name="ns.old").text
    )
    text = acting.get("/action", name="ns.old", verb="expire").text
    assert "deleted manifest lists count" in text
    assert form_of(text)["snapshot"] == str(old.handle.current_snapshot_id)
    assert old.handle.version == before


@pytest.mark.parametrize("verb", ["expire", "optimize"])
def test_the_form_runs_it(acting, old, verb: str) -> None:
    rows = old.arrow().num_rows
    given = form_of(acting.get("/action", name="ns.old", verb=verb).text)
    answer = acting.post("/action", **given)
    assert (answer.status, answer.headers["Location"]) == (303, "/activity")
    acting.server.site.operations.wait(60)
    (done,) = acting.server.site.operations.all()
    assert (done.verb, done.table, done.state, done.error) == (verb, "ns.old", DONE, "")
    left = {"expire": len(old.snapshots()), "optimize": old.files().num_rows}
    assert left[verb] == 1
    assert old.arrow().num_rows == rows
    assert "ns.old" in acting.get("/activity").text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"csrf": "wrong"}, 403),
        ({"csrf": ""}, 403),
        ({"sure": ""}, 200),
        ({"snapshot": "1"}, 200),
        ({"verb": "drop"}, 400),
        ({"name": "ns.nothing"}, 404),
    ],
)
def test_forms_that_are_not_right_run_nothing(acting, old, change, status: int) -> None:
    given = form_of(acting.get("/action", name="ns.old", verb="expire").text)
    assert acting.post("/action", **{**given, **change}).status == status
    assert acting.server.site.operations.all() == []
    assert len(old.snapshots()) == 6


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Cookie": "x=y"},
        {"Content_Type": "text/plain"},
    ],
)
def test_forms_of_other_sites_run_nothing(acting, old, headers: dict[str, str]) -> None:
    given = form_of(acting.get("/action", name="ns.old", verb="expire").text)
    body = "&".join(f"{key}={value}" for key, value in given.items())
    assert acting.ask("POST", "/action", body, **headers).status in {400, 403}
    assert acting.server.site.operations.all() == []


def test_forms_are_bounded(acting) -> None:
    assert acting.ask("POST", "/action", "x=" + "y" * 20_000).status == 400
    assert acting.ask("POST", "/", "csrf=1").status == 400


def test_getting_the_address_of_an_action_runs_nothing(acting, old) -> None:
    given = form_of(acting.get("/action", name="ns.old", verb="expire").text)
    acting.get("/action", **given)
    assert acting.server.site.operations.all() == []


def test_a_table_that_changed_meanwhile_is_shown_again(acting, old) -> None:
    given = form_of(acting.get("/action", name="ns.old", verb="expire").text)
    old.append(sales(1, 1_000))
    answer = acting.post("/action", **given)
    assert "has changed since" in answer.text
    assert form_of(answer.text)["snapshot"] == str(old.handle.current_snapshot_id)


def test_one_operation_runs_at_a_time_and_tells_its_progress(lake) -> None:
    from threading import Event

    from rowlake.engine.progress import Progress

    operations = Operations(lake.engine, str)
    begun, go_on = Event(), Event()

    def work():
        lake.engine.progress(Progress("rewriting", 1, 4))
        lake.engine.progress(Progress("reading changes of ns.t", 9, 9))
        begun.set()
        go_on.wait(60)
        raise ValueError("no luck")

    assert operations.start("optimize", "ns.t", work) is not None
    assert begun.wait(60)
    (running,) = operations.all()
    assert (running.phase, running.done, running.total) == ("rewriting", 1, 4)
    assert operations.start("expire", "ns.t", work) is None
    go_on.set()
    operations.wait(60)
    (failed,) = operations.all()
    assert (failed.state, failed.error) == (FAILED, "no luck")
    assert lake.engine.progress is False
