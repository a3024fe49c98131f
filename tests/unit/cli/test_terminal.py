"""What others wrote into tables, names and files cannot reach a terminal as commands to it."""

from __future__ import annotations

import io
import json
import sys

import pyarrow as pa
import pytest
from rich.console import Console

from rowlake.cli import app as cli
from rowlake.cli import shell
from rowlake.cli.output import Output, show, show_plan
from rowlake.cli.text_table import text_table
from rowlake.cli.watch import keep_watch
from rowlake.engine import progress
from rowlake.errors import CorruptTableError, InvalidStatementError, StorageError
from rowlake.model.printable import printable_json, printable_line, printable_lines

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202eb\u2066c\u2028d\ud800"
UNSAFE = set("\x1b\x07\x9b\r\u202e\u2066\u2028\ud800")


def safe(text: str) -> bool:
    return UNSAFE.isdisjoint(text)


def test_what_is_unsafe_is_escaped_and_the_rest_stays() -> None:
    assert printable_lines("a\x1b[31m\nb\tc") == "a\\x1b[31m\nb\tc"
    assert printable_line("a\nb\x00") == "a⏎b\\x00"
    honest = "naïve 日本語 שלום 👩\u200d👧 e\u0301\u200c"
    assert printable_lines(honest) == printable_line(honest) == honest
    assert safe(printable_lines(HOSTILE))
    assert safe(printable_line(HOSTILE))


def test_json_stays_the_same_value() -> None:
    text = json.dumps({HOSTILE: [HOSTILE]}, ensure_ascii=False, indent=2)
    assert json.loads(printable_json(text)) == {HOSTILE: [HOSTILE]}
    assert safe(printable_json(text))


def test_cells_and_names_of_tables_are_escaped() -> None:
    (_, _, row), (name, *_) = (
        list(text_table(["a"], [[HOSTILE]], [False], 200)),
        list(text_table([HOSTILE], [["x"]], [False], 200)),
    )
    assert safe(row)
    assert safe(name)


@pytest.mark.parametrize("output", [Output.TABLE, Output.JSON])
def test_rows_are_printed_without_control_characters(capsys, output: Output) -> None:
    hostile = HOSTILE[:-1]  # Arrow has no lone surrogates
    show(pa.table({hostile: [hostile]}), output)
    assert safe(capsys.readouterr().out)


def test_plans_are_printed_without_control_characters(capsys) -> None:
    show_plan(f"read\n  {HOSTILE}", Output.TABLE)
    out = capsys.readouterr().out
    assert safe(out)
    assert out.startswith("read\n  a")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_csv_is_raw_for_a_pipe_and_escaped_for_a_terminal(capsys, monkeypatch) -> None:
    rows = pa.table({"a": ["x\x1b[31m"]})
    show(rows, Output.CSV)
    assert capsys.readouterr().out == "a\nx\x1b[31m\n"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    show(rows, Output.CSV)
    assert terminal.getvalue() == "a\nx\\x1b[31m\n"


def test_errors_that_quote_a_file_are_printed_without_control_characters(
    capsys, monkeypatch
) -> None:
    def fail() -> None:
        raise CorruptTableError(f"/data/{HOSTILE}.parquet", "it is broken")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    err = capsys.readouterr().err
    assert safe(err)
    assert "\\x1b[2J" in err


class FailingLake:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def sql(self, _: str) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [InvalidStatementError(HOSTILE), ValueError(HOSTILE), ValueError("")],
    ids=["own", "other", "empty"],
)
def test_the_shell_prints_errors_without_control_characters(
    capsys, monkeypatch, error: Exception
) -> None:
    lines = iter(["SELECT 1", ";", "exit"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    shell.run_shell(FailingLake(error))  # type: ignore[arg-type]
    err = capsys.readouterr().err
    assert safe(err)
    assert err.startswith("error: ")


def test_the_shell_tells_what_it_cannot_read_instead_of_waiting(capsys, monkeypatch) -> None:
    lines = iter(["SELECT " + "(" * 600 + ";", "exit"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    shell.run_shell(FailingLake(InvalidStatementError("asked")))  # type: ignore[arg-type]
    assert capsys.readouterr().err == "error: asked\n"


def test_watching_prints_errors_without_control_characters(capsys) -> None:
    def fail() -> None:
        raise StorageError(HOSTILE, "gone")

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    for output in (Output.TABLE, Output.JSON):
        keep_watch(fail, 1.0, output, stop)
        assert safe(capsys.readouterr().out)


def test_labels_of_progress_are_no_markup_and_no_commands(monkeypatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    real = Console
    monkeypatch.setattr(
        "rich.console.Console", lambda **_: real(file=screen, width=120, force_terminal=True)
    )
    label = "append to [red]x[/red] [link=http://e]y[/link] \x1b]0;owned\x07"
    with progress.reporting(label, True) as reporter:
        reporter.update(1, 2)
    shown = screen.getvalue()
    assert "[red]x[/red] [link=http://e]y[/link]" in shown
    assert "\x1b]0;owned" not in shown
