"""CREATE INDEX and DROP INDEX: the key index of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.sql.statements import CreateIndex, DropIndex

if TYPE_CHECKING:
    from rowlake.sqltext.cursor import Cursor


def parse_create_index(cursor: Cursor) -> CreateIndex:
    """CREATE INDEX, after these words."""
    if_not_exists = cursor.if_not_exists()
    table = _table(cursor)
    keys = []
    cursor.expect_symbol("(")
    while True:
        keys.append(cursor.dotted_name("the name of a column"))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    cursor.expect_end()
    return CreateIndex(table, tuple(keys), if_not_exists)


def parse_drop_index(cursor: Cursor) -> DropIndex:
    """DROP INDEX, after these words."""
    if_exists = cursor.if_exists()
    table = _table(cursor)
    cursor.expect_end()
    return DropIndex(table, if_exists)


def _table(cursor: Cursor) -> tuple[str, ...]:
    """Take `[name] ON [TABLE] table`; the index goes by the table's name."""
    if not cursor.at_words("ON"):
        cursor.name("the name of an index, or ON")
    cursor.expect("ON")
    cursor.accept("TABLE")
    return cursor.dotted_name("the name of a table")
