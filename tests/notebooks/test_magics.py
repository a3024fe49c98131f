"""`%load_ext rowlake` in an IPython shell, without a kernel and without Spark."""

from __future__ import annotations

import re

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from rowlake.errors import InvalidStatementError
from tests.lakes import make_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with make_lake(tmp_path_factory.mktemp("magics") / "lake") as opened:
        opened.create_namespace("shop")
        opened.create_table("shop.sales", "id BIGINT, note STRING").append(
            [{"id": 1, "note": "<b>"}]
        )
        yield opened
        assert not opened.engine.has_session


@pytest.fixture(scope="module")
def shell(lake):
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "rowlake")
    made.user_ns["lake"] = lake
    return made


def shown(captured) -> str:
    return "".join(str(one.data.get("text/html", "")) for one in captured.outputs)


def test_a_cell_runs_its_statements_and_shows_the_rows_of_each(shell):
    with capture_output() as captured:
        shell.run_cell_magic(
            "rowlake",
            "",
            "SHOW TABLES IN shop;\n-- a ; in a comment\nDELETE FROM shop.sales WHERE id = 7;",
        )
    assert len(captured.outputs) == 2
    assert "sales" in shown(captured)
    assert "num_deleted_rows" in shown(captured)


def test_a_frame_can_be_kept_in_a_variable(shell):
    with capture_output() as captured:
        shell.run_line_magic("rowlake", "--into found SHOW TABLES IN shop")
    assert captured.outputs == []
    assert shell.user_ns["found"].collect()[0].tableName == "sales"


def test_a_line_can_open_a_lake(shell, tmp_path):
    shell.run_line_magic("rowlake", f'--lake other --warehouse "{tmp_path}/a lake"')
    with shell.user_ns["other"] as other:
        other.create_namespace("n")
        with capture_output() as captured:
            shell.run_line_magic("rowlake", "--lake other SHOW NAMESPACES")
        assert "<td>n</td>" in shown(captured)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--lake nothing SHOW TABLES", "no lake in the variable 'nothing'"),
        ("--limit x SHOW TABLES", "invalid int value"),
        ("--limit 0 SHOW TABLES", "from 1 to"),
        ("--wrong x SHOW TABLES", "unrecognized arguments"),
        ("", "no statement"),
    ],
)
def test_wrong_usage_is_told(shell, line, words):
    with pytest.raises(InvalidStatementError, match=re.escape(words)):
        shell.run_line_magic("rowlake", line)


def test_arrow_tables_of_rowlake_are_shown_as_html(shell, lake):
    history = lake.table("shop.sales").history()
    found, _ = shell.display_formatter.format(history)
    assert "History of shop.sales" in found["text/html"]
    found, _ = shell.display_formatter.format(
        history.select(["snapshot_id"]).replace_schema_metadata()
    )
    assert "text/html" not in found
