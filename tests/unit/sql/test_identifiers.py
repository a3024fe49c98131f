"""IDENTIFIER clauses: names given as texts and arguments."""

from __future__ import annotations

import pytest

from rowlake.errors import InvalidStatementError
from rowlake.sqltext.identifiers import with_identifiers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("DELETE FROM IDENTIFIER('ns.t') WHERE a = 1", "DELETE FROM `ns`.`t` WHERE a = 1"),
        ("UPDATE identifier ( :t ) SET a = 1", "UPDATE `n s`.`t` SET a = 1"),
        (
            "MERGE INTO IDENTIFIER(:t) t USING IDENTIFIER(\"u\") s ON t.IDENTIFIER('id') = 1",
            "MERGE INTO `n s`.`t` t USING `u` s ON t.`id` = 1",
        ),
        ("SELECT IDENTIFIER('a' || 'b')", "SELECT IDENTIFIER('a' || 'b')"),
        ("SELECT * FROM IDENTIFIER(:unknown)", "SELECT * FROM IDENTIFIER(:unknown)"),
        ("SELECT * FROM IDENTIFIER(:number)", "SELECT * FROM IDENTIFIER(:number)"),
        ("SELECT 'IDENTIFIER(''t'')', identifier", "SELECT 'IDENTIFIER(''t'')', identifier"),
        ("SELECT identifier FROM t -- IDENTIFIER('x')", None),
    ],
)
def test_names_stand_for_their_clauses(text, expected) -> None:
    arguments = {"t": "`n s`.t", "number": 5}
    assert with_identifiers(text, arguments) == (expected or text)


def test_arguments_by_position_stay() -> None:
    text = "DELETE FROM IDENTIFIER(?)"
    assert with_identifiers(text, ["ns.t"]) == text


@pytest.mark.parametrize("name", ["", "a b", "a.", "a; DROP TABLE b", "a) --"])
def test_what_is_no_name_is_refused(name) -> None:
    with pytest.raises(InvalidStatementError):
        with_identifiers("DROP TABLE IDENTIFIER(:t)", {"t": name})
