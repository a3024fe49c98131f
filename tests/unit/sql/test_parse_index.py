"""CREATE INDEX and DROP INDEX, as text."""

from __future__ import annotations

import pytest

from rowlake.errors import InvalidStatementError
from rowlake.sql.parse.statement import parse
from rowlake.sql.statements import CreateIndex, DropIndex, Passthrough

TABLE = ("shop", "orders")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE INDEX ON shop.orders (id)", CreateIndex(TABLE, (("id",),))),
        ("create index i on table shop.orders (a, `b c`);", CreateIndex(TABLE, (("a",), ("b c",)))),
        (
            "CREATE INDEX IF NOT EXISTS i ON shop.orders (s.a)",
            CreateIndex(TABLE, (("s", "a"),), if_not_exists=True),
        ),
        ("DROP INDEX ON shop.orders", DropIndex(TABLE)),
        ("DROP INDEX IF EXISTS i ON shop.orders", DropIndex(TABLE, if_exists=True)),
    ],
)
def test_statements_of_indexes(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CREATE INDEX ON shop.orders",
        "CREATE INDEX ON shop.orders ()",
        "CREATE INDEX i shop.orders (id)",
        "DROP INDEX i",
        "DROP INDEX ON shop.orders (id)",
    ],
)
def test_mistakes_are_named(text):
    with pytest.raises(InvalidStatementError):
        parse(text)


def test_an_index_is_not_replaced():
    assert isinstance(parse("CREATE OR REPLACE INDEX i ON t (a)"), Passthrough)
