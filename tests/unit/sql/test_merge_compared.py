"""Which conditions on both sides of a MERGE tasks can test, and which are Spark's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rowlake.dml.join_sides import Side, Sides
from rowlake.dml.merge_by_key import _key_join
from rowlake.dml.merge_comparisons import Compared, compared, is_comparable
from rowlake.sqltext.lexer import Kind, Lexer

SIDES = Sides(Side("t", ("id", "a", "b", "flag")), Side("s", ("id", "a", "c", "yes", "no")))


def found(text: str) -> Compared | None:
    tokens = [token for token in Lexer(text).all() if token.kind is not Kind.END]
    return compared(text, tokens, SIDES)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("t.a < s.a", Compared("a", "<", "s.a")),
        ("s.a < t.a", Compared("a", ">", "s.a")),
        ("s.a >= t.`a`", Compared("a", "<=", "s.a")),
        ("b <> c", Compared("b", "!=", "c")),
        ("t.a == s.a + 1", Compared("a", "=", "s.a + 1")),
        ("t.a <=> coalesce(s.a, 0)", Compared("a", "<=>", "coalesce(s.a, 0)")),
        ("t.flag = (s.yes OR s.no)", Compared("flag", "=", "(s.yes OR s.no)")),
        ("t.a = IF(s.a > 0, 1, 2)", Compared("a", "=", "IF(s.a > 0, 1, 2)")),
        ("(s.a = 1) <> t.flag", Compared("flag", "!=", "(s.a = 1)")),
        (
            "t.a > CASE WHEN s.yes AND s.no THEN 1 ELSE s.a END",
            Compared("a", ">", "CASE WHEN s.yes AND s.no THEN 1 ELSE s.a END"),
        ),
    ],
)
def test_a_column_compared_with_the_source_is_found(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "t.flag = s.yes OR s.no",
        "t.flag = s.yes AND s.no",
        "NOT t.a < s.a",
        "! t.a < s.a",
        "t.flag = s.yes IS NULL",
        "t.flag = s.a IN (1, 2)",
        "t.flag = s.a BETWEEN 1 AND 2",
        "t.a + 1 < s.a",
        "t.a < s.a + t.b",
        "t.a < 5",
        "s.a < 5",
        "t.a < (SELECT max(c) FROM s)",
        "t.a < s.a < s.c",
        "a < c",
        "t.nested.a < s.a",
    ],
)
def test_anything_else_is_left_to_spark(text):
    assert found(text) is None


@pytest.mark.parametrize(
    "on, keys",
    [
        ("t.id = s.id", [("id", "s.id", False)]),
        ("(t.id <=> s.id) AND s.a = t.a", [("id", "s.id", True), ("a", "s.a", False)]),
        ("t.flag = s.yes OR s.no", None),
        ("t.flag = s.yes IS NULL", None),
        ("t.id = s.id AND t.a < s.a", None),
        ("t.a < s.a", None),
    ],
)
def test_keys_are_equalities_and_nothing_that_binds_less(on, keys):
    merging: Any = SimpleNamespace(on=on, sides=SIDES)
    join = _key_join(merging)
    assert (join and list(join.keys)) == keys


@pytest.mark.parametrize(
    "operator, target, source, expected",
    [
        ("<", "int", "bigint", True),
        ("<", "string", "string", True),
        ("<", "decimal(9,2)", "decimal(9,2)", True),
        ("<", "decimal(9,2)", "decimal(10,2)", False),
        ("=", "boolean", "boolean", True),
        ("<", "boolean", "boolean", False),
        ("=", "double", "double", False),
        ("=", "float", "double", False),
        ("<", "timestamp", "timestamp", True),
        ("<", "timestamp", "timestamp_ntz", False),
        ("<", "date", "timestamp", False),
        ("=", "string", "int", False),
        ("=", "string", "string collate UNICODE_CI", False),
        ("=", "int", "void", False),
    ],
)
def test_types_that_compare_here_as_in_spark(operator, target, source, expected):
    assert is_comparable(operator, target, source) == expected
