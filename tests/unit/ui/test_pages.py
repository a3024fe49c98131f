"""What pages show of tables of both formats: hostile names as text, secrets never."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from rowlake.ui.server import PAGES
from tests.lakes import SALES, sales
from tests.metadata_edits import edit_metadata
from tests.metadata_files import MB, add_files
from tests.unit.ui.conftest import Browser, serving

TABS = [path for path in PAGES if path.startswith("/table")]
HOSTILE = "<img src=x onerror=alert('x')>\""


def plain(text: str) -> str:
    """Return a page's text without its tags."""
    return re.sub(r"<[^>]*>", " ", text)


def test_the_lake_page_lists_tables_with_their_health(browser) -> None:
    text = plain(browser.get("/").text)
    assert "ns.t" in text and "iceberg v2" in text
    assert re.search(r"\b50\b", text)  # rows
    assert re.search(r"(ok|watch|act)", text)


@pytest.mark.parametrize("path", TABS)
def test_every_page_of_a_table_answers(browser, path: str) -> None:
    answer = browser.get(path, name="ns.t")
    assert answer.status == 200
    assert "<h1>ns.t</h1>" in answer.text


@pytest.mark.parametrize("path", TABS)
def test_an_empty_table_has_every_page(lake, browser, path: str) -> None:
    lake.create_table("ns.empty", SALES)
    assert browser.get(path, name="ns.empty").status == 200


@pytest.mark.parametrize("path", TABS)
def test_delta_tables_have_every_page(lake, browser, path: str) -> None:
    table = lake.create_table(
        "ns.d", SALES, format="delta", properties={"delta.enableDeletionVectors": "true"}
    )
    table.append(sales(20))
    table.delete("id < 3")
    answer = browser.get(path, name="ns.d")
    assert answer.status == 200
    assert "This is a bug" not in answer.text


@pytest.mark.parametrize("path", ["/", "/activity", *TABS])
def test_hostile_names_are_text(lake, browser, path: str) -> None:
    schema = pa.schema([("id", pa.int64()), (HOSTILE, pa.string())])
    table = lake.create_table(("ns", HOSTILE), schema, properties={HOSTILE: HOSTILE})
    table.append(pa.table({"id": [1], HOSTILE: [HOSTILE]}))
    table.create_tag(HOSTILE)
    answer = browser.get(path, name=table.name, end=str(table.handle.current_snapshot_id))
    assert answer.status == 200
    assert "<img" not in answer.text
    assert "&lt;img src=x onerror=alert(&#x27;x&#x27;)&gt;" in answer.text


def test_tables_that_are_not_there_are_not_found(browser) -> None:
    for path in TABS:
        assert browser.get(path, name="ns.nothing").status == 404
        assert browser.get(path).status == 400
    assert browser.get("/line", name="ns.nothing").status == 404
    assert browser.get("/nowhere").status == 404


@pytest.mark.parametrize("first", ["-1", "x", "9" * 40, "1e3", "\u0663"])
def test_numbers_in_addresses_are_checked(browser, first: str) -> None:
    assert browser.get("/table/history", name="ns.t", first=first).status == 400
    assert browser.get("/table/files", name="ns.t", column=first).status == 400


def test_a_table_that_cannot_be_read_does_not_hide_the_others(lake, browser, tmp_path) -> None:
    lake.create_table("ns.broken", SALES).append(sales(3))
    for path in (tmp_path / "lake" / "ns" / "broken" / "metadata").glob("*.json"):
        path.write_text("{")
    text = browser.get("/").text
    assert "unreadable" in text and "iceberg v2" in text
    assert browser.get("/table", name="ns.broken").status == 502


def test_secrets_are_never_shown(lake, browser) -> None:
    def plant(metadata: dict[str, Any]) -> None:
        metadata["properties"] = {
            "s3.secret-access-key": "hunter2-key",
            "uri": "http://user:hunter2-word@host/",
            "harmless": "shown",
        }
        metadata["snapshots"][-1]["summary"] |= {
            "rowlake.condition": "token = 'hunter2-token' AND password=hunter2-text",
            "rowlake.user": "https://me:hunter2-user@host",
        }

    edit_metadata(lake.table("ns.t"), plant)
    shown = "".join(browser.get(path, name="ns.t").text for path in ["/", "/activity", *TABS])
    assert "hunter2" not in shown
    assert "redacted" in shown and "harmless" in shown


def test_pages_follow_commits_and_dropped_tables(lake, browser) -> None:
    assert "60 " not in plain(browser.get("/table", name="ns.t").text)
    lake.table("ns.t").append(sales(10, 50))
    assert re.search(r"\b60\b", plain(browser.get("/table", name="ns.t").text))
    lake.drop_table("ns.t")
    assert browser.get("/table", name="ns.t").status == 404
    assert "This lake has no tables yet." in browser.get("/").text
    lake.create_table("ns.t", SALES).append(sales(7))
    assert re.search(r"\b7\b", plain(browser.get("/table", name="ns.t").text))


def test_commands_name_the_lake_that_the_page_shows(lake) -> None:
    with serving(lake, flags="--warehouse 'a b'") as server:
        text = Browser(server).log_in().get("/table/optimize", name="ns.t").text
    assert "rowlake expire ns.t --warehouse &#x27;a b&#x27;" in text


def test_a_page_of_ten_thousand_files_and_a_thousand_snapshots_is_small(lake, server) -> None:
    table = lake.create_table("ns.many", pa.schema([("id", pa.int64()), ("store", pa.int32())]))
    add_files(table, [MB] * 10_000)
    browser = Browser(server).log_in()
    for path in TABS:
        answer = browser.get(path, name="ns.many")
        assert answer.status == 200
        assert len(answer.text) < 60_000
    look = server.site.looks.look("ns.many")
    assert look is server.site.looks.look("ns.many")  # surveyed once


def test_tables_beyond_the_time_of_a_page_are_filled_in_one_by_one(
    lake, browser, monkeypatch
) -> None:
    monkeypatch.setattr("rowlake.ui.pages.lake.SECONDS", 0.0)
    text = browser.get("/").text
    assert 'data-fill="/line?name=ns.t"' in text
    row = browser.get("/line", name="ns.t").text
    assert row.startswith("<tr>") and "iceberg v2" in row


def test_tables_are_paged(lake, browser, monkeypatch) -> None:
    monkeypatch.setattr("rowlake.ui.pages.lake.SHOWN", 1)
    lake.create_table("ns.u", SALES)
    first, second = browser.get("/").text, browser.get("/", first="1").text
    assert ("name=ns.t" in first, "name=ns.u" in first) == (True, False)
    assert ("name=ns.t" in second, "name=ns.u" in second) == (False, True)


def test_files_are_read_only_where_rows_are_compared(browser, monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a data file was read")

    monkeypatch.setattr("rowlake.ui.diffs.arrow", refuse)
    monkeypatch.setattr("rowlake.engine.spark.run_here", refuse)
    for path in TABS:
        assert browser.get(path, name="ns.t").status == 200
