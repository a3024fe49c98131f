"""`lake.sql`: a statement is parsed, run on the lake or by Spark, and gives a DataFrame.

What is not about lake tables goes to Spark as it is written. Statements that change metadata or
rows have run when this returns; queries are lazy, as Spark's are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.catalog import tables as catalog_tables
from rowlake.dml.change import change_rows, explain_rows
from rowlake.dml.operations import Delete, Explain, Merge, Update
from rowlake.errors import (
    InvalidStatementError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.model.metadata_change import TableDefinition
from rowlake.model.partition import PartitionBy
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import refusing_too_complex
from rowlake.query.run import run_query
from rowlake.sql import statements as s
from rowlake.sql.alter_statements import AlterTable
from rowlake.sql.execute import show as show
from rowlake.sql.execute.alter import alter_table
from rowlake.sql.execute.defaults import defaults_of
from rowlake.sql.execute.insert import insert
from rowlake.sql.execute.maintain import optimize, vacuum
from rowlake.sql.parse.statement import parse
from rowlake.sql.procedures.call import call, is_foreign
from rowlake.sql.tables import find_table, need_table, new_name
from rowlake.sqltext.identifiers import with_identifiers
from rowlake.sqltext.lexer import readable
from rowlake.sqltext.parameters import with_named_arguments
from rowlake.sqltext.schema_json import schema_json
from rowlake.sqltext.spark_types import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.model.plan import Plan
    from rowlake.model.result import Result
    from rowlake.sqltext.names import Name
    from rowlake.sqltext.types import Field
    from rowlake.table import Table


def execute(lake: Lake, statement: str, args: Any = None) -> Any:
    """Run one statement; return a DataFrame (without columns where there is nothing to say)."""
    with refusing_too_complex():
        return _executed(lake, statement, args)


def _executed(lake: Lake, statement: str, args: Any) -> Any:
    if isinstance(statement, str):
        statement = with_identifiers(statement, args)
    parsed = parse(statement)
    if isinstance(parsed, (s.Query, s.Passthrough)):
        return run_query(TableLookup(lake.workspace), statement, args)
    if isinstance(parsed, s.CreateTempView):
        return _create_view(lake, parsed, args)
    if isinstance(parsed, s.Insert):
        return _inserted(lake, parsed, statement, args)
    if isinstance(parsed, s.CreateTable):
        return _create_table(lake, parsed, args)
    if isinstance(parsed, (Delete, Update, Merge, Explain)):
        return _row_level(lake, parsed, statement, args)
    name = getattr(parsed, "name", None)
    if isinstance(parsed, _OF_TABLES) and name and _is_foreign(TableLookup(lake.workspace), name):
        return run_query(TableLookup(lake.workspace), statement, args)
    if isinstance(parsed, s.Call) and is_foreign(lake, parsed):
        return run_query(TableLookup(lake.workspace), statement, args)
    handler = _HANDLERS.get(type(parsed))
    if handler is None:
        raise UnsupportedFeatureError(f"{type(parsed).__name__} is not there yet.")
    found = handler(lake, parsed)
    return nothing(lake) if found is None else lake.engine.from_arrow(found)


_OF_TABLES = (
    AlterTable,
    s.DropTable,
    s.ShowCreateTable,
    s.ShowProperties,
    s.ShowColumns,
    s.ShowPartitions,
    s.DescribeTable,
    s.Truncate,
    s.Optimize,
    s.Vacuum,
)


def nothing(lake: Lake) -> Any:
    """Return a DataFrame without rows and columns, as Spark's commands do."""
    return lake.spark.range(0).select()


def _is_foreign(lookup: TableLookup, name: Name) -> bool:
    """Return True where a table is Spark's and not the lake's."""
    if lookup.target(name) is not None:
        return False
    if len(name) > 2:
        return False
    return bool(lookup.workspace.spark.catalog.tableExists(".".join(f"`{part}`" for part in name)))


def _create_view(lake: Lake, statement: s.CreateTempView, args: Any) -> Any:
    frame = run_query(TableLookup(lake.workspace), statement.query, args)
    if statement.columns:
        frame = frame.toDF(*statement.columns)
    kind = "GlobalTempView" if statement.is_global else "TempView"
    verb = "createOrReplace" if statement.replace else "create"
    getattr(frame, verb + kind)(statement.name[-1])
    return nothing(lake)


def _inserted(lake: Lake, statement: s.Insert, text: str, args: Any) -> Any:
    result = insert(lake, statement, args)
    if result is not None:
        return counts(lake, result)
    lookup = TableLookup(lake.workspace)
    if len(statement.name) > 1 and not _is_foreign(lookup, statement.name):
        raise TableNotFoundError(readable(statement.name))
    return run_query(lookup, text, args)


def _row_level(lake: Lake, parsed: Delete | Update | Merge | Explain, text: str, args: Any) -> Any:
    changed = parsed.statement if isinstance(parsed, Explain) else parsed
    lookup = TableLookup(lake.workspace)
    if _is_foreign(lookup, changed.name):
        return run_query(lookup, text, args)
    named, args = with_named_arguments(text, args)
    again = parsed if named == text else parse(named)
    parsed = again if isinstance(again, (Delete, Update, Merge, Explain)) else parsed
    if isinstance(parsed, Explain):
        plan = explain_rows(lookup, parsed.statement, args)
        return lake.engine.from_arrow(pa.table({"plan": [str(plan)]}))
    _, result = change_rows(lookup, parsed, args)
    return counts(lake, result)


def plan_of(lake: Lake, statement: str) -> Plan | None:
    """Return what EXPLAIN says of a row-level statement; None where it is one for Spark."""
    parsed = parse(with_identifiers(statement, None))
    lookup = TableLookup(lake.workspace)
    if not isinstance(parsed, Explain) or _is_foreign(lookup, parsed.statement.name):
        return None
    return explain_rows(lookup, parsed.statement)


def counts(lake: Lake, result: Result) -> Any:
    """Return what a write did as one row."""
    affected = result.rows_updated + result.rows_deleted + result.rows_inserted
    row = {
        "num_affected_rows": affected,
        "num_updated_rows": result.rows_updated,
        "num_deleted_rows": result.rows_deleted,
        "num_inserted_rows": result.rows_inserted,
    }
    return lake.engine.from_arrow(
        pa.table({name: pa.array([value], pa.int64()) for name, value in row.items()})
    )


# --- tables


def _create_table(lake: Lake, statement: s.CreateTable, args: Any) -> Any:
    if statement.query is not None:
        return _create_table_as(lake, statement, args)
    if statement.columns is None:
        raise InvalidStatementError(
            f"CREATE TABLE {readable(statement.name)} has neither columns nor a query."
        )
    _made(lake, statement, statement.columns)
    return nothing(lake)


def _made(lake: Lake, statement: s.CreateTable, columns: tuple[Field, ...]) -> Table:
    name = _target_name(lake, statement)
    layout = _layout(lake, statement, columns)
    return lake.create_table(
        name,
        layout.schema,
        partition_by=layout.partition_by,
        properties=layout.properties,
        location=layout.location,
        comment=layout.comment,
        if_not_exists=statement.if_not_exists,
        replace=statement.mode != "create",
    )


def _target_name(lake: Lake, statement: s.CreateTable) -> Name:
    name = new_name(lake, statement.name)
    if statement.mode == "replace" and not lake.exists(name):
        raise TableNotFoundError(readable(name))
    return name


def _layout(lake: Lake, statement: s.CreateTable, columns: tuple[Field, ...]) -> TableDefinition:
    return TableDefinition(
        schema=schema_json(columns, defaults_of(lake, columns)),
        partition_by=tuple(
            PartitionBy(t.column, t.transform, t.name) for t in statement.partition_by
        ),
        properties=statement.properties,
        location=statement.location,
        comment=statement.comment,
    )


def _create_table_as(lake: Lake, statement: s.CreateTable, args: Any) -> Any:
    name = _target_name(lake, statement)
    if statement.if_not_exists and lake.exists(name):
        return nothing(lake)
    if statement.columns is not None:
        raise InvalidStatementError("CREATE TABLE … AS takes its columns from the query alone.")
    frame = run_query(TableLookup(lake.workspace), statement.query or "", args)
    layout = _layout(lake, statement, columns_of(frame.schema.jsonValue()))
    replace = statement.mode != "create"
    return counts(lake, lake.create_table_as(name, frame, layout, replace=replace))


def _create_like(lake: Lake, statement: s.CreateTableLike) -> None:
    source = need_table(lake, statement.source)
    text = show.create_text(source)
    parsed = parse(text)
    if isinstance(parsed, s.CreateTable):
        like = s.CreateTable(
            statement.name,
            parsed.columns,
            parsed.partition_by,
            parsed.properties,
            comment=parsed.comment,
            if_not_exists=statement.if_not_exists,
        )
        _made(lake, like, like.columns or ())


def _drop_table(lake: Lake, statement: s.DropTable) -> None:
    table = find_table(lake, statement.name)
    if table is not None:
        lake.drop_table(table.handle.identifier, purge=statement.purge)
    elif not statement.if_exists:
        need_table(lake, statement.name)


def _truncate(lake: Lake, statement: s.Truncate) -> None:
    need_table(lake, statement.name).truncate()


# --- namespaces


def _create_namespace(lake: Lake, statement: s.CreateNamespace) -> None:
    properties = dict(statement.properties)
    if statement.comment is not None:
        properties["comment"] = statement.comment
    if statement.location is not None:
        properties["location"] = statement.location
    name = show.namespace_of(lake, statement.name)
    lake.create_namespace(name, properties, if_not_exists=statement.if_not_exists)


def _drop_namespace(lake: Lake, statement: s.DropNamespace) -> None:
    name = show.namespace_of(lake, statement.name)
    if statement.cascade and catalog_tables.namespace_exists(lake.catalog, name):
        for table in catalog_tables.list_tables(lake.catalog, name):
            lake.drop_table(table)
    lake.drop_namespace(name, if_exists=statement.if_exists)


def _alter_namespace(lake: Lake, statement: s.AlterNamespace) -> None:
    name = show.namespace_of(lake, statement.name)
    lake.catalog.update_namespace_properties(name, updates=dict(statement.properties))


def _use(lake: Lake, statement: s.Use) -> None:
    name = statement.name
    if len(name) == 1 and name[0].lower() == str(lake.catalog.name).lower():
        lake.workspace.session.namespace = ()
        return
    name = show.namespace_of(lake, name)
    if not catalog_tables.namespace_exists(lake.catalog, name):
        raise TableNotFoundError(readable(name), kind="namespace")
    lake.workspace.session.namespace = name


_HANDLERS: dict[type, Callable[[Any, Any], pa.Table | None]] = {
    AlterTable: alter_table,
    s.AlterNamespace: _alter_namespace,
    s.Call: call,
    s.CreateNamespace: _create_namespace,
    s.CreateTableLike: _create_like,
    s.DescribeHistory: show.describe_history,
    s.DescribeNamespace: show.describe_namespace,
    s.DescribeTable: show.describe_table,
    s.DropNamespace: _drop_namespace,
    s.DropTable: _drop_table,
    s.Optimize: optimize,
    s.ShowColumns: show.show_columns,
    s.ShowCreateTable: show.show_create_table,
    s.ShowNamespaces: show.show_namespaces,
    s.ShowPartitions: show.show_partitions,
    s.ShowProperties: show.show_properties,
    s.ShowTables: show.show_tables,
    s.Truncate: _truncate,
    s.Use: _use,
    s.Vacuum: vacuum,
}
