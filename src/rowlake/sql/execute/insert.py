"""INSERT: the query is Spark's, the matching of columns is here, the write is the table's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.conditions.store_assignment import (
    SourceColumn,
    StoreAssignment,
    TargetColumn,
    assigned,
)
from rowlake.conditions.target_columns import target_columns
from rowlake.dml.insert import append_rows, overwrite_rows
from rowlake.errors import InvalidStatementError, TableNotFoundError, UnsupportedFeatureError
from rowlake.query.lookup import TableLookup, setting
from rowlake.query.run import run_query
from rowlake.sqltext.edits import spliced
from rowlake.sqltext.lexer import Lexer, TokenKind, readable
from rowlake.sqltext.spark_types import type_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.engine.spark import Engine
    from rowlake.lake import Lake
    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result
    from rowlake.query.table_names import Target
    from rowlake.sql.statements import Insert

# Rows typed into a statement are few: they are fetched to the driver and written there.
_LOCAL_TEXT = 1 << 20


def insert(lake: Lake, statement: Insert, arguments: Any) -> Result | None:
    """Run INSERT INTO or OVERWRITE; None where the table is not the lake's."""
    lookup = TableLookup(lake.workspace)
    target = lookup.target(statement.name)
    if target is None:
        return None
    columns = target_columns(lake.engine, _writable(target, statement).schema)
    query = statement.with_clause + with_defaults(statement, columns)
    frame = run_query(lookup, query, arguments)
    frame = fitted(frame, columns, _assignment(lookup, statement, lookup.need(target.table)))
    rows = frame.toArrow() if _is_local(statement) else frame
    return _written(lake.engine, lookup, statement, target, rows, {})


def insert_frame(
    lake: Lake, statement: Insert, frame: Any, options: Mapping[str, Any], *, dynamic: bool = False
) -> Result:
    """Insert a DataFrame as a statement would its query; `dynamic` overwrites partitions hit.

    The table must be the lake's. `options` are those of every write.
    """
    lookup = TableLookup(lake.workspace)
    target = lookup.target(statement.name)
    if target is None:
        raise TableNotFoundError(readable(statement.name))
    columns = target_columns(lake.engine, _writable(target, statement).schema)
    handle = lookup.need(target.table)
    rows = fitted(frame, columns, _assignment(lookup, statement, handle))
    if dynamic:
        chosen = {**options, **_branch(target)}
        return overwrite_rows(handle, lake.engine, rows, chosen, dynamic=True)[1]
    return _written(lake.engine, lookup, statement, target, rows, options)


def _writable(target: Target, statement: Insert) -> Target:
    if not target.is_current:
        raise InvalidStatementError(
            f"Cannot write to {readable(statement.name)}: only tables and their branches are "
            f"written to."
        )
    return target


def _branch(target: Target) -> dict[str, Any]:
    return {"branch": target.branch} if target.branch else {}


def _written(
    engine: Engine,
    lookup: TableLookup,
    statement: Insert,
    target: Target,
    rows: Any,
    given: Mapping[str, Any],
) -> Result:
    handle, options = lookup.need(target.table), {**given, **_branch(target)}
    if statement.overwrite:
        return _overwrite(engine, handle, statement, rows, options)
    return append_rows(handle, engine, rows, options)[1]


def _is_local(statement: Insert) -> bool:
    first = Lexer(statement.query).token(0)
    return first.word == "VALUES" and len(statement.query) <= _LOCAL_TEXT


def _assignment(lookup: TableLookup, statement: Insert, handle: TableHandle) -> StoreAssignment:
    return StoreAssignment(
        handle.name,
        statement.columns,
        statement.by_name,
        {part.column: part.value for part in statement.partition if part.value is not None},
        lookup.names,
        setting(lookup.engine, "spark.sql.ansi.enabled", "true").lower() == "true",
    )


def fitted(frame: Any, columns: list[TargetColumn], how: StoreAssignment) -> Any:
    """Return a frame with the table's columns, as store assignment makes them."""
    fields = frame.schema.fields
    references = [f"__{index}" for index in range(len(fields))]
    source = [
        SourceColumn(field.name, type_text(field.dataType, field.name), reference)
        for field, reference in zip(fields, references, strict=True)
    ]
    return frame.toDF(*references).selectExpr(*assigned(source, columns, how))


def with_defaults(statement: Insert, columns: list[TargetColumn]) -> str:
    """Return the query with every DEFAULT that is a value of VALUES replaced."""
    query = statement.query
    if "default" not in query.lower():
        return query
    tokens = Lexer(query).all()
    if tokens[0].word != "VALUES":
        return query
    names = [name.lower() for name in statement.columns or ()]
    wanted = [c for c in columns if c.name.lower() in names] if names else columns
    wanted.sort(key=lambda column: names.index(column.name.lower()) if names else 0)
    edits, depth, position = [], 0, 0
    for index, token in enumerate(tokens):
        if token.kind is TokenKind.SYMBOL and token.text in "()":
            depth += 1 if token.text == "(" else -1
            position = 0 if depth == 1 and token.text == "(" else position
        elif token.text == "," and depth == 1:
            position += 1
        elif token.word == "DEFAULT" and depth == 1 and _is_whole(tokens, index):
            edits.append((token.start, token.end, _default_text(wanted, position)))
    return spliced(query, edits)


def _is_whole(tokens: list[Any], index: int) -> bool:
    return tokens[index - 1].text in ("(", ",") and tokens[index + 1].text in (")", ",")


def _default_text(columns: list[TargetColumn], position: int) -> str:
    column = columns[position] if position < len(columns) else None
    if column is None or column.default is None:
        return "NULL"
    return f"CAST({column.default} AS {column.type})"


def _overwrite(
    engine: Engine, handle: TableHandle, statement: Insert, rows: Any, options: dict[str, Any]
) -> Result:
    if statement.if_not_exists:
        raise UnsupportedFeatureError("INSERT OVERWRITE … IF NOT EXISTS is not supported.")
    if statement.where is not None:
        return overwrite_rows(handle, engine, rows, options, where=statement.where)[1]
    mode = setting(engine, "spark.sql.sources.partitionOverwriteMode", "static").lower()
    fixed = [part for part in statement.partition if part.value is not None]
    fields = [f for f in handle.view().spec.fields if f.transform != "void"]
    if mode == "dynamic" and len(fixed) < max(len(fields), 1):
        return overwrite_rows(handle, engine, rows, options, dynamic=True)[1]
    if not fixed:
        return overwrite_rows(handle, engine, rows, options)[1]
    where = " AND ".join(f"`{part.column}` <=> {part.value}" for part in fixed)
    return overwrite_rows(handle, engine, rows, options, where=where)[1]
