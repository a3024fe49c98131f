"""Commands that change rows: delete, update, merge, upsert, and explain.

Each command is one commit and shows its `Result`; conditions and values are SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowlake.cli import options as o
from rowlake.cli.examples import EXAMPLES
from rowlake.cli.output import Output, show, show_plan, show_result

if TYPE_CHECKING:
    from rowlake.dml.operations import Delete, Update
    from rowlake.lake import Lake

Where = Annotated[str | None, typer.Option("--where", help="Only rows that match this condition.")]
Keys = Annotated[
    str | None, typer.Option("--keys", metavar="A,B", help="The columns that rows match on.")
]
Clauses = list[str] | None
_USING = "A file of Parquet, CSV, JSON or ORC, a query, or a table."
_MATCHED = (
    "For rows that match: update-all, delete, or what follows WHEN MATCHED in SQL, such as "
    '"UPDATE SET a = s.a" or "AND s.gone THEN DELETE". Can be repeated; the first that '
    "applies wins."
)
_NOT_MATCHED = "For source rows without a match: insert-all, or an SQL clause."
_BY_SOURCE = "For target rows that no source row matches: delete, or an SQL clause."


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (delete, update, merge, upsert, explain):
        app.command(epilog=EXAMPLES.get(command.__name__))(command)


def delete(
    table: o.TableName,
    where: Annotated[str, typer.Option("--where", help="SQL condition that selects the rows.")],
    branch: o.Branch = None,
    mode: o.Mode = None,
    deletes: o.Deletes = None,
    isolation: o.Isolation = None,
    properties: o.Properties = None,
    explained: o.Explained = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
) -> None:
    """Delete the rows that match a condition."""
    from rowlake.cli.requests import deletion, write_options

    given = write_options(branch, mode, deletes, isolation, properties)
    with o.open_lake(warehouse, catalog) as lake:
        lake.engine.progress = not quiet
        _change(lake, deletion(table, where), given, explained, output)


def update(
    table: o.TableName,
    assignments: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN = VALUE", help="An SQL assignment; can be repeated."),
    ],
    where: Where = None,
    branch: o.Branch = None,
    mode: o.Mode = None,
    deletes: o.Deletes = None,
    isolation: o.Isolation = None,
    properties: o.Properties = None,
    explained: o.Explained = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
) -> None:
    """Set columns in the rows that match a condition, or in all rows."""
    from rowlake.cli.requests import updating, write_options

    given = write_options(branch, mode, deletes, isolation, properties)
    statement = updating(table, assignments, where)
    with o.open_lake(warehouse, catalog) as lake:
        lake.engine.progress = not quiet
        _change(lake, statement, given, explained, output)


def merge(
    table: o.TableName,
    using: Annotated[str, typer.Option("--using", metavar="SOURCE", help=_USING)],
    on: Annotated[str | None, typer.Option("--on", help="Match condition: 't.id = s.id'.")] = None,
    keys: Keys = None,
    when_matched: Annotated[Clauses, typer.Option(metavar="ACTION", help=_MATCHED)] = None,
    when_not_matched: Annotated[Clauses, typer.Option(metavar="ACTION", help=_NOT_MATCHED)] = None,
    when_not_matched_by_source: Annotated[
        Clauses, typer.Option(metavar="ACTION", help=_BY_SOURCE)
    ] = None,
    schema_evolution: Annotated[
        bool, typer.Option("--schema-evolution", help="Add columns that only the source has.")
    ] = False,
    branch: o.Branch = None,
    mode: o.Mode = None,
    deletes: o.Deletes = None,
    isolation: o.Isolation = None,
    properties: o.Properties = None,
    explained: o.Explained = False,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
) -> None:
    """Merge a source into a table; in conditions and values the table is t, the source is s."""
    from rowlake.cli.requests import clauses_of, match_on, merging, source_from, write_options

    given = write_options(branch, mode, deletes, isolation, properties)
    clauses = clauses_of(when_matched, when_not_matched, when_not_matched_by_source)
    matching = match_on(on, keys)
    with o.open_lake(warehouse, catalog) as lake:
        lake.engine.progress = not quiet
        started = lake.table(table).merge(source_from(lake, using), matching, **given)
        builder = merging(started, clauses, schema_evolution=schema_evolution)
        if explained:
            show_plan(builder.explain(), output)
        else:
            show_result(builder.execute(), output)


def upsert(
    table: o.TableName,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=_USING)],
    keys: Keys = None,
    on_duplicates: Annotated[
        str | None,
        typer.Option("--on-duplicates", help="Duplicate keys: error, or 'latest by COLUMN'."),
    ] = None,
    if_exists: Annotated[
        str | None, typer.Option("--if-exists", help="Existing keys: update or reject.")
    ] = None,
    branch: o.Branch = None,
    mode: o.Mode = None,
    deletes: o.Deletes = None,
    isolation: o.Isolation = None,
    properties: o.Properties = None,
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
    quiet: o.Quiet = False,
) -> None:
    """Update rows by key and insert those that are new; keys default to the identifier fields."""
    from rowlake.cli.requests import columns_in, source_from, write_options

    given = write_options(branch, mode, deletes, isolation, properties)
    choices = {"on_duplicates": on_duplicates, "if_exists": if_exists}
    given |= {name: choice for name, choice in choices.items() if choice is not None}
    columns = None if keys is None else columns_in(keys)
    with o.open_lake(warehouse, catalog) as lake:
        lake.engine.progress = not quiet
        target: Any = lake.table(table)
        show_result(target.upsert(source_from(lake, source), keys=columns, **given), output)


def explain(
    statement: Annotated[str, typer.Argument(help="DELETE, UPDATE, MERGE or a query.")],
    warehouse: o.Warehouse = None,
    catalog: o.Catalog = None,
    output: o.Shown = Output.TABLE,
) -> None:
    """Show what a statement would do; nothing is written."""
    from rowlake.cli.requests import explained
    from rowlake.sql.execute.statement import plan_of

    text = explained(statement)
    with o.open_lake(warehouse, catalog) as lake:
        plan = plan_of(lake, text) if output is Output.JSON else None
        if plan is not None:
            show_plan(plan, output)
            return
        found = lake.sql(text).toArrow()
        if output is Output.TABLE:
            show_plan("\n".join(map(str, found.column(0).to_pylist())), output)
        else:
            show(found, output)


def _change(
    lake: Lake,
    statement: Delete | Update,
    given: dict[str, Any],
    explained: bool,
    output: Output,
) -> None:
    from rowlake.dml.change import change_rows, explain_rows
    from rowlake.query.lookup import TableLookup

    lookup = TableLookup(lake.workspace)
    if explained:
        show_plan(explain_rows(lookup, statement, **given), output)
    else:
        show_result(change_rows(lookup, statement, **given)[1], output)
