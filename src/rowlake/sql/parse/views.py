"""CREATE, ALTER and DROP VIEW; CACHE, UNCACHE and REFRESH TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowlake.secrets import redacted_repr
from rowlake.sql.statements import (
    AlterView,
    CacheTable,
    ClearCache,
    CreateTempView,
    CreateView,
    DropView,
    Passthrough,
    RefreshTable,
    RenameView,
    Statement,
    UncacheTable,
)
from rowlake.sqltext.cursor import Cursor, properties
from rowlake.sqltext.lexer import TokenKind

_VIEW = "the name of a view"
_TABLE = "the name of a table or view"
SPARK_CATALOG = "spark_catalog"


@dataclass
class _Head:
    """What stands before a view's query."""

    name: tuple[str, ...]
    columns: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)

    __repr__ = redacted_repr


def parse_temp_view(cursor: Cursor, *, replace: bool, is_global: bool) -> Statement:
    """CREATE TEMPORARY VIEW, from its name on; a view over a data source is Spark's."""
    if cursor.if_not_exists():
        return Passthrough(cursor.text)
    head = _take_head(cursor)
    if head is None:
        return Passthrough(cursor.text)
    columns = tuple(head.columns)
    return CreateTempView(head.name, cursor.rest(), columns, replace, is_global, head.comments)


def parse_view(cursor: Cursor, *, replace: bool) -> Statement:
    """CREATE VIEW, from its name on; a view in Spark's own catalog is Spark's."""
    if_not_exists = cursor.if_not_exists()
    head = _take_head(cursor)
    if head is None or head.name[0].lower() == SPARK_CATALOG:
        return Passthrough(cursor.text)
    return CreateView(
        head.name,
        cursor.rest(),
        tuple(head.columns),
        replace,
        if_not_exists,
        head.comments,
        head.comment,
        head.properties,
    )


def _take_head(cursor: Cursor) -> _Head | None:
    """Take all up to AS; None where something else comes."""
    head = _Head(cursor.dotted_name(_VIEW))
    if cursor.accept_symbol("(") and not _take_columns(cursor, head):
        return None
    while not cursor.accept("AS"):
        if cursor.accept("COMMENT"):
            head.comment = cursor.string("a comment")
        elif cursor.accept("TBLPROPERTIES"):
            head.properties |= properties(cursor)
        elif not cursor.accept("WITH", "SCHEMA", "BINDING"):
            return None
    return head


def _take_columns(cursor: Cursor, head: _Head) -> bool:
    while True:
        column = cursor.name("a column")
        head.columns.append(column)
        if cursor.accept("COMMENT"):
            head.comments[column] = cursor.string("a comment")
        if not cursor.accept_symbol(","):
            return cursor.accept_symbol(")")


def parse_alter_view(cursor: Cursor) -> Statement:
    """ALTER VIEW … AS | RENAME TO; other forms are Spark's."""
    name = cursor.dotted_name(_VIEW)
    if cursor.accept("RENAME", "TO"):
        renamed = RenameView(name, cursor.dotted_name(_VIEW))
        cursor.expect_end()
        return renamed
    at_query = cursor.accept("AS") or cursor.current.word in ("SELECT", "WITH", "VALUES", "FROM")
    return AlterView(name, cursor.rest()) if at_query else Passthrough(cursor.text)


def parse_drop_view(cursor: Cursor) -> Statement:
    """DROP VIEW, from IF EXISTS on."""
    if_exists = cursor.if_exists()
    dropped = DropView(cursor.dotted_name(_VIEW), if_exists)
    cursor.expect_end()
    return dropped


def parse_cache(cursor: Cursor) -> Statement:
    """CACHE [LAZY] TABLE t [OPTIONS (…)] [[AS] query]."""
    cursor.expect("CACHE")
    lazy = cursor.accept("LAZY")
    cursor.expect("TABLE")
    name = cursor.dotted_name(_TABLE)
    level = None
    if cursor.accept("OPTIONS"):
        given = {key.lower(): value for key, value in properties(cursor).items()}
        level = given.get("storagelevel")
    cursor.accept("AS")
    return CacheTable(name, lazy, level, None if cursor.at_end() else cursor.rest())


def parse_uncache(cursor: Cursor) -> Statement:
    """UNCACHE TABLE [IF EXISTS] t."""
    cursor.expect("UNCACHE")
    cursor.expect("TABLE")
    if_exists = cursor.if_exists()
    found = UncacheTable(cursor.dotted_name(_TABLE), if_exists)
    cursor.expect_end()
    return found


def parse_clear(cursor: Cursor) -> Statement:
    """CLEAR CACHE."""
    cursor.expect("CLEAR")
    cursor.expect("CACHE")
    cursor.expect_end()
    return ClearCache()


def parse_refresh(cursor: Cursor) -> Statement:
    """REFRESH [TABLE] t; of a path or a function it is Spark's."""
    cursor.expect("REFRESH")
    is_table = cursor.accept("TABLE")
    if not is_table and (cursor.current.word == "FUNCTION" or cursor.current.kind is _STRING):
        return Passthrough(cursor.text)
    name = cursor.dotted_name(_TABLE)
    return RefreshTable(name) if cursor.at_end() else Passthrough(cursor.text)


_STRING = TokenKind.STRING
