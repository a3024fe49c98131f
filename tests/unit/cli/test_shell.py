"""The shell: its commands, statements over several lines, completion; no Spark."""

from __future__ import annotations

import builtins

import pytest

from rowlake.cli.shell import HELP, Shell, run_shell
from tests.lakes import SALES, make_lake, sales


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with make_lake(tmp_path_factory.mktemp("shell") / "lake") as opened:
        opened.create_namespace("shop")
        opened.create_table("shop.sales", SALES).append(sales(3))
        yield opened


@pytest.fixture
def shell(lake):
    return Shell(lake)


@pytest.mark.parametrize("line", ["\\?", "\\?;", "help", "HELP;"])
def test_help_is_shown_and_the_shell_goes_on(shell, capsys, line):
    assert shell.take(line)
    assert HELP in capsys.readouterr().out
    assert shell.pending == ""


@pytest.mark.parametrize("line", ["\\q", "exit", "quit;", "EXIT"])
def test_the_shell_is_left(shell, line):
    assert not shell.take(line)


def test_d_lists_tables_and_describes_one(shell, capsys):
    shell.take("\\d")
    assert "shop.sales" in capsys.readouterr().out
    shell.take("\\d shop.sales")
    assert "amount" in capsys.readouterr().out
    shell.take("\\h shop.sales")
    assert "APPEND" in capsys.readouterr().out


def test_wrong_commands_and_names_are_errors_that_do_not_end_it(shell, capsys):
    assert shell.take("\\nope")
    assert "unknown command \\nope" in capsys.readouterr().out
    assert shell.take("\\d shop.sale")
    assert "Did you mean shop.sales?" in capsys.readouterr().err
    assert shell.take("\\i /no/such/file")
    assert "No such file" in capsys.readouterr().err


def test_a_statement_may_take_several_lines(shell, monkeypatch):
    ran = []
    monkeypatch.setattr(shell, "run", ran.append)
    for line in ("SELECT 1,", "", "  'a;b'", "; SELECT 2; SELECT"):
        assert shell.take(line)
    assert ran == ["SELECT 1,\n\n  'a;b'", "SELECT 2"]
    assert shell.pending.strip() == "SELECT"


def test_timing_tells_how_long_a_statement_took(shell, capsys):
    shell.take("\\timing")
    shell.run("SHOW NAMESPACES FROM nowhere at all")
    assert "timing is on" in (out := capsys.readouterr().out)
    assert " s\n" in out


def test_files_of_statements_are_run(shell, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(shell, "run", ran.append)
    (tmp_path / "two.sql").write_text("SELECT 1;\n-- a comment\nSELECT 2")
    shell.take(f"\\i {tmp_path / 'two.sql'}")
    assert ran == ["SELECT 1", "\n-- a comment\nSELECT 2"]


def test_tables_columns_words_and_commands_are_completed(shell):
    complete = shell.completer.candidates
    assert complete("sh", "SELECT * FROM sh") == ["shop.sales", "show"]
    assert complete("am", "SELECT * FROM shop.sales WHERE am") == ["amount"]
    assert complete("am", "SELECT am") == []
    assert complete("MER", "MER") == ["MERGE"]
    assert complete("mer", "mer") == ["merge"]
    assert complete("\\t", "\\t") == ["\\timing"]


def test_the_end_of_input_runs_what_is_left(lake, monkeypatch, capsys):
    lines = iter(["\\?", "\\d"])

    def read(_: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(builtins, "input", read)
    run_shell(lake)
    assert "shop.sales" in capsys.readouterr().out
