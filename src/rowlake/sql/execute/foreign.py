"""Refuse row-level statements on what is not a table of the lake: Spark's tables and views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.query.refusals import is_refusal
from rowlake.sqltext.lexer import quote_parts, readable

if TYPE_CHECKING:
    from rowlake.dml.operations import Delete, Merge, Update
    from rowlake.query.lookup import TableLookup
    from rowlake.sqltext.names import Name


_UNCHANGED = "and the rows of a view cannot be changed. Name the table that it reads."


def refuse_foreign(lookup: TableLookup, statement: Delete | Update | Merge) -> None:
    """Raise where the target is a table or view of the Spark session.

    A name that nobody knows passes: it is an error of the statement's own.
    """
    name = statement.name
    if lookup.target(name) is not None:
        return
    verb = type(statement).__name__.upper()
    view = lookup.view(name)
    if view is not None and view.shown is None:
        raise InvalidStatementError(f"Cannot {verb} {readable(name)}: it is a view, {_UNCHANGED}")
    found = sparks_table(lookup.workspace.spark, name)
    if found is not None:
        raise InvalidStatementError(f"Cannot {verb} {readable(name)}: {_reason(found)}")


def sparks_table(spark: Any, name: Name) -> Any:
    """Return what Spark knows by a name; None where there is nothing."""
    try:
        text = quote_parts(name)
        return spark.catalog.getTable(text) if spark.catalog.tableExists(text) else None
    except Exception as error:
        if is_refusal(error):  # a catalog or a namespace that Spark does not know
            return None
        raise


def _reason(found: Any) -> str:
    if found.tableType in ("TEMPORARY", "VIEW"):
        kind = "a temporary view" if found.isTemporary else "a view"
        return f"it is {kind} of the Spark session, {_UNCHANGED}"
    full = readable((found.catalog, *(found.namespace or ()), found.name))
    return (
        f"it is Spark's table {full}, and rowlake changes the rows of tables of its lake only. "
        "Copy it into the lake with CREATE TABLE … AS SELECT, or, if its format can change rows, "
        "run the statement with spark.sql."
    )
