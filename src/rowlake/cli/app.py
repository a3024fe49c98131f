"""The `rowlake` command: its sub-commands and exit codes.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a conflict that can be retried, 4 unknown
outcome.
"""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotation
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rowlake.cli import changes, maintain, rows
from rowlake.cli.cdc import cdc
from rowlake.cli.examples import EXAMPLES
from rowlake.cli.options import Catalog, Quiet, Shown, TableName, Warehouse, creates_lake, open_lake
from rowlake.cli.output import Output, rows_of, show
from rowlake.cli.quick import LOOKS, spare_pandas
from rowlake.cli.ui import ui
from rowlake.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidStatementError,
    RowlakeError,
)
from rowlake.model.printable import printable_lines
from rowlake.secrets import without_passwords

INTERRUPTED = 130
# Typer has no public name for the base class of usage errors.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


class Commands(TyperGroup):
    """The sub-commands; messages about wrong usage never show a password."""

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command that was asked for."""
        try:
            return super().invoke(ctx)
        except _UsageError as error:
            vars(error)["message"] = without_passwords(str(vars(error).get("message", "")))
            raise


app = typer.Typer(
    name="rowlake",
    cls=Commands,
    help="Row-level work on Iceberg tables: fast, safe and explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command(epilog=EXAMPLES["sql"])
def sql(
    statement: Annotated[
        str | None, typer.Argument(help="A statement; '-' reads it from a pipe.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Run the statements of a file, separated by semicolons."),
    ] = None,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Run a statement, or those of a file, and show their rows; the first error ends the run."""
    statements = _statements(statement, file)
    creates = any(map(creates_lake, statements))
    with open_lake(warehouse, catalog, creates=creates) as lake:
        lake.engine.progress = not quiet
        for text in statements:
            show(rows_of(lake, text), output)


def _statements(statement: str | None, file: Path | None) -> list[str]:
    if (statement is None) == (file is None):
        raise typer.BadParameter("give either a statement or --file")
    if file is None:
        return [sys.stdin.read() if statement == "-" else statement or ""]
    from rowlake.sqltext.statement_list import has_statement, split_statements

    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {file}: {error}") from error
    found, last = split_statements(text)
    return [*found, *([last] if has_statement(last) else [])]


@app.command(epilog=EXAMPLES["shell"])
def shell(warehouse: Warehouse = None, catalog: Catalog = None) -> None:
    """Start an interactive shell; end each statement with a semicolon."""
    from rowlake.cli.shell import run_shell

    with open_lake(warehouse, catalog, creates=True) as lake:
        run_shell(lake)


@app.command(epilog=EXAMPLES["tables"])
def tables(
    namespace: Annotated[str | None, typer.Argument(help="Only this namespace.")] = None,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """List tables."""
    from rowlake.cli.views import tables_of

    with open_lake(warehouse, catalog) as lake:
        show(tables_of(lake, namespace), output)


@app.command(epilog=EXAMPLES["describe"])
def describe(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """Show a table's columns, layout and properties."""
    from rowlake.cli.views import description_of, table_of

    with open_lake(warehouse, catalog, table=table) as lake:
        show(description_of(table_of(lake, table)), output)


@app.command(epilog=EXAMPLES["history"])
def history(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """Show what was done to a table, newest first."""
    from rowlake.cli.views import history_of, table_of

    with open_lake(warehouse, catalog, table=table) as lake:
        show(history_of(table_of(lake, table)), output)


@app.command(epilog=EXAMPLES["snapshots"])
def snapshots(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """List a table's snapshots."""
    from rowlake.cli.views import snapshots_of, table_of

    with open_lake(warehouse, catalog, table=table) as lake:
        show(snapshots_of(table_of(lake, table)), output)


@app.command(epilog=EXAMPLES["files"])
def files(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """List the files of a table's current snapshot."""
    from rowlake.cli.views import files_of, table_of

    with open_lake(warehouse, catalog, table=table) as lake:
        show(files_of(table_of(lake, table)), output)


@app.command(epilog=EXAMPLES["demo"])
def demo(
    warehouse: Annotated[
        str | None, typer.Option("--warehouse", help="Keep the demo's tables here.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1_000, help="How many sales.")] = 500_000,
) -> None:
    """Run a short tour: create a sales table, change it, travel in time."""
    from rowlake.cli.demo import run_demo

    run_demo(warehouse, rows)


@app.command(epilog=EXAMPLES["doctor"])
def doctor(warehouse: Warehouse = None, output: Shown = Output.TABLE) -> None:
    """Check what rowlake needs (Java, packages, storage), and say how to mend what is missing."""
    from rowlake.cli.doctor import as_rows, examine, worst

    checks = examine(warehouse)
    show(as_rows(checks), output)
    raise typer.Exit(worst(checks))


rows.add_to(app)
maintain.add_to(app)
changes.add_to(app)
app.command()(cdc)
app.command(epilog=EXAMPLES["ui"])(ui)


def exit_code(error: RowlakeError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, CommitConflictError):
        return 3
    if isinstance(error, CommitStateUnknownError):
        return 4
    return 2 if isinstance(error, InvalidStatementError) else 1


def main() -> None:
    """Run the command line; rowlake's errors become one line and an exit code."""
    if not LOOKS.isdisjoint(sys.argv[1:2]):
        spare_pandas()
    try:
        app()
    except RowlakeError as error:
        _end(error)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # how Typer reports Ctrl-C
            text = "rowlake: stopped; uncommitted writes left their tables unchanged"
            print(text, file=sys.stderr)
        raise
    except Exception as error:
        from rowlake.query.refusals import plain_error

        found = plain_error(error)  # of a query, which runs as its rows are shown
        if found is None:
            raise
        _end(found)


def _end(error: RowlakeError) -> None:
    print(f"rowlake: {printable_lines(str(error))}", file=sys.stderr)
    sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
