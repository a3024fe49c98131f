"""Whose a name is: the lake's, or Spark's.

A name means what it means in `lake.sql`: a temporary view, then a table or view of the lake, then
whatever Spark knows by it. New tables are the lake's, unless the name begins with a catalog of
Spark's, or only Spark has the namespace, or Spark has a table of that name already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog import tables as catalog_tables
from rowlake.catalog.formats import path_in
from rowlake.errors import InvalidStatementError
from rowlake.model.names import levels_of
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import is_refusal
from rowlake.sql.execute.foreign import sparks_table
from rowlake.sqltext.lexer import quote_parts

if TYPE_CHECKING:
    from rowlake.query.table_names import Target
    from rowlake.sqltext.names import Name
    from rowlake.workspace import Workspace

LAKE_PROVIDERS = frozenset({"iceberg", "rowlake", "delta", "parquet", "orc", "avro"})
TABLE_FORMATS = frozenset({"iceberg", "rowlake", "delta"})
_SPARKS = "spark_catalog"


def parts_of(name: str) -> Name | None:
    """Return the parts of a name; None for a text that is none, such as a path."""
    try:
        return levels_of(name)
    except InvalidStatementError:
        return None


def lake_target(workspace: Workspace, name: str | Name) -> Target | None:
    """Return the table of the lake that a name means; None where it is another's, or none."""
    parts = parts_of(name) if isinstance(name, str) else name
    return None if parts is None else TableLookup(workspace).target(parts)


def is_sparks(lookup: TableLookup, name: Name) -> bool:
    """Return whether a table or view is Spark's and not the lake's."""
    if lookup.target(name) is not None or lookup.view(name) is not None:
        return False
    return sparks_table(lookup.workspace.spark, name) is not None


def is_new_in_spark(workspace: Workspace, name: Name) -> bool:
    """Return whether a table to be created, or replaced, is one of Spark's."""
    if path_in(name) is not None:
        return False
    if in_sparks_catalog(workspace, name):
        return True
    lookup = TableLookup(workspace)
    if lookup.stored(name) is not None:
        return False
    found = sparks_table(workspace.spark, name)
    if found is not None and not found.isTemporary:
        return True
    return len(name) > 1 and is_sparks_namespace(workspace, name[:-1])


def in_sparks_catalog(workspace: Workspace, name: Name) -> bool:
    """Return whether a name begins with a catalog that the Spark session is configured with."""
    first = name[0]
    if first.lower() == _SPARKS:
        return True
    if first.lower() == str(workspace.catalog.name).lower():
        return False
    setting = workspace.engine.setting(f"spark.sql.catalog.{first}")
    return setting is not None and not has_namespace(workspace, (first,))


def has_namespace(workspace: Workspace, name: Name) -> bool:
    """Return whether the lake has a namespace."""
    try:
        return bool(catalog_tables.namespace_exists(workspace.catalog, name))
    except InvalidStatementError:
        return False


def is_sparks_namespace(workspace: Workspace, name: Name) -> bool:
    """Return whether a namespace is Spark's and not the lake's."""
    if in_sparks_catalog(workspace, name):
        return True
    own = str(workspace.catalog.name).lower()
    if name[0].lower() == own or has_namespace(workspace, name):
        return False
    return _has_database(workspace.spark, name)


def _has_database(spark: Any, name: Name) -> bool:
    try:
        return bool(spark.catalog.databaseExists(quote_parts(name)))
    except Exception as error:
        if is_refusal(error):
            return False
        raise
