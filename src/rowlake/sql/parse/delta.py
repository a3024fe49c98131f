"""Statements of Delta's users: RESTORE, CLONE, REORG, CONVERT, GENERATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import UnsupportedFeatureError
from rowlake.query.shape import TimeTravel
from rowlake.sql.statements import CloneTable, ConvertToDelta, Generate, Reorg, Restore
from rowlake.sqltext.cursor import properties
from rowlake.sqltext.types import Field, take_field_rest

if TYPE_CHECKING:
    from rowlake.sql.statements import Statement
    from rowlake.sqltext.cursor import Cursor
    from rowlake.sqltext.names import Name

_TABLE = "the name of a table"


def parse_restore(cursor: Cursor) -> Statement:
    """RESTORE [TABLE] t [TO] VERSION AS OF n | TIMESTAMP AS OF '…'."""
    cursor.expect("RESTORE")
    if cursor.at_words("TABLE") and cursor.peek().is_name:
        cursor.advance()
    name = cursor.dotted_name(_TABLE)
    cursor.accept("TO")
    travel = take_travel(cursor)
    if travel is None:
        cursor.expected("VERSION AS OF or TIMESTAMP AS OF")
    cursor.expect_end()
    assert travel is not None
    return Restore(name, travel)


def take_travel(cursor: Cursor, *stops: str) -> TimeTravel | None:
    """Take `[FOR] VERSION | TIMESTAMP AS OF value`; None where there is none."""
    cursor.accept("FOR")
    kind = cursor.accept_one("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
    if kind is None:
        return None
    cursor.expect("AS", "OF")
    text = cursor.skip_expression(*stops)
    return TimeTravel("version" if "VERSION" in kind else "timestamp", text)


def parse_clone(cursor: Cursor, name: Name, *, if_not_exists: bool, mode: str) -> Statement:
    """[SHALLOW | DEEP] CLONE b [VERSION AS OF …] [TBLPROPERTIES …] [LOCATION …]."""
    if mode != "create":
        raise UnsupportedFeatureError(
            f"{mode.upper()} TABLE … CLONE is not supported: drop the table first."
        )
    shallow = not cursor.at_words("CLONE") and cursor.expect_one("SHALLOW", "DEEP") == "SHALLOW"
    cursor.expect("CLONE")
    source = cursor.dotted_name(_TABLE)
    travel = take_travel(cursor, "TBLPROPERTIES", "LOCATION")
    given: dict[str, str] = {}
    location = None
    while not cursor.at_end():
        if cursor.accept("TBLPROPERTIES"):
            given |= properties(cursor)
        elif cursor.accept("LOCATION"):
            location = cursor.string("a location")
        else:
            cursor.expected("TBLPROPERTIES or LOCATION")
    return CloneTable(name, source, shallow, travel, given, location, if_not_exists)


def parse_reorg(cursor: Cursor) -> Statement:
    """REORG TABLE t [WHERE …] APPLY (PURGE)."""
    cursor.expect("REORG", "TABLE")
    name = cursor.dotted_name(_TABLE)
    where = cursor.skip_expression("APPLY") if cursor.accept("WHERE") else None
    cursor.expect("APPLY")
    cursor.expect_symbol("(")
    if not cursor.accept("PURGE"):
        raise UnsupportedFeatureError("REORG TABLE … APPLY takes (PURGE) only.")
    cursor.expect_symbol(")")
    cursor.expect_end()
    return Reorg(name, where)


def parse_convert(cursor: Cursor) -> Statement:
    """CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (column type, …)]."""
    cursor.expect("CONVERT", "TO", "DELTA")
    at = cursor.current
    name = cursor.dotted_name("a path: parquet.`/path`")
    if len(name) != 2 or name[0].lower() != "parquet" or "/" not in name[1]:
        cursor.fail("CONVERT TO DELTA takes a folder of Parquet files: parquet.`/path`", at)
    statistics = not cursor.accept("NO", "STATISTICS")
    columns: list[Field] = []
    if cursor.accept("PARTITIONED", "BY"):
        cursor.expect_symbol("(")
        columns.append(take_field_rest(cursor, cursor.name("a column")))
        while cursor.accept_symbol(","):
            columns.append(take_field_rest(cursor, cursor.name("a column")))
        cursor.expect_symbol(")")
    cursor.expect_end()
    return ConvertToDelta(name[1], tuple(columns) or None, statistics)


def parse_generate(cursor: Cursor) -> Statement:
    """GENERATE mode FOR TABLE t."""
    cursor.expect("GENERATE")
    mode = cursor.name("symlink_format_manifest")
    cursor.expect("FOR", "TABLE")
    name = cursor.dotted_name(_TABLE)
    cursor.expect_end()
    return Generate(name, mode)
