"""INSERT, TRUNCATE, EXPLAIN and WITH before row-level statements, CALL, maintenance, COMMENT ON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.dml.operations import Delete, Explain, Merge, Update
from rowlake.errors import UnsupportedFeatureError
from rowlake.sql.parse.create import QUERY_WORDS
from rowlake.sql.parse.row_level import VERBS, parse_row_level
from rowlake.sql.statements import (
    AnalyzeTable,
    Argument,
    Call,
    CommentOn,
    Insert,
    Optimize,
    Passthrough,
    Statement,
    StaticPartition,
    Truncate,
    Vacuum,
)
from rowlake.sqltext.lexer import TokenKind

if TYPE_CHECKING:
    from rowlake.sqltext.cursor import Cursor
    from rowlake.sqltext.names import Name

_TABLE = "the name of a table"


def parse_insert(cursor: Cursor, with_clause: str = "") -> Statement:
    """INSERT INTO | OVERWRITE …; the query part stays text."""
    cursor.expect("INSERT")
    overwrite = cursor.expect_one("INTO", "OVERWRITE") == "OVERWRITE"
    if cursor.accept_one("DIRECTORY", "LOCAL"):
        return Passthrough(cursor.text)
    if cursor.at_words("TABLE") and cursor.peek().is_name:
        cursor.advance()
    name = cursor.dotted_name(_TABLE)
    partition = _take_partition(cursor) if cursor.accept("PARTITION") else ()
    if_not_exists = cursor.if_not_exists()
    where = _take_replace_where(cursor)
    by_name = cursor.accept("BY", "NAME")
    columns = _take_insert_columns(cursor)
    position = cursor.current.start
    if cursor.current.word not in QUERY_WORDS and not cursor.at_symbol("("):
        cursor.expected("VALUES or a query")
    return Insert(
        name,
        cursor.rest(),
        position,
        columns,
        by_name,
        overwrite or where is not None,
        partition,
        if_not_exists,
        where,
        with_clause,
    )


def _take_partition(cursor: Cursor) -> tuple[StaticPartition, ...]:
    cursor.expect_symbol("(")
    parts: list[StaticPartition] = []
    while True:
        column = cursor.name("a partition column")
        given = cursor.accept_symbol("=") or cursor.accept_symbol("==")
        parts.append(StaticPartition(column, cursor.skip_expression() if given else None))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(parts)


def _take_replace_where(cursor: Cursor) -> str | None:
    if not cursor.accept("REPLACE", "WHERE"):
        return None
    return cursor.skip_expression(*QUERY_WORDS)


def _take_insert_columns(cursor: Cursor) -> tuple[str, ...] | None:
    """Take `(a, b)`; a query in brackets is not one."""
    if not cursor.at_symbol("(") or not cursor.peek().is_name:
        return None
    if cursor.peek().word in QUERY_WORDS and cursor.peek(2).text not in (",", ")"):
        return None
    cursor.advance()
    columns = [cursor.name("a column")]
    while cursor.accept_symbol(","):
        columns.append(cursor.name("a column"))
    cursor.expect_symbol(")")
    return tuple(columns)


def parse_with(cursor: Cursor) -> Statement | None:
    """WITH … before INSERT, DELETE, UPDATE or MERGE; None where it is a query."""
    start, depth = cursor.current.start, 0
    while cursor.current.kind is not TokenKind.END:
        token = cursor.current
        depth += (token.text == "(") - (token.text == ")") if token.kind is TokenKind.SYMBOL else 0
        if depth == 0 and cursor.peek(-1).text == ")":
            if token.word == "INSERT":
                return parse_insert(cursor, cursor.text[start : token.start])
            if token.word in VERBS:
                return parse_row_level(cursor, cursor.text[start : token.start])
            if token.word in QUERY_WORDS or token.text == "(":
                return None
        cursor.advance()
    return None


def parse_truncate(cursor: Cursor) -> Statement:
    """TRUNCATE TABLE t."""
    cursor.expect("TRUNCATE", "TABLE")
    name = cursor.dotted_name(_TABLE)
    if cursor.at_words("PARTITION"):
        cursor.fail("TRUNCATE of a partition is not an Iceberg statement; use DELETE FROM … WHERE")
    cursor.expect_end()
    return Truncate(name)


def parse_explain(cursor: Cursor) -> Statement:
    """EXPLAIN [ANALYZE] of a row-level statement; of anything else it is Spark's."""
    cursor.expect("EXPLAIN")
    analyze = cursor.accept("ANALYZE")
    cursor.accept_one("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL")
    explained: Statement | None = None
    if cursor.current.word in VERBS:
        explained = parse_row_level(cursor)
    elif cursor.at_words("WITH"):
        explained = parse_with(cursor)
    if isinstance(explained, (Delete, Update, Merge)):
        return Explain(explained, analyze)
    if analyze:
        raise UnsupportedFeatureError(
            "EXPLAIN ANALYZE is for DELETE, UPDATE and MERGE; EXPLAIN shows the plan of a query."
        )
    return Passthrough(cursor.text)


def parse_optimize(cursor: Cursor) -> Statement:
    """OPTIMIZE t [FULL] [WHERE …] [ZORDER BY (…)]."""
    cursor.expect("OPTIMIZE")
    name = cursor.dotted_name(_TABLE)
    full = cursor.accept("FULL")
    where = cursor.skip_expression("ZORDER") if cursor.accept("WHERE") else None
    zorder: tuple[Name, ...] = ()
    if cursor.accept("ZORDER", "BY"):
        bracketed = cursor.accept_symbol("(")
        zorder = cursor.name_list()
        if bracketed:
            cursor.expect_symbol(")")
    cursor.expect_end()
    return Optimize(name, where, zorder, full)


def parse_vacuum(cursor: Cursor) -> Statement:
    """VACUUM t | 'path' [FULL] [RETAIN n HOURS] [DRY RUN]."""
    cursor.expect("VACUUM")
    is_path = cursor.current.kind is TokenKind.STRING
    name = ("delta", cursor.string("a path")) if is_path else cursor.dotted_name(_TABLE)
    hours = None
    if cursor.at_words("LITE"):
        raise UnsupportedFeatureError("VACUUM LITE is not supported; VACUUM lists the files.")
    cursor.accept("FULL")
    if cursor.accept("RETAIN"):
        if cursor.current.kind is not TokenKind.NUMBER:
            cursor.expected("a number of hours")
        hours = float(cursor.advance().text)
        cursor.expect_one("HOURS", "HOUR")
    dry_run = cursor.accept("DRY", "RUN")
    cursor.expect_end()
    return Vacuum(name, hours, dry_run)


def parse_analyze(cursor: Cursor) -> Statement:
    """ANALYZE TABLE t COMPUTE STATISTICS; of all tables of a namespace it is Spark's."""
    cursor.expect("ANALYZE")
    if not cursor.accept("TABLE"):
        return Passthrough(cursor.text)
    name = cursor.dotted_name(_TABLE)
    partitions = cursor.accept("PARTITION")
    if partitions:
        cursor.bracketed()
    cursor.expect("COMPUTE", "STATISTICS")
    counts_only, columns = cursor.accept("NOSCAN"), None
    if not cursor.accept("FOR", "ALL", "COLUMNS") and cursor.accept("FOR", "COLUMNS"):
        columns = cursor.name_list()
    cursor.expect_end()
    return AnalyzeTable(name, columns, partitions, counts_only)


def parse_comment(cursor: Cursor) -> Statement:
    """COMMENT ON TABLE | NAMESPACE … IS 'text' | NULL."""
    cursor.expect("COMMENT")
    cursor.expect("ON")
    kind = cursor.accept_one("TABLE", "NAMESPACE", "SCHEMA", "DATABASE")
    if kind is None:
        return Passthrough(cursor.text)
    name = cursor.dotted_name("a name")
    cursor.expect("IS")
    comment = None if cursor.accept("NULL") else cursor.string("a comment")
    cursor.expect_end()
    return CommentOn(name, comment, of_namespace=kind != "TABLE")


def parse_call(cursor: Cursor) -> Statement:
    """CALL [catalog.]system.procedure(…)."""
    cursor.expect("CALL")
    at = cursor.current
    *catalog, procedure = cursor.dotted_name("the name of a procedure")
    if catalog and catalog[-1].lower() == "system":
        catalog.pop()
    elif catalog:
        cursor.fail("Procedures are in the namespace system: CALL system.procedure(…)", at)
    cursor.expect_symbol("(")
    arguments: list[Argument] = []
    while not cursor.at_symbol(")"):
        arguments.append(_take_argument(cursor, arguments))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    cursor.expect_end()
    return Call(procedure.lower(), tuple(arguments), tuple(catalog))


def _take_argument(cursor: Cursor, before: list[Argument]) -> Argument:
    at, name = cursor.current, None
    if at.is_name and cursor.peek().text == "=>":
        name = cursor.name().lower()
        cursor.advance()
    elif any(argument.name for argument in before):
        cursor.fail("An argument by position cannot come after one by name")
    if name and any(argument.name == name for argument in before):
        cursor.fail(f"Argument {name} is given twice", at)
    start = cursor.current.start
    return Argument(cursor.skip_expression(), name, start)
