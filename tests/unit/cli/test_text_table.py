"""Tables for people: widths, folding, and values shown as they are."""

from __future__ import annotations

import pytest

from rowlake.cli.text_table import GAP, NARROWEST, cells, columns_that_fit, text_table


def lines(names: list[str], rows: list[list[str]], width: int = 80) -> list[str]:
    to_right = [name.startswith("n") for name in names]
    return list(text_table(names, rows, to_right, width))


def test_columns_stand_side_by_side_and_numbers_to_the_right() -> None:
    assert lines(["a", "n"], [["x", "1"], ["yyy", "200"]]) == [
        " a" + " " * 2 + GAP + "  n",
        " " + "─" * 9,
        " x" + " " * 2 + GAP + "  1",
        " yyy" + GAP + "200",
    ]


@pytest.mark.parametrize("text", ["[bold]x[/bold]", ":smile: yes", "[/nope]", "\\[x]", "a`b"])
def test_values_that_look_like_markup_are_shown_as_they_are(text: str) -> None:
    assert lines(["a"], [[text]])[-1] == f" {text}"


def test_characters_that_take_two_cells_or_none_keep_columns_in_line() -> None:
    found = lines(["a", "b"], [["日本語", "x"], ["e\u0301", "x"], ["naïve", "x"]])
    assert {cells(line) for line in found[2:]} == {cells(found[2])}


def test_control_characters_do_not_reach_the_terminal() -> None:
    (shown,) = lines(["a"], [["one\ntwo\t\x1b[31mred\x07"]])[2:]
    assert shown == " one⏎two \\x1b[31mred\\x07"


@pytest.mark.parametrize("width", [30, 47, 60])
def test_long_values_are_folded_so_that_lines_fit(width: int) -> None:
    path = "s3://bucket/" + "folder/" * 20 + "file.parquet"
    found = lines(["n", "path", "comment"], [["1", path, "short"], ["2", "p", "word " * 9]], width)
    assert max(map(cells, found)) <= width
    columns = [line[1:].split(GAP) for line in found]
    assert "".join(part for line in columns[2:] for part in line).count("/") == path.count("/")


def test_no_column_gets_narrower_than_what_can_be_read() -> None:
    found = lines([f"c{at}" for at in range(9)], [["x" * 20] * 9], width=40)
    assert cells(found[1]) == 1 + 9 * NARROWEST + 8 * len(GAP)


def test_no_rows_leave_the_names() -> None:
    assert lines(["a", "n"], []) == [" a" + GAP + "n", " ─────"]


def test_columns_that_do_not_fit_are_counted():
    names = [f"column_{number:02}" for number in range(40)]
    rows = [["x" * 30] * 40]
    fit = columns_that_fit(names, rows, 80)
    assert 1 < fit < 40
    lines = list(text_table(names[:fit], [row[:fit] for row in rows], [False] * fit, 80))
    assert max(map(cells, lines)) <= 80
    assert columns_that_fit(names, rows, 3) == 1
    assert columns_that_fit(["a", "b"], [], 80) == 2
