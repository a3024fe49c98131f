"""`lake.sql`: a statement is parsed, run on the lake or by Spark, and gives a DataFrame.

What is not about lake tables goes to Spark as it is written. Statements that change metadata or
rows have run when this returns; queries are lazy, as Spark's are.
"""

from __future__ import annotations

from functools import partial
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
from rowlake.model.names import DEFAULT_NAMESPACE
from rowlake.model.partition import PartitionBy
from rowlake.model.properties import FILE_FORMAT
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import plain_error, run_plainly
from rowlake.query.run import run_query
from rowlake.sql import statements as s
from rowlake.sql.alter_statements import AlterTable
from rowlake.sql.execute import cached, delta, detail, show, views
from rowlake.sql.execute.alter import alter_table
from rowlake.sql.execute.defaults import defaults_of
from rowlake.sql.execute.foreign import refuse_foreign
from rowlake.sql.execute.generated import validate_generated
from rowlake.sql.execute.insert import insert
from rowlake.sql.execute.maintain import (
    analyze,
    create_index,
    drop_index,
    optimize,
    reorg,
    vacuum,
)
from rowlake.sql.parse.statement import parse
from rowlake.sql.procedures.call import call, is_foreign
from rowlake.sql.tables import need_table, new_name
from rowlake.sqltext.first_words import validate_first_word
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
    with run_plainly(lake.workspace, statement):
        return _executed(lake, statement, args)


def _executed(lake: Lake, statement: str, args: Any) -> Any:
    if isinstance(statement, str):
        statement = with_identifiers(statement, args)
    parsed = _parsed(statement)
    if isinstance(parsed, (s.Query, s.Passthrough)):
        found = run_query(TableLookup(lake.workspace), statement, args)
        return lake.engine.raising_plainly(found, partial(plain_error, text=statement))
    if type(parsed) in _WITH_TEXT:
        _WITH_TEXT[type(parsed)](lake, parsed, statement, args)
        return nothing(lake)
    if isinstance(parsed, s.Insert):
        return _inserted(lake, parsed, statement, args)
    if isinstance(parsed, s.CreateTable):
        return _create_table(lake, parsed, args)
    if isinstance(parsed, (Delete, Update, Merge, Explain)):
        return _row_level(lake, parsed, statement, args)
    if type(parsed) in _OF_TABLES:
        return _of_table(lake, parsed, statement, args)
    if isinstance(parsed, s.Call) and is_foreign(lake, parsed):
        return run_query(TableLookup(lake.workspace), statement, args)
    handler = _HANDLERS.get(type(parsed))
    if handler is None:
        raise UnsupportedFeatureError(f"{type(parsed).__name__} is not there yet.")
    found = handler(lake, parsed)
    return nothing(lake) if found is None else lake.engine.from_arrow(found)


def _parsed(statement: str) -> Any:
    """Return what a statement asks for; what no statement begins with is refused without Spark."""
    parsed = parse(statement)
    if isinstance(parsed, s.Passthrough):
        validate_first_word(statement)
    return parsed


def _of_table(lake: Lake, parsed: Any, text: str, args: Any) -> Any:
    """Run a statement on one table, which is looked up once; Spark's tables are left to Spark."""
    lookup = TableLookup(lake.workspace)
    view = lookup.view(parsed.name)
    if view is not None and view.shown is None:
        return lake.engine.from_arrow(views.describe_view(lookup, parsed))
    if _is_foreign(lookup, parsed.name):
        return run_query(lookup, text, args)
    if isinstance(parsed, s.DropTable) and parsed.if_exists and lookup.stored(parsed.name) is None:
        return nothing(lake)
    found = _OF_TABLES[type(parsed)](lake, parsed, need_table(lake, parsed.name, lookup))
    return nothing(lake) if found is None else lake.engine.from_arrow(found)


def nothing(lake: Lake) -> Any:
    """Return a DataFrame without rows and columns, as Spark's commands do."""
    return lake.engine.from_arrow(pa.table({}))


def _is_foreign(lookup: TableLookup, name: Name) -> bool:
    """Return True where a table is Spark's and not the lake's."""
    if lookup.target(name) is not None:
        return False
    if len(name) > 2:
        return False
    return bool(lookup.workspace.spark.catalog.tableExists(".".join(f"`{part}`" for part in name)))


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
    refuse_foreign(lookup, changed)
    named, args = with_named_arguments(text, args)
    again = parsed if named == text else parse(named)
    parsed = again if isinstance(again, (Delete, Update, Merge, Explain)) else parsed
    if isinstance(parsed, Explain):
        shown = [str(explain_rows(lookup, parsed.statement, args))]
        if parsed.analyze:
            shown.append(str(change_rows(lookup, parsed.statement, args)[1]))
        return lake.engine.from_arrow(pa.table({"plan": ["\n\n".join(shown)]}))
    _, result = change_rows(lookup, parsed, args)
    return counts(lake, result)


def plan_of(lake: Lake, statement: str) -> Plan | None:
    """Return what EXPLAIN says of a row-level statement; None where it is one for Spark."""
    parsed = parse(with_identifiers(statement, None))
    lookup = TableLookup(lake.workspace)
    if not isinstance(parsed, Explain) or parsed.analyze:
        return None
    refuse_foreign(lookup, parsed.statement)
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
        cluster_by=layout.cluster_by,
        properties=layout.properties,
        location=layout.location,
        comment=layout.comment,
        format=layout.format,
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
        schema=schema_json(columns, _checked_rules(lake, columns)),
        partition_by=tuple(
            PartitionBy(t.column, t.transform, t.name) for t in statement.partition_by
        ),
        cluster_by=statement.cluster_by,
        properties=statement.properties,
        location=statement.location,
        comment=statement.comment,
        format=statement.format,
    )


def _checked_rules(lake: Lake, columns: tuple[Field, ...]) -> dict[Name, Any]:
    """Return the values of defaults, after all expressions of columns were tried by Spark."""
    validate_generated(lake, columns)
    return defaults_of(lake, columns)


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
        given = {} if statement.file_format is None else {FILE_FORMAT: statement.file_format}
        like = s.CreateTable(
            statement.name,
            parsed.columns,
            parsed.partition_by,
            {**parsed.properties, **given},
            comment=parsed.comment,
            if_not_exists=statement.if_not_exists,
            cluster_by=parsed.cluster_by,
        )
        _made(lake, like, like.columns or ())


def _comment_on(lake: Lake, statement: s.CommentOn) -> None:
    if statement.of_namespace:
        name = show.namespace_of(lake, statement.name)
        catalog_tables.ensure_default(lake.catalog, name)
        given = {} if statement.comment is None else {"comment": statement.comment}
        removed = {"comment"} if statement.comment is None else None
        lake.catalog.update_namespace_properties(name, removals=removed, updates=given)
        return
    table = need_table(lake, statement.name)
    if statement.comment is not None:
        table.set_properties({"comment": statement.comment})
    elif "comment" in table.properties:
        table.unset_properties(["comment"])


def _drop_table(lake: Lake, statement: s.DropTable, table: Table) -> None:
    lake.drop_table(table.identifier, purge=statement.purge)


def _truncate(_lake: Lake, _statement: s.Truncate, table: Table) -> None:
    table.truncate()


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
    catalog_tables.ensure_default(lake.catalog, name)
    lake.catalog.update_namespace_properties(name, updates=dict(statement.properties))


def _use(lake: Lake, statement: s.Use) -> None:
    name = statement.name
    if len(name) == 1 and name[0].lower() == str(lake.catalog.name).lower():
        lake.workspace.session.namespace = DEFAULT_NAMESPACE
        return
    name = show.namespace_of(lake, name)
    if not catalog_tables.namespace_exists(lake.catalog, name):
        raise TableNotFoundError(readable(name), kind="namespace")
    lake.workspace.session.namespace = name


_OF_TABLES: dict[type, Callable[[Any, Any, Any], pa.Table | None]] = {
    AlterTable: alter_table,
    s.AnalyzeTable: analyze,
    s.CreateIndex: create_index,
    s.DropIndex: drop_index,
    s.DescribeTable: show.describe_table,
    s.DropTable: _drop_table,
    s.Optimize: optimize,
    s.Generate: delta.generate,
    s.Reorg: reorg,
    s.Restore: delta.restore,
    s.ShowColumns: show.show_columns,
    s.ShowCreateTable: show.show_create_table,
    s.ShowPartitions: show.show_partitions,
    s.ShowProperties: show.show_properties,
    s.Truncate: _truncate,
    s.Vacuum: vacuum,
}
_WITH_TEXT: dict[type, Callable[[Any, Any, str, Any], None]] = {
    s.AlterView: views.alter_view,
    s.CacheTable: cached.cache_table,
    s.ClearCache: cached.clear_cache,
    s.CreateTempView: views.create_temp_view,
    s.CreateView: views.create_view,
    s.DropView: views.drop_view,
    s.RefreshTable: cached.refresh_table,
    s.RenameView: views.rename_view,
    s.UncacheTable: cached.uncache_table,
}
_HANDLERS: dict[type, Callable[[Any, Any], pa.Table | None]] = {
    s.AlterNamespace: _alter_namespace,
    s.Call: call,
    s.CloneTable: delta.clone,
    s.CommentOn: _comment_on,
    s.ConvertToDelta: delta.convert,
    s.CreateNamespace: _create_namespace,
    s.CreateTableLike: _create_like,
    s.DescribeHistory: show.describe_history,
    s.DescribeDetail: detail.describe_detail,
    s.DescribeNamespace: show.describe_namespace,
    s.DropNamespace: _drop_namespace,
    s.ShowCurrentNamespace: show.show_current_namespace,
    s.ShowNamespaces: show.show_namespaces,
    s.ShowTables: show.show_tables,
    s.ShowViews: views.show_views,
    s.Use: _use,
}
