"""`%load_ext rowlake`: SQL in notebook cells, and Arrow tables of rowlake's shown as tables.

`%%rowlake` runs the statements of a cell and shows the rows of each; `%rowlake` runs one line.
They use the variable `lake`, or what `--lake NAME` names; `%rowlake --warehouse PATH` opens one and
keeps it in `lake`. IPython is imported only where it runs already.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from rowlake.connection import connect
from rowlake.errors import InvalidStatementError
from rowlake.lake import Lake
from rowlake.model.ipython import show_arrow_tables
from rowlake.model.markup import MOST_ROWS
from rowlake.model.shown_table import html_table
from rowlake.query.refusals import plain_error
from rowlake.sqltext.statement_list import has_statement, split_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE = "lake"
MAGIC = "rowlake"
_OPTION = re.compile(
    r"""(?P<name>--[a-z]+)[ =]+(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>\S+))\s*"""
)


def load_ipython_extension(shell: Any) -> None:
    """Add the magics to an IPython shell; called by `%load_ext rowlake`."""
    show_arrow_tables(shell)
    magic = Magic(shell)
    shell.register_magic_function(magic.line, "line", MAGIC)
    shell.register_magic_function(magic.cell, "cell", MAGIC)


class Magic:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def line(self, line: str) -> None:
        """Run one statement, or open a lake: `%rowlake --warehouse ./lakehouse`."""
        self._run(line, "")

    def cell(self, line: str, cell: str) -> None:
        """Run the statements of a cell, separated by semicolons, and show the rows of each."""
        self._run(line, cell)

    def _run(self, line: str, cell: str) -> None:
        asked = _asked(line)
        statements = _statements(cell or asked.statement)
        lake = self._lake(asked)
        if not statements and asked.warehouse is None:
            raise InvalidStatementError("There is no statement to run.")
        for statement in statements:
            frame = lake.sql(statement)
            if asked.into:
                self._shell.user_ns[asked.into] = frame
            else:
                self._show(frame, asked.limit)

    def _lake(self, asked: argparse.Namespace) -> Lake:
        if asked.warehouse is not None:
            self._shell.user_ns[asked.lake] = connect(asked.warehouse, asked.catalog)
        found = self._shell.user_ns.get(asked.lake)
        if not isinstance(found, Lake):
            raise InvalidStatementError(
                f"There is no lake in the variable {asked.lake!r}: run "
                f"`lake = rowlake.connect()` or `%rowlake --warehouse PATH` first."
            )
        return found

    def _show(self, frame: Any, limit: int) -> None:
        from IPython.display import HTML, display

        if not frame.columns:
            return
        try:
            table = frame.limit(limit + 1).toArrow() if _is_query(frame) else frame.toArrow()
        except Exception as error:
            found = plain_error(error)
            if found is None:
                raise
            raise found from None
        shown = table.slice(0, limit)
        title = f"the first {limit:,} rows" if table.num_rows > limit else ""
        display(HTML(html_table(shown, title)))


def _is_query(frame: Any) -> bool:
    """Return whether showing a frame runs something, which a limit makes cheaper."""
    from rowlake.engine.local_frame import LocalFrame

    return not isinstance(frame, LocalFrame)


def _statements(text: str) -> list[str]:
    found, last = split_statements(text)
    return [*found, *([last] if has_statement(last) else [])]


class _Parser(argparse.ArgumentParser):
    """Raises instead of ending the kernel."""

    def error(self, message: str) -> Any:
        raise InvalidStatementError(f"%{MAGIC}: {message}. {self.format_usage().strip()}")


def _asked(line: str) -> argparse.Namespace:
    """Return the options at the beginning of a line, and the statement after them."""
    parser = _Parser(prog=f"%{MAGIC}", add_help=False)
    parser.add_argument("--lake", default=VARIABLE)
    parser.add_argument("--warehouse")
    parser.add_argument("--catalog")
    parser.add_argument("--into", metavar="VARIABLE")
    parser.add_argument("--limit", type=int, default=MOST_ROWS)
    words, rest = _options(line)
    found = parser.parse_args(words)
    if found.limit < 1 or found.limit > MOST_ROWS:
        raise InvalidStatementError(f"--limit is a number from 1 to {MOST_ROWS}.")
    found.statement = rest
    return found


def _options(line: str) -> tuple[Sequence[str], str]:
    """Split a line: options come first, in pairs; the rest is SQL as it was typed."""
    words: list[str] = []
    rest = line.strip()
    while option := _OPTION.match(rest):
        words += [option["name"], next(filter(None, option.group("double", "single", "word")), "")]
        rest = rest[option.end() :]
    return words, rest
