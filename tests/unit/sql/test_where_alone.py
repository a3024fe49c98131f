"""WHERE at the end of a query is a name, since Spark's keywords are no reserved words."""

from __future__ import annotations

import pytest

from rowlake.query.shape_reader import ShapeReader
from rowlake.sqltext.lexer import Lexer


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("SELECT id FROM db.t WHERE", "WHERE"),
        ("SELECT id FROM db.t where;", "where"),
        ("SELECT id FROM db.t WHERE id = 1", None),
        ("SELECT id FROM db.t AS a WHERE id = 1", "a"),
        ("SELECT id FROM db.t GROUP BY id", None),
    ],
)
def test_where_alone_names_the_table(text, alias):
    (block,) = ShapeReader(Lexer(text)).query().operands
    assert block.relations[0].alias == alias
