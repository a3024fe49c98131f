"""Calls of columns as SQL texts."""

from __future__ import annotations

import pytest

from rowlake.engine.column_text.names import SourceNames, quoted
from rowlake.engine.column_text.rendering import (
    case_text,
    cast_text,
    expression_text,
    function_text,
    lambda_text,
)
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("==", ["a", "1"], "(a = 1)"),
        ("and", ["a", "b"], "(a AND b)"),
        ("!", ["a"], "(NOT a)"),
        ("isNull", ["a"], "(a IS NULL)"),
        ("in", ["a", "1", "2"], "(a IN (1, 2))"),
        ("in", ["a"], "false"),
        ("like", ["a", "'x'", "'!'"], "(a LIKE 'x' ESCAPE '!')"),
        ("when", ["a", "1", "b", "2", "3"], "CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END"),
        ("negative", ["a"], "negative(a)"),
        ("odd name`", ["a"], "`odd name```(a)"),
    ],
)
def test_calls(name, arguments, text):
    assert function_text(name, arguments) == text


def test_other_texts():
    assert function_text("count", ["a"], distinct=True) == "count(DISTINCT a)"
    assert case_text(["a", "1"]) == "CASE WHEN a THEN 1 END"
    assert cast_text("a", "INT", None) == "CAST(a AS INT)"
    assert cast_text("a", "INT", "Try") == "TRY_CAST(a AS INT)"
    assert expression_text("a -- why") == "(a -- why\n)"
    assert lambda_text(["`x`"], "`x`") == "`x` -> `x`"
    assert lambda_text(["`x`", "`y`"], "`x`") == "(`x`, `y`) -> `x`"
    with pytest.raises(UnsupportedFeatureError, match="ansi"):
        cast_text("a", "INT", "ansi")


def test_columns_of_a_source_have_its_alias():
    names = SourceNames("s`", frozenset({"7"}))
    assert names.written(quoted("a.b"), "7") == "`s```.`a.b`"
    with pytest.raises(InvalidStatementError, match="another DataFrame"):
        names.written("a", "8")
    assert SourceNames().written("a", "8") == "a"
