"""The `rowlake` command: its sub-commands and exit codes.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a conflict that can be retried, 4 unknown
outcome.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rowlake.cli import maintain, rows
from rowlake.cli.options import Catalog, Quiet, Shown, TableName, Warehouse, open_lake
from rowlake.cli.output import Output, rows_of, show
from rowlake.cli.quick import LOOKS, spare_pandas
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
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="A statement; '-' reads it from a pipe.")],
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
    quiet: Quiet = False,
) -> None:
    """Run a statement and show its rows."""
    text = sys.stdin.read() if statement == "-" else statement
    with open_lake(warehouse, catalog) as lake:
        lake.engine.progress = not quiet
        show(rows_of(lake, text), output)


@app.command()
def shell(warehouse: Warehouse = None, catalog: Catalog = None) -> None:
    """Start an interactive shell; end each statement with a semicolon."""
    from rowlake.cli.shell import run_shell

    with open_lake(warehouse, catalog) as lake:
        run_shell(lake)


@app.command()
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


@app.command()
def describe(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """Show a table's columns, layout and properties."""
    from rowlake.cli.views import description_of

    with open_lake(warehouse, catalog) as lake:
        show(description_of(lake.table(table)), output)


@app.command()
def history(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """Show what was done to a table, newest first."""
    from rowlake.cli.views import history_of

    with open_lake(warehouse, catalog) as lake:
        show(history_of(lake.table(table)), output)


@app.command()
def snapshots(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """List a table's snapshots."""
    from rowlake.cli.views import snapshots_of

    with open_lake(warehouse, catalog) as lake:
        show(snapshots_of(lake.table(table)), output)


@app.command()
def files(
    table: TableName,
    warehouse: Warehouse = None,
    catalog: Catalog = None,
    output: Shown = Output.TABLE,
) -> None:
    """List the files of a table's current snapshot."""
    from rowlake.cli.views import files_of

    with open_lake(warehouse, catalog) as lake:
        show(files_of(lake.table(table)), output)


@app.command()
def demo(
    warehouse: Annotated[
        str | None, typer.Option("--warehouse", help="Keep the demo's tables here.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1_000, help="How many sales.")] = 500_000,
) -> None:
    """Run a short tour: create a sales table, change it, travel in time."""
    from rowlake.cli.demo import run_demo

    run_demo(warehouse, rows)


rows.add_to(app)
maintain.add_to(app)


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
        print(f"rowlake: {printable_lines(str(error))}", file=sys.stderr)
        sys.exit(exit_code(error))
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # how Typer reports Ctrl-C
            text = "rowlake: stopped; uncommitted writes left their tables unchanged"
            print(text, file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
