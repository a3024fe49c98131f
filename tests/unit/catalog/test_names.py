from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlake.errors import InvalidStatementError
from rowlake.model.names import folder_name, levels_of, near, quoted, table_levels


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("t", ("t",)),
        ("ns.t", ("ns", "t")),
        ("a.b.t", ("a", "b", "t")),
        ("`a.b`.`my table`", ("a.b", "my table")),
        ("`tick``ed`.t", ("tick`ed", "t")),
        ("ns.Größe-1 x", ("ns", "Größe-1 x")),
        (" ns . t ", ("ns", "t")),
        ("日本.テーブル", ("日本", "テーブル")),
    ],
)
def test_text_is_split_at_dots_outside_backticks(text: str, levels: tuple[str, ...]) -> None:
    assert levels_of(text) == levels
    assert levels_of(levels) == levels


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`b`", "``.t", "`a`b.c"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidStatementError, match="not a name"):
        levels_of(text)


def test_empty_tuples_and_empty_levels_are_refused() -> None:
    for levels in ((), ("a", "")):
        with pytest.raises(InvalidStatementError):
            levels_of(levels)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_quoted_names_read_back(levels: list[str]) -> None:
    assert levels_of(quoted(levels)) == tuple(levels)


def test_a_table_without_a_namespace_is_in_the_default_one() -> None:
    assert table_levels("a.t") == ("a", "t")
    assert table_levels("t") == ("default", "t")


def test_near_names_ignore_case() -> None:
    assert near("Ordrs", ["orders", "customers"]) == ("orders",)
    assert near("zzz", ["orders"]) == ()


@pytest.mark.parametrize("level", [".", "..", "a/b", "nul\0"])
def test_names_that_would_lead_elsewhere_are_no_folders(level: str) -> None:
    with pytest.raises(InvalidStatementError, match="folder"):
        folder_name(level)
