"""CREATE, REPLACE and DROP of tables, indexes, views and namespaces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.catalog.formats import path_in
from rowlake.model.properties import FILE_FORMAT
from rowlake.secrets import redacted_repr
from rowlake.sql.parse.delta import parse_clone
from rowlake.sql.parse.index import parse_create_index, parse_drop_index
from rowlake.sql.parse.views import SPARK_CATALOG, parse_drop_view, parse_temp_view, parse_view
from rowlake.sql.statements import (
    CreateNamespace,
    CreateTable,
    CreateTableLike,
    DropNamespace,
    DropTable,
    Passthrough,
    Statement,
)
from rowlake.sqltext.cursor import Cursor, properties
from rowlake.sqltext.lexer import TokenKind
from rowlake.sqltext.terms import PartitionTerm, take_partition_term
from rowlake.sqltext.types import Field, take_field_rest

if TYPE_CHECKING:
    from rowlake.sqltext.names import Name

NAMESPACE_WORDS = ("NAMESPACE", "SCHEMA", "DATABASE")
QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_LAKE_PROVIDERS = ("iceberg", "rowlake", "delta")
_DELTA = "delta"
_FILE_FORMATS = ("parquet", "orc", "avro")


def parse_create(cursor: Cursor) -> Statement:
    """CREATE …; what is not a table, an index, a view or a namespace is Spark's."""
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "REPLACE")
    if not replace and cursor.accept_one(*NAMESPACE_WORDS):
        return _create_namespace(cursor)
    if not replace and cursor.accept("INDEX"):
        return parse_create_index(cursor)
    is_global = cursor.accept("GLOBAL")
    if cursor.accept_one("TEMPORARY", "TEMP"):
        if not cursor.accept("VIEW"):
            return Passthrough(cursor.text)
        return parse_temp_view(cursor, replace=replace, is_global=is_global)
    if cursor.accept("VIEW"):
        return parse_view(cursor, replace=replace)
    if not cursor.accept("TABLE"):
        return Passthrough(cursor.text)
    return _create_table(cursor, "create or replace" if replace else "create")


def parse_replace(cursor: Cursor) -> Statement:
    """Parse REPLACE TABLE."""
    cursor.expect("REPLACE")
    if not cursor.accept("TABLE"):
        return Passthrough(cursor.text)
    return _create_table(cursor, "replace")


@dataclass
class _Clauses:
    provider: str | None = None
    columns: list[Field] | None = None
    partition_by: list[PartitionTerm] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    cluster_by: tuple[Name, ...] = ()
    foreign: bool = False

    __repr__ = redacted_repr


def _create_table(cursor: Cursor, mode: str) -> Statement:
    if_not_exists = cursor.if_not_exists()
    name = cursor.dotted_name("the name of a table")
    if cursor.accept("LIKE"):
        return _create_like(cursor, name, if_not_exists)
    if cursor.at_words("CLONE") or cursor.peek().word == "CLONE":
        return parse_clone(cursor, name, if_not_exists=if_not_exists, mode=mode)
    clauses = _Clauses()
    if cursor.at_symbol("("):
        clauses.columns = _take_columns(cursor)
    while _take_clause(cursor, clauses):
        pass
    if clauses.foreign or _is_sparks(name, clauses.provider):
        return Passthrough(cursor.text)
    if path_in(name) is not None:
        _validate_provider(cursor, name, clauses.provider)
    else:
        _choose_file_format(cursor, clauses)
    query, position = _take_query(cursor)
    return CreateTable(
        name,
        None if clauses.columns is None else tuple(clauses.columns),
        tuple(clauses.partition_by),
        clauses.properties,
        clauses.location,
        clauses.comment,
        mode,
        if_not_exists,
        query,
        position,
        format=_DELTA if (clauses.provider or "").lower() == _DELTA else "",
        cluster_by=clauses.cluster_by,
    )


def _is_sparks(name: tuple[str, ...], provider: str | None) -> bool:
    """Return whether a table is one of Spark's: by its catalog, or by a format that no lake has.

    `USING parquet`, `orc` and `avro` are Iceberg tables of such files, as in Iceberg's catalogs.
    """
    if name[0].lower() == SPARK_CATALOG:
        return True
    if path_in(name) is not None:
        return False
    return (provider or "iceberg").lower() not in (*_LAKE_PROVIDERS, *_FILE_FORMATS)


def _validate_provider(cursor: Cursor, name: tuple[str, ...], provider: str | None) -> None:
    if provider is not None and provider.lower() != name[0].lower():
        cursor.fail(f"USING {provider} contradicts the format of the path, {name[0]}")


def _choose_file_format(cursor: Cursor, clauses: _Clauses) -> None:
    """Make `USING orc` the table's file format."""
    wanted = (clauses.provider or "").lower()
    if wanted not in _FILE_FORMATS:
        return
    given = clauses.properties.setdefault(FILE_FORMAT, wanted)
    if given.lower() != wanted:
        cursor.fail(f"USING {wanted} contradicts the table property {FILE_FORMAT}={given}")


def _create_like(cursor: Cursor, name: tuple[str, ...], if_not_exists: bool) -> Statement:
    source = cursor.dotted_name("the name of a table")
    provider = cursor.name("a table format") if cursor.accept("USING") else None
    if _is_sparks(name, provider):
        return Passthrough(cursor.text)
    cursor.expect_end()
    wanted = (provider or "").lower()
    return CreateTableLike(name, source, if_not_exists, wanted if wanted in _FILE_FORMATS else None)


def _take_query(cursor: Cursor) -> tuple[str | None, int]:
    cursor.accept("AS")
    position = cursor.current.start
    if cursor.at_end():
        return None, position
    if cursor.current.word not in QUERY_WORDS and not cursor.at_symbol("("):
        cursor.expected("a clause of CREATE TABLE or a query")
    return cursor.rest(), position


def _take_columns(cursor: Cursor) -> list[Field]:
    cursor.expect_symbol("(")
    columns: list[Field] = []
    known: set[str] = set()
    while not cursor.at_symbol(")"):
        at = cursor.current
        name = cursor.name("the name of a column")
        if name.lower() in known:
            cursor.fail(f"Column {name} is there twice", at)
        known.add(name.lower())
        columns.append(take_field_rest(cursor, name))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return columns


def _take_clause(cursor: Cursor, clauses: _Clauses) -> bool:
    """Take one clause; False where the clauses are over."""
    if cursor.accept("USING"):
        clauses.provider = ".".join(cursor.dotted_name("a table format"))
    elif cursor.accept("COMMENT"):
        clauses.comment = cursor.string("a comment")
    elif cursor.accept("LOCATION"):
        clauses.location = cursor.string("a location")
    elif cursor.accept("TBLPROPERTIES"):
        clauses.properties |= properties(cursor)
    elif cursor.accept("OPTIONS"):
        clauses.properties |= {f"option.{k}": v for k, v in properties(cursor).items()}
    elif cursor.accept("PARTITIONED", "BY"):
        _take_partitioning(cursor, clauses)
    elif cursor.accept("CLUSTERED", "BY"):
        _take_buckets(cursor, clauses)
    elif cursor.accept("CLUSTER", "BY"):
        clauses.cluster_by = take_cluster_columns(cursor)
    elif cursor.at_words("STORED") or cursor.at_words("ROW", "FORMAT"):
        clauses.foreign = True
        return False
    else:
        return False
    return True


def take_cluster_columns(cursor: Cursor) -> tuple[Name, ...]:
    """Take `(a, b.c)` after CLUSTER BY."""
    if cursor.at_words("AUTO"):
        cursor.fail("CLUSTER BY AUTO is not supported: name the columns")
    cursor.expect_symbol("(")
    columns = cursor.name_list()
    cursor.expect_symbol(")")
    return columns


def _take_partitioning(cursor: Cursor, clauses: _Clauses) -> None:
    cursor.expect_symbol("(")
    while True:
        if _at_typed_column(cursor):
            column = take_field_rest(cursor, cursor.name())
            clauses.columns = [*(clauses.columns or []), column]
            clauses.partition_by.append(PartitionTerm("identity", (column.name,)))
        else:
            clauses.partition_by.append(take_partition_term(cursor))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")


def _at_typed_column(cursor: Cursor) -> bool:
    """Return True at `name type`, as Hive writes partition columns."""
    return cursor.current.is_name and cursor.peek().kind is TokenKind.WORD


def _take_buckets(cursor: Cursor, clauses: _Clauses) -> None:
    cursor.expect_symbol("(")
    column = cursor.dotted_name("a column")
    if cursor.at_symbol(","):
        cursor.fail("Iceberg buckets by one column; write PARTITIONED BY (bucket(n, column), …)")
    cursor.expect_symbol(")")
    cursor.expect("INTO")
    clauses.partition_by.append(PartitionTerm(f"bucket[{cursor.integer()}]", column))
    cursor.expect("BUCKETS")


def _create_namespace(cursor: Cursor) -> Statement:
    if_not_exists = cursor.if_not_exists()
    name = cursor.dotted_name("the name of a namespace")
    comment, location, found = None, None, dict[str, str]()
    while not cursor.at_end():
        if cursor.accept("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.accept("LOCATION"):
            location = cursor.string("a location")
        elif cursor.accept("WITH"):
            cursor.expect_one("DBPROPERTIES", "PROPERTIES")
            found |= properties(cursor)
        else:
            cursor.expected("COMMENT, LOCATION or WITH PROPERTIES")
    return CreateNamespace(name, if_not_exists, comment, location, found)


def parse_drop(cursor: Cursor) -> Statement:
    """DROP TABLE | INDEX | VIEW | NAMESPACE; the rest is Spark's."""
    cursor.expect("DROP")
    if cursor.accept_one(*NAMESPACE_WORDS):
        if_exists = cursor.if_exists()
        name = cursor.dotted_name("the name of a namespace")
        cascade = cursor.accept_one("RESTRICT", "CASCADE") == "CASCADE"
        cursor.expect_end()
        return DropNamespace(name, if_exists, cascade)
    if cursor.accept("INDEX"):
        return parse_drop_index(cursor)
    if cursor.accept("VIEW"):
        return parse_drop_view(cursor)
    if not cursor.accept("TABLE"):
        return Passthrough(cursor.text)
    if_exists = cursor.if_exists()
    name = cursor.dotted_name("the name of a table")
    purge = cursor.accept("PURGE")
    cursor.expect_end()
    return DropTable(name, if_exists, purge)
