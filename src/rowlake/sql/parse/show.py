"""SHOW, DESCRIBE and USE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.sql.parse.create import NAMESPACE_WORDS, QUERY_WORDS
from rowlake.sql.statements import (
    DescribeDetail,
    DescribeHistory,
    DescribeNamespace,
    DescribeTable,
    Passthrough,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowPartitions,
    ShowProperties,
    ShowTables,
    ShowViews,
    Statement,
    Use,
)
from rowlake.sqltext.cursor import Cursor, property_key
from rowlake.sqltext.lexer import TokenKind

if TYPE_CHECKING:
    from rowlake.sqltext.names import Name


def parse_show(cursor: Cursor) -> Statement:
    """SHOW of tables, views, namespaces, and of what a table has; the rest is Spark's."""
    cursor.expect("SHOW")
    if cursor.accept("TABLES"):
        return _finished(cursor, ShowTables(_take_namespace(cursor), _take_pattern(cursor)))
    if cursor.accept_one("NAMESPACES", "SCHEMAS", "DATABASES"):
        return _finished(cursor, ShowNamespaces(_take_namespace(cursor), _take_pattern(cursor)))
    if cursor.accept("VIEWS"):
        return _finished(cursor, ShowViews(_take_namespace(cursor), _take_pattern(cursor)))
    if cursor.accept("CURRENT") and cursor.accept_one(*NAMESPACE_WORDS):
        return _finished(cursor, ShowCurrentNamespace())
    if cursor.accept("CREATE", "TABLE"):
        return _finished(cursor, ShowCreateTable(cursor.dotted_name("the name of a table")))
    if cursor.accept("TBLPROPERTIES"):
        return _show_properties(cursor)
    if cursor.accept("COLUMNS"):
        cursor.expect_one("IN", "FROM")
        return _finished(cursor, ShowColumns(cursor.dotted_name("the name of a table")))
    if cursor.accept("PARTITIONS"):
        name = cursor.dotted_name("the name of a table")
        return ShowPartitions(name) if cursor.at_end() else Passthrough(cursor.text)
    return Passthrough(cursor.text)


def _finished(cursor: Cursor, statement: Statement) -> Statement:
    cursor.expect_end()
    return statement


def _take_namespace(cursor: Cursor) -> Name | None:
    if not cursor.accept_one("IN", "FROM"):
        return None
    return cursor.dotted_name("the name of a namespace")


def _take_pattern(cursor: Cursor) -> str | None:
    liked = cursor.accept("LIKE")
    if liked or cursor.current.kind is TokenKind.STRING:
        return cursor.string("a pattern")
    return None


def _show_properties(cursor: Cursor) -> Statement:
    name, key = cursor.dotted_name("the name of a table"), None
    if cursor.accept_symbol("("):
        key = property_key(cursor)
        cursor.expect_symbol(")")
    return _finished(cursor, ShowProperties(name, key))


def parse_describe(cursor: Cursor) -> Statement:
    """DESCRIBE [TABLE] [EXTENDED] t [column] | HISTORY t | DETAIL t | NAMESPACE ns."""
    cursor.expect_one("DESCRIBE", "DESC")
    if cursor.accept("HISTORY"):
        name = cursor.dotted_name("the name of a table")
        limit = cursor.integer() if cursor.accept("LIMIT") else None
        return _finished(cursor, DescribeHistory(name, limit))
    if cursor.current.word == "DETAIL" and cursor.peek().is_name:
        cursor.advance()
        return _finished(cursor, DescribeDetail(cursor.dotted_name("the name of a table")))
    if cursor.current.word in NAMESPACE_WORDS and cursor.peek().is_name:
        cursor.advance()
        extended = cursor.accept("EXTENDED")
        name = cursor.dotted_name("the name of a namespace")
        return _finished(cursor, DescribeNamespace(name, extended))
    return _describe_table(cursor)


def _describe_table(cursor: Cursor) -> Statement:
    if cursor.current.word in ("FUNCTION", "QUERY", "PROCEDURE") and cursor.peek().is_name:
        return Passthrough(cursor.text)
    if cursor.current.word in QUERY_WORDS and not cursor.accept("TABLE"):
        return Passthrough(cursor.text)
    extended = cursor.peek().is_name and cursor.accept_one("EXTENDED", "FORMATTED") is not None
    name = cursor.dotted_name("the name of a table")
    if cursor.at_end():
        return DescribeTable(name, extended)
    if cursor.at_words("PARTITION") or cursor.at_words("AS", "JSON"):
        return Passthrough(cursor.text)
    column = cursor.dotted_name("a column")
    return _finished(cursor, DescribeTable(name, extended, column))


def parse_use(cursor: Cursor) -> Statement:
    """USE [NAMESPACE] ns."""
    cursor.expect("USE")
    if cursor.current.word in (*NAMESPACE_WORDS, "CATALOG") and cursor.peek().is_name:
        cursor.advance()
    return _finished(cursor, Use(cursor.dotted_name("the name of a namespace")))
