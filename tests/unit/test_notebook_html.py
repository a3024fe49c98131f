"""What notebooks show: every object as HTML in which nothing of a table can become markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pytest

from rowlake.engine.progress import NotebookReporter, reporting
from rowlake.model import markup
from rowlake.model.ipython import show_arrow_tables
from rowlake.model.plan import Plan, Pruned
from rowlake.model.shown_table import html_of_marked, html_table
from tests.lakes import make_lake

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b[2J"
OWN = {"div", "style", "b", "br", "span", "table", "thead", "tbody", "tr", "th", "td", "pre"}
OWN |= {"code", "progress"}


class Page(HTMLParser):
    """The elements of a page, the text outside of its style, and what is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names, self.open, self.text = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        assert {name for name, _ in attrs} <= {"class", "value", "max"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data


def page(shown: str) -> Page:
    found = Page(shown)
    assert found.open == []
    assert set(found.names) <= OWN
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with make_lake(tmp_path_factory.mktemp("shown") / "lake") as opened:
        opened.create_namespace("shop")
        schema = pa.schema([pa.field("id", pa.int64()), pa.field("<b>name</b>", pa.string())])
        made = opened.create_table(
            "shop.sales", schema, partition_by=["id"], comment=HOSTILE, properties={"x": HOSTILE}
        )
        made.append([{"id": 1, "<b>name</b>": HOSTILE}, {"id": 2, "<b>name</b>": None}])
        made.delete("id = 1")
        yield opened
        assert not opened.engine.has_session


@pytest.fixture
def table(lake):
    return lake.table("shop.sales")


def test_a_lake_lists_its_tables(lake):
    shown = page(lake._repr_html_())
    assert all(text in shown.text for text in ("shop.sales", "iceberg v2", "1 table"))


def test_a_table_that_cannot_be_read_does_not_hide_the_others(lake, monkeypatch):
    names = ["shop.gone<script>", "shop.sales"]
    monkeypatch.setattr(type(lake), "tables", lambda *_: names)
    shown = page(lake._repr_html_())
    assert "There is no table" in shown.text
    assert "iceberg v2" in shown.text


def test_a_table_shows_its_columns_and_partitioning(table):
    shown = page(table._repr_html_())
    for text in ("shop.sales", "<b>name</b>", "string", "identity(id)", "1 row"):
        assert text in shown.text


def test_results_plans_and_health_are_shown(table):
    result = table.append([{"id": 3, "<b>name</b>": HOSTILE}])
    assert "rows inserted" in page(result._repr_html_()).text
    plan = Plan("delete", HOSTILE, None, "auto", "snapshot", pruned=(Pruned(1, "x", HOSTILE),))
    shown = page(plan._repr_html_())
    assert "pre" in shown.names
    assert "├─" in shown.text
    health = page(table.health()._repr_html_())
    assert "small files" in health.text


def test_snapshots_are_a_list_that_is_shown_as_a_table(table):
    snapshots = table.snapshots()
    assert isinstance(snapshots, list)
    shown = page(snapshots._repr_html_())
    assert str(snapshots[-1].snapshot_id) in shown.text
    assert "DELETE" in shown.text


def test_history_is_marked_for_notebooks_and_other_arrow_tables_stay_as_they_are(table):
    history = table.history()
    assert isinstance(history, pa.Table)
    shown = page(html_of_marked(history))
    assert "History of shop.sales" in shown.text
    assert str(history["snapshot_id"][0]) in shown.text
    assert html_of_marked(pa.table({"a": [1]})) is None


def test_ipython_is_told_how_to_show_arrow_tables():
    told = []

    class Formatter:
        def for_type_by_name(self, *given):
            told.append(given)

    class Shell:
        class display_formatter:
            formatters = {"text/html": Formatter()}  # noqa: RUF012

    show_arrow_tables(Shell)
    show_arrow_tables(None)
    assert told == [("pyarrow.lib", "Table", html_of_marked)]


def test_what_sql_returns_is_shown_without_spark(lake):
    explained = lake.sql("EXPLAIN DELETE FROM shop.sales WHERE id = 3")._repr_html_()
    assert "pre" in page(explained).names
    changed = lake.sql("DELETE FROM shop.sales WHERE id = 3")._repr_html_()
    assert "num_deleted_rows" in page(changed).text
    assert not lake.engine.has_session


def test_rows_are_cut_and_counted():
    shown = page(html_table(pa.table({"n": list(range(markup.MOST_ROWS + 5))})))
    assert "5 more rows" in shown.text
    assert shown.names.count("tr") == markup.MOST_ROWS + 1


def test_values_of_every_kind_are_cells():
    beyond = pa.array([2**55], pa.timestamp("us"))  # the year 3111
    far = pa.array([2**62], pa.timestamp("us"))  # beyond Python's years
    shown = page(
        html_table(
            pa.table(
                {
                    HOSTILE: [HOSTILE],
                    "s": [{"a": [HOSTILE]}],
                    "b": [b"\x00\xff"],
                    "z": pa.array([None], pa.int32()),
                    "t": beyond,
                    "far": far,
                    "long": ["x" * 10_000],
                }
            )
        )
    )
    assert "NULL" in shown.text
    assert "00 ff" in shown.text
    assert "3111-" in shown.text
    assert len(shown.text) < 3_000


def test_a_bar_is_moved_in_place_and_taken_away(monkeypatch):
    shown = []
    monkeypatch.setattr("rowlake.engine.progress.PATIENCE_SECONDS", 0)
    monkeypatch.setattr("rowlake.engine.progress.has_notebook", lambda: True)
    monkeypatch.setattr(NotebookReporter, "_display", lambda self, text: shown.append(text))
    with reporting(HOSTILE, True) as bar:
        bar.update(1, 4)
        bar.update(1, 4)
        bar.update(3, 0)
        bar._shown = object()
    assert len(shown) == 3
    assert shown[-1] == ""
    assert 'value="1" max="4"' in shown[0]
    assert page(shown[0]).names.count("progress") == 1
