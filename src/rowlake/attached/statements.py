"""`spark.sql` in an attached session: `lake.sql` for the lake's tables, Spark for its own.

Comes in: a statement, its arguments, and DataFrames that it names. Goes out: a DataFrame. A
statement about none of the lake's tables raises what Spark raises.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rowlake.attached import owners
from rowlake.dml.operations import Explain
from rowlake.engine.failures import is_spark_error
from rowlake.errors import RowlakeError
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import plain_error, run_plainly
from rowlake.query.run import run_query
from rowlake.sql import statements as s
from rowlake.sql.parse.statement import parse
from rowlake.sqltext.identifiers import with_identifiers
from rowlake.sqltext.lexer import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.lake import Lake

_NEW_TABLES = (s.CreateTable, s.CreateTableLike)
_OF_NAMESPACES = (s.AlterNamespace, s.DescribeNamespace, s.DropNamespace, s.Use)
_IN_NAMESPACES = (s.ShowTables, s.ShowViews, s.ShowNamespaces)
# Names that lake.sql gives to Spark itself, or that are no tables.
_LAKES_OWN = (s.Call, s.CacheTable, s.UncacheTable, s.RefreshTable, s.CreateTempView, s.CreateView)
_VIEWS = (s.AlterView, s.DropView, s.RenameView)


def run(lake: Lake, text: str, arguments: Any, frames: Mapping[str, Any]) -> Any:
    """Run a statement; the (quoted) keys of `frames` stand for DataFrames in it."""
    text = with_identifiers(text, arguments)
    try:
        parsed = parse(text)
    except RowlakeError as refusal:
        return _by_spark(lake, text, arguments, frames, refusal)
    if isinstance(parsed, (s.Query, s.Passthrough)) or _is_sparks(lake, parsed):
        found = _over_both(lake, text, arguments, frames)
        if isinstance(parsed, s.Use):
            lake.workspace.session.namespace = parsed.name
        return found
    if not frames:
        return lake.sql(text, arguments)
    return _with_views(lake, text, arguments, frames)


def _by_spark(
    lake: Lake, text: str, arguments: Any, frames: Mapping[str, Any], refusal: RowlakeError
) -> Any:
    """Run what rowlake cannot read, if Spark can; new tables are not left to chance."""
    if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0].upper() in ("CREATE", "REPLACE"):
        raise refusal
    try:
        return _over_both(lake, text, arguments, frames)
    except Exception as error:
        raise refusal from error


def _over_both(lake: Lake, text: str, arguments: Any, frames: Mapping[str, Any]) -> Any:
    """Run a statement by Spark, in which the lake's tables are visible by name."""
    lookup = TableLookup(lake.workspace)
    try:
        with run_plainly(lake.workspace, text):
            found = run_query(lookup, text, arguments, given=dict(frames))
    except RowlakeError as error:
        cause = error.__cause__
        if cause is not None and is_spark_error(cause) and not lookup.loaded:
            raise cause from None
        raise
    if not lookup.loaded:
        return found
    return lake.engine.raising_plainly(found, partial(plain_error, text=text))


def _with_views(lake: Lake, text: str, arguments: Any, frames: Mapping[str, Any]) -> Any:
    """Run a statement that is done when it returns; DataFrames are views until then."""
    spark = lake.spark
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(quote(name))
        return lake.sql(text, arguments)
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)


def _is_sparks(lake: Lake, parsed: Any) -> bool:
    """Return whether a statement is about a table or a namespace of Spark's own."""
    workspace = lake.workspace
    if isinstance(parsed, Explain):
        parsed = parsed.statement
    if isinstance(parsed, _NEW_TABLES):
        return owners.is_new_in_spark(workspace, parsed.name)
    if isinstance(parsed, s.CreateNamespace):
        return owners.in_sparks_catalog(workspace, parsed.name)
    if isinstance(parsed, _OF_NAMESPACES) or (
        isinstance(parsed, s.CommentOn) and parsed.of_namespace
    ):
        return owners.is_sparks_namespace(workspace, parsed.name)
    if isinstance(parsed, _IN_NAMESPACES):
        inside = parsed.namespace
        return inside is not None and owners.is_sparks_namespace(workspace, inside)
    name = getattr(parsed, "name", None)
    if not name or isinstance(parsed, (*_LAKES_OWN, *_VIEWS)):
        return False
    return owners.is_sparks(TableLookup(workspace), name)
