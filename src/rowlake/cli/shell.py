"""An interactive shell: statements end with a semicolon; `exit` or end of input leaves it.

On a terminal lines can be edited, recalled (the history is kept between sessions) and completed
with Tab, by Python's own `readline`. Lines that begin with a backslash are the shell's commands.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rowlake.cli.completion import Completer
from rowlake.cli.output import Output, rows_of, show
from rowlake.errors import RowlakeError
from rowlake.model.printable import printable_lines
from rowlake.query.refusals import plain_error
from rowlake.secrets import without_secrets
from rowlake.sqltext.statement_list import split_statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake

PROMPT, MORE = "rowlake> ", "      -> "
LEAVE = {"exit", "quit", "\\q"}
HISTORY_FILE = "ROWLAKE_HISTORY"
HISTORY_LINES = 10_000
HELP = """\
A statement ends with a semicolon and may take several lines. Ctrl-C drops it, Ctrl-D leaves.
Tab completes tables, columns and words; the arrow keys recall earlier lines.

  \\d                 list the tables
  \\d NS.TABLE        show a table's columns, layout and properties
  \\h NS.TABLE        show what was done to a table
  \\explain STATEMENT show what a DELETE, UPDATE or MERGE would do
  \\timing            show the time of each statement, or stop showing it
  \\i FILE            run the statements of a file
  \\? or help         this help
  \\q, exit or quit   leave

  CREATE NAMESPACE shop;
  CREATE TABLE shop.sales (id BIGINT, amount DECIMAL(9, 2));
  INSERT INTO shop.sales VALUES (1, 9.90);
  MERGE INTO shop.sales t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *;"""


class Shell:
    """Runs lines; `pending` is the statement that is not over yet."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.pending = ""
        self.is_timed = False
        self._commands: dict[str, Callable[[str], None]] = {
            "\\?": self._help,
            "\\h": self._history,
            "\\d": self._describe,
            "\\explain": self._explain,
            "\\timing": self._timing,
            "\\i": self._include,
        }
        self.completer = Completer(lake, [*self._commands, "\\q"])

    def take(self, line: str) -> bool:
        """Take a line, and run what it completes; return False where the user wants to leave."""
        word = line.strip().rstrip(";").lower()
        if not self.pending and word in LEAVE:
            return False
        if not self.pending and (line.lstrip().startswith("\\") or word == "help"):
            self._command("\\?" if word == "help" else line.strip().rstrip(";"))
            return True
        self.pending = f"{self.pending}\n{line}" if self.pending else line
        if ";" in line:  # avoids rescanning a long statement for every line
            statements, self.pending = split_statements(self.pending)
            for statement in statements:
                self.run(statement)
        if not self.pending.strip():
            self.pending = ""
        return True

    def run(self, statement: str) -> None:
        """Run a statement and show its rows; errors are shown too."""
        started = time.perf_counter()
        self._safely(lambda: show(rows_of(self._lake, statement), Output.TABLE))
        self.completer.forget()
        if self.is_timed:
            print(f"{time.perf_counter() - started:.3f} s")

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        command = self._commands.get(name.lower())
        if command is None:
            known = ", ".join([*self._commands, "\\q"])
            print(f"error: unknown command {printable_lines(name)} (expected one of: {known})")
            return
        self._safely(lambda: command(rest.strip()))

    def _help(self, _: str) -> None:
        print(HELP)

    def _describe(self, name: str) -> None:
        from rowlake.cli.views import description_of, table_of, tables_of

        found = description_of(table_of(self._lake, name)) if name else tables_of(self._lake, None)
        show(found, Output.TABLE)

    def _history(self, name: str) -> None:
        from rowlake.cli.views import history_of, table_of

        if not name:
            self._help("")
            return
        show(history_of(table_of(self._lake, name)), Output.TABLE)

    def _explain(self, statement: str) -> None:
        from rowlake.cli.output import show_plan
        from rowlake.cli.requests import explained

        rows = rows_of(self._lake, explained(statement)).to_pylist()
        show_plan("\n".join(str(next(iter(row.values()))) for row in rows), Output.TABLE)

    def _timing(self, _: str) -> None:
        self.is_timed = not self.is_timed
        print(f"timing is {'on' if self.is_timed else 'off'}")

    def _include(self, path: str) -> None:
        statements, last = split_statements(Path(path).expanduser().read_text(encoding="utf-8"))
        for statement in [*statements, *([last] if last.strip() else [])]:
            self.run(statement)

    def _safely(self, act: Callable[[], None]) -> None:
        try:
            act()
        except RowlakeError as error:
            print(f"error: {printable_lines(str(error))}", file=sys.stderr)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
        except Exception as error:  # noqa: BLE001 - Spark's own errors must not end the shell
            found = plain_error(error)
            first = (str(found or error).strip() or type(error).__name__).splitlines()[0]
            print(f"error: {printable_lines(without_secrets(first))}", file=sys.stderr)


def run_shell(lake: Lake) -> None:
    """Read statements and run them until the user leaves; errors do not end the shell."""
    shell = Shell(lake)
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        _edit_lines(shell.completer)
        print("rowlake shell: \\? for help, \\q to leave")
    while _takes_line(shell):
        pass
    if is_terminal:
        _keep_history()


def _takes_line(shell: Shell) -> bool:
    """Read and run one line; return whether there may be another."""
    try:
        return shell.take(input(MORE if shell.pending else PROMPT))
    except EOFError:
        print()
        if shell.pending.strip():
            shell.run(shell.pending)
        return False
    except KeyboardInterrupt:
        print()
        shell.pending = ""
        return True


def _history_path() -> Path:
    return Path(os.environ.get(HISTORY_FILE) or Path.home() / ".rowlake_history")


def _edit_lines(completer: Completer) -> None:
    """Let lines be edited, recalled and completed, where Python has readline."""
    with suppress(ImportError, OSError):
        import readline

        readline.set_completer(completer)
        readline.set_completer_delims(" \t\n,()=<>+*/;'\"")
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
        readline.set_history_length(HISTORY_LINES)
        readline.read_history_file(_history_path())


def _keep_history() -> None:
    """Write the history for the next session; lines that hold a secret are left out."""
    with suppress(ImportError, OSError):
        import readline

        for place in range(readline.get_current_history_length(), 0, -1):
            line = readline.get_history_item(place) or ""
            if without_secrets(line) != line:
                readline.remove_history_item(place - 1)
        path = _history_path()
        readline.write_history_file(path)
        path.chmod(0o600)
