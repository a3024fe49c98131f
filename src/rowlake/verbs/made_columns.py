"""Columns that a table makes: defaults, and generated columns that Spark computes or checks.

Comes in: rows as users gave them. Goes out: the same rows with the generated columns of the table,
and a view that has values for defaults of columns that the rows lack. A generated column that the
rows have must be what its expression gives (PROTOCOL.md, "Generated Columns"); a row that breaks
this is named in a SchemaMismatchError, and nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.conditions.pushed import columns_in
from rowlake.conditions.target_columns import target_columns
from rowlake.engine.failures import REFUSED_ROW
from rowlake.model.column_rules import generated_columns, identity_columns
from rowlake.sources.column_match import matched_frame, matched_names
from rowlake.sources.fit import fitted_frame
from rowlake.sources.plain_parquet import FileSource
from rowlake.sources.rows import ArrowSource, SparkSource, names_of
from rowlake.sqltext.lexer import quote, string_literal
from rowlake.sqltext.spark_types import type_text
from rowlake.verbs.default_values import with_default_values
from rowlake.verbs.identity_columns import missing_identities, numbered

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rowlake.conditions.store_assignment import TargetColumn
    from rowlake.engine.spark import Engine
    from rowlake.model.column_rules import Identity
    from rowlake.model.schema import Schema
    from rowlake.model.view import TableView
    from rowlake.sources.rows import Source

_WIDTHS = {"tinyint": 1, "smallint": 2, "int": 3, "bigint": 4}
_SHOWN = 200


@dataclass(frozen=True)
class MadeRows:
    """Rows with all columns that the table makes, and the view to write them by.

    `identities`: the identity columns that got values here, as they were before.
    """

    source: Source
    view: TableView
    identities: Mapping[str, Identity]


def with_made_columns(source: Source, view: TableView, engine: Engine) -> MadeRows:
    """Return rows with all generated columns and identity columns."""
    given = {name for name, _ in matched_names(names_of(source), view)}
    missing = missing_identities(view, given)
    source = numbered(source, missing, engine)
    view = with_default_values(view, engine, given)
    if not generated_columns(view.schema.arrow):
        return MadeRows(source, view, missing)
    frame = matched_frame(_frame(source, view, engine), view)
    return MadeRows(SparkSource(_generated(frame, view, engine)), view, missing)


def _frame(source: Source, view: TableView, engine: Engine) -> Any:
    if isinstance(source, SparkSource):
        return source.frame
    if isinstance(source, FileSource):
        return fitted_frame(source.frame, view.schema.arrow, engine)
    assert isinstance(source, ArrowSource)
    return engine.from_arrow(pa.Table.from_batches(list(source.batches), source.schema))


def _generated(frame: Any, view: TableView, engine: Engine) -> Any:
    """Return a frame with its own columns and the generated ones, in the table's order."""
    columns = {column.name: column for column in target_columns(engine, view.schema)}
    given = {one.name: type_text(one.dataType, one.name) for one in frame.schema.fields}
    texts = [
        f"{_widened(name, kind, columns[name])} AS {quote(name)}" for name, kind in given.items()
    ]
    made = generated_columns(view.schema.arrow)
    unseen = {*given, *made, *identity_columns(view.schema.arrow)}
    texts += [
        f"CAST({column.default or 'NULL'} AS {column.type}) AS {quote(name)}"
        for name, column in columns.items()
        if name not in unseen
    ]
    values = made_values(view.schema, columns, given)
    listed = [
        f"{values.get(name, quote(name))} AS {quote(name)}"
        for name in columns
        if name in given or name in made
    ]
    return frame.selectExpr(*texts).selectExpr(*listed)


def _widened(name: str, kind: str, column: TargetColumn) -> str:
    """Return a column in the table's type where that is wider: expressions compute in that."""
    is_wider = _WIDTHS.get(kind, 9) < _WIDTHS.get(column.type, 0)
    if is_wider or (kind, column.type) == ("float", "double"):
        return f"CAST({quote(name)} AS {column.type})"
    return quote(name)


def made_values(
    schema: Schema, columns: dict[str, TargetColumn], given: Collection[str]
) -> dict[str, str]:
    """Return the SQL texts of generated columns over the table's columns by their names.

    Those that are `given` are checked, the others computed.
    """
    return {
        name: _checked(schema, columns[name], text)
        if name in given
        else f"CAST(({text}) AS {columns[name].type})"
        for name, text in generated_columns(schema.arrow).items()
    }


def bases_of(text: str, schema: Schema) -> list[str]:
    """Return the columns that a generation expression may read."""
    made = generated_columns(schema.arrow)
    return [name for name in columns_in(text, schema) if name not in made]


def _checked(schema: Schema, column: TargetColumn, text: str) -> str:
    value = quote(column.name)
    shown = [quote(name) for name in (*bases_of(text, schema), column.name)]
    row = f"substr(to_json(struct({', '.join(shown)})), 1, {_SHOWN})"
    told = (
        f"{REFUSED_ROW}column {column.name} is generated as ({text}), and a row has another value: "
    )
    error = f"raise_error(concat({string_literal(told)}, {row}))"
    return (
        f"CASE WHEN {value} <=> CAST(({text}) AS {column.type}) THEN {value} "
        f"ELSE CAST({error} AS {column.type}) END"
    )
