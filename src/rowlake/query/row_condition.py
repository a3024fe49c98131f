"""Read a condition on the rows of one table: for DELETE, `Table.df`, overwrites and maintenance.

Comes in: the text of a condition. Goes out: the part of it that is a predicate, or the rows that
Spark finds for it. Names are compared, and times without a zone understood, as the session does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rowlake.conditions.column_lookup import no_such_column
from rowlake.conditions.pushed import pushed_condition, unknown_columns
from rowlake.conditions.qualified import requalified
from rowlake.errors import InvalidStatementError
from rowlake.prune.bind import bind
from rowlake.query.lookup import names_of, names_without_spark
from rowlake.query.run import run_query
from rowlake.sqltext.lexer import Lexer, quote, quote_parts
from rowlake.verbs.read import projection_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.conditions.reader import Pushed
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.schema import Schema
    from rowlake.query.lookup import TableLookup
    from rowlake.sqltext.names import Name, NameRules


@dataclass(frozen=True)
class RowCondition:
    """The text of a condition on a table with this schema.

    Columns may be qualified by `visible`, the table's alias or last name, and by the names in
    `written`.
    """

    text: str
    schema: Schema
    visible: str
    written: tuple[Name, ...] = ()

    def short(self, names: NameRules) -> str:
        """Return the text in which columns that a full name qualifies go by the short one."""
        text = self.text
        for name in self.written:
            text = requalified(text, name, self.visible, names)
        return text


def pushed_rows(engine: Engine, condition: RowCondition) -> Pushed:
    """Return what a condition says as a predicate.

    Spark is started only for a time without a zone, which needs the session's.
    """
    names = names_without_spark(engine)
    found = _pushed(condition, names)
    if found.exact or names.zone is not None:
        return found
    needs_zone = _pushed(condition, replace(names, zone="UTC")).exact
    return _pushed(condition, names_of(engine)) if needs_zone else found


def _pushed(condition: RowCondition, names: NameRules) -> Pushed:
    return pushed_condition(
        condition.short(names),
        condition.schema,
        zone=names.zone,
        case_sensitive=names.case_sensitive,
        qualifier=condition.visible,
    )


def whole_condition(
    engine: Engine,
    handle: TableHandle,
    schema: Schema,
    where: str | Predicate,
    verb: str,
    advice: str = "",
) -> Predicate:
    """Return a bound predicate that says all that a condition says, for verbs that choose files.

    Raises InvalidStatementError for any other condition; `verb` ("erase rows of") and
    `advice` are for its text.
    """
    if not isinstance(where, str):
        return bind(where, schema)
    name = tuple(handle.identifier)
    condition = RowCondition(where, schema, name[-1], (name,))
    pushed = pushed_rows(engine, condition)
    if pushed.exact:
        return bind(pushed.predicate, schema)
    names = names_without_spark(engine)
    for path in unknown_columns(condition.short(names), schema, names, condition.visible):
        raise no_such_column(path, schema.arrow.names, where)
    raise InvalidStatementError(
        f"Cannot {verb} {handle.name} where {where}: the filter must compare columns with "
        f"literals.{advice}"
    )


def rows_where(
    lookup: TableLookup,
    name: Name,
    condition: RowCondition,
    listed: Sequence[str],
    arguments: Any = None,
    *,
    with_clause: str = "",
) -> Any:
    """Return a DataFrame of the rows that Spark finds; `listed` are the texts to select.

    `name` is the table as the query names it, at a branch or snapshot too; subqueries of the
    condition may read other tables of the lake.
    """
    where = condition.short(names_without_spark(lookup.engine))
    has_query = any(token.word == "SELECT" for token in Lexer(where).all())
    return run_query(
        lookup,
        f"{with_clause}SELECT {', '.join(listed)} FROM {quote_parts(name)} "
        f"AS {quote(condition.visible)} WHERE {where}",
        arguments,
        columns=() if has_query else condition.schema.arrow.names,
    )


def frame_where(
    lookup: TableLookup,
    handle: TableHandle,
    where: str,
    columns: Sequence[str] | None = None,
    **at: Any,
) -> Any:
    """Return a DataFrame of the rows of a table for which a condition is TRUE.

    `columns` and `at` (`snapshot_id`, `as_of_ms`, `ref`) are those of `verbs.read.Request`.
    """
    view = handle.view(**at)
    name = _name_at(lookup, handle, view.snapshot_id, at)
    identifier = tuple(handle.identifier)
    condition = RowCondition(where, view.schema, identifier[-1], (identifier,))
    listed = [quote(column) for column in projection_of(view, columns).arrow.names]
    found = rows_where(lookup, name, condition, listed or ["TRUE"])
    return found if listed else found.select()


def _name_at(
    lookup: TableLookup, handle: TableHandle, snapshot_id: int | None, at: Mapping[str, Any]
) -> Name:
    """Return the name by which a query reads a table at a ref or snapshot."""
    name, ref = tuple(handle.identifier), at.get("ref")
    if ref is not None and ref in handle.refs:
        kind = "tag" if handle.refs[ref].is_tag else "branch"
        return lookup.selected(name, f"{kind}_{ref}")
    if at.get("snapshot_id") is None and at.get("as_of_ms") is None:
        return name
    return lookup.selected(name, f"snapshot_id_{snapshot_id}")
