"""An interactive shell: statements end with a semicolon; `exit` or end of input leaves it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rowlake.cli.output import Output, rows_of, show
from rowlake.errors import RowlakeError
from rowlake.model.printable import printable_lines
from rowlake.secrets import without_secrets
from rowlake.sqltext.statement_list import split_statements

if TYPE_CHECKING:
    from rowlake.lake import Lake

PROMPT, MORE = "rowlake> ", "      -> "
LEAVE = {"exit", "quit", "\\q"}


def run_shell(lake: Lake) -> None:
    """Read statements and run them until the user leaves; errors do not end the shell."""
    pending = ""
    while True:
        try:
            line = input(MORE if pending else PROMPT)
        except EOFError:
            print()
            if pending.strip():
                _run(lake, pending)
            return
        except KeyboardInterrupt:
            print()
            pending = ""
            continue
        if not pending and line.strip().rstrip(";").lower() in LEAVE:
            return
        pending = f"{pending}\n{line}" if pending else line
        if ";" not in pending:
            continue  # avoids rescanning a long statement for every line
        statements, pending = split_statements(pending)
        for statement in statements:
            _run(lake, statement)


def _run(lake: Lake, statement: str) -> None:
    try:
        show(rows_of(lake, statement), Output.TABLE)
    except RowlakeError as error:
        print(f"error: {printable_lines(str(error))}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    except Exception as error:  # noqa: BLE001 - Spark's own errors must not end the shell
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"error: {printable_lines(without_secrets(first))}", file=sys.stderr)
