"""Statements of absurd size or depth: each way in reads them, or refuses them with a place.

No time is asserted: what took minutes or forever before runs into the suite's time limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowlake.conditions.pushed import pushed_condition
from rowlake.dml.python_arguments import assignments_of, condition_of, match_of, value_of
from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import TRUE, Leaf, Op, leaves
from rowlake.model.schema import Schema
from rowlake.query.pushdown import push_down
from rowlake.query.row_condition import RowCondition, pushed_rows
from rowlake.sql.parse.statement import parse
from rowlake.sqltext.lexer import Lexer
from rowlake.sqltext.limits import MAX_DEPTH, MAX_FOLLOWED, MAX_OPERATORS, MAX_TYPE_DEPTH
from rowlake.sqltext.literal_text import literal_text
from rowlake.sqltext.statement_list import split_statements
from rowlake.sqltext.types import parse_type
from tests.unit.sql.lake_without_spark import Engine

if TYPE_CHECKING:
    from collections.abc import Callable


def _field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


SCHEMA = Schema(pa.schema([_field("id", pa.int64(), 1), _field("v", pa.string(), 2)]))
TABLE = ("ns", "t")


def lookup(parts: tuple[str, ...]) -> Schema | None:
    return SCHEMA if parts == TABLE else None


WAYS_IN: dict[str, Callable[[str], object]] = {
    "query": lambda c: push_down(f"SELECT * FROM ns.t WHERE {c}", lookup),
    "delete": lambda c: parse(f"DELETE FROM ns.t WHERE {c}"),
    "update": lambda c: parse(f"UPDATE ns.t SET v = 'x' WHERE {c}"),
    "merge": lambda c: parse(f"MERGE INTO ns.t USING s ON {c} WHEN MATCHED THEN DELETE"),
    "explain": lambda c: parse(f"EXPLAIN DELETE FROM ns.t WHERE {c}"),
    "call": lambda c: parse(f"CALL system.rewrite_data_files(table => 'ns.t', x => {c})"),
    "default": lambda c: parse(f"CREATE TABLE ns.t (a boolean DEFAULT ({c}))"),
    "where": lambda c: pushed_condition(c, SCHEMA),
    "condition": condition_of,
    "value": value_of,
    "set": lambda c: assignments_of({"v": c}, (), "set"),
    "on": lambda c: match_of(c, "t", "s"),
    "rewrite": lambda c: pushed_rows(Engine(), RowCondition(c, SCHEMA, "t")),  # type: ignore[arg-type]
}


def nested(count: int, before: str, after: str, inside: str = "id = 1") -> str:
    return before * count + inside + after * count


TOO_DEEP = {
    "brackets": nested(50_000, "(", ")"),
    "unclosed brackets": "(" * 50_000,
    "brackets of mixed kinds": "([{" * 20_000,
    "negations": nested(20_000, "NOT ", ""),
    "negations in brackets": nested(20_000, "NOT (", ")"),
    "signs": nested(20_000, "- ", "", "id"),
    "cases": nested(20_000, "CASE WHEN id = 1 THEN ", " END"),
    "calls": nested(20_000, "coalesce(", ")"),
    "subqueries": nested(20_000, "id IN (SELECT id FROM ns.t WHERE ", ")"),
    "alternatives": nested(20_000, "(id = 1 AND (v = 'a' OR ", "))"),
    "a sum": "id = " + " + ".join(["1"] * 50_000),
    "a text": "v = " + " || ".join(["'x'"] * 50_000),
    "a type": "id = CAST(NULL AS " + nested(20_000, "array<", ">", "int") + ")",
}


@pytest.mark.parametrize("way", WAYS_IN)
@pytest.mark.parametrize("shape", TOO_DEEP)
def test_what_is_nested_too_deep_is_refused_with_its_place(shape: str, way: str) -> None:
    with pytest.raises(InvalidStatementError, match="nested too deep") as raised:
        WAYS_IN[way](TOO_DEEP[shape])
    assert raised.value.position
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize("way", ["query", "where", "rewrite"])
def test_brackets_that_others_close_are_counted_too(way: str) -> None:
    with pytest.raises(InvalidStatementError, match="nested too deep"):
        WAYS_IN[way](nested(20_000, "(]", ""))


@pytest.mark.parametrize("way", WAYS_IN)
@pytest.mark.parametrize(
    "text",
    [
        nested(MAX_DEPTH - 5, "(", ")"),
        nested(MAX_DEPTH - 5, "NOT ", ""),
        "id = 1 AND " + nested(MAX_DEPTH // 2 - 5, "(id = 1 OR (id = 2 AND ", "))"),
        nested(MAX_DEPTH - 5, "coalesce(", ")"),
    ],
    ids=["brackets", "negations", "alternatives", "calls"],
)
def test_what_is_nested_less_deep_never_exhausts_the_stack(text: str, way: str) -> None:
    try:
        WAYS_IN[way](text)
    except InvalidStatementError as error:
        assert way == "rewrite", error  # the filter is no plain comparison


def test_brackets_around_a_condition_do_not_hide_it() -> None:
    for count in (1, 2, 100, MAX_DEPTH - 1):
        found = pushed_condition(nested(count, "(", ")"), SCHEMA)
        assert found.exact
        assert found.predicate == Leaf(("id",), Op.EQ, (1,))
    both = pushed_condition("((id) = (1)) AND (((v = 'a')))", SCHEMA).predicate
    assert [leaf.path for leaf in leaves(both)] == [("id",), ("v",)]
    assert not pushed_condition("()", SCHEMA).exact
    assert not pushed_condition("((id = 1)", SCHEMA).exact


@pytest.mark.parametrize(("count", "op"), [(2, Op.EQ), (3, Op.NE), (400, Op.EQ), (401, Op.NE)])
def test_negations_in_a_row_cancel_each_other(count: int, op: Op) -> None:
    assert pushed_condition(nested(count, "NOT ", ""), SCHEMA).predicate == Leaf(("id",), op, (1,))
    assert pushed_condition(nested(count, "! ", ""), SCHEMA).predicate == Leaf(("id",), op, (1,))


# --- queries inside one another


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT * FROM ((", ") JOIN x)"),
        ("SELECT * FROM ((", ") y)"),
        ("SELECT ((", ") + 1)"),
        ("SELECT 1 WHERE EXISTS ((", "))"),
        ("SELECT * FROM ((", "|> WHERE true))"),
        ("VALUES ((", ") |>)"),
    ],
)
def test_nested_queries_are_read_once_and_not_twice_at_each_level(before: str, after: str) -> None:
    text = nested(MAX_FOLLOWED // 2 - 2, before, after, "SELECT id FROM ns.t")
    assert len(push_down(text, lookup).scans) == 1


def test_queries_in_brackets_beside_others_are_followed() -> None:
    text = "SELECT * FROM ((SELECT id FROM ns.t WHERE id = 3) UNION (SELECT 1)) a JOIN ((ns.t)) b"
    first, second = push_down(text, lookup).scans
    assert first.predicate == Leaf(("id",), Op.EQ, (3,))
    assert second.predicate is None
    text = "SELECT 1 WHERE ((SELECT max(id) FROM ns.t WHERE id < 4) + 1) > 2"
    (only,) = push_down(text, lookup).scans
    assert only.predicate == Leaf(("id",), Op.LT, (4,))


@pytest.mark.parametrize(
    "text",
    [
        nested(MAX_DEPTH - 2, "SELECT * FROM (", ") t", "SELECT * FROM ns.t"),
        "SELECT * FROM " + nested(MAX_DEPTH - 2, "(", ")", "ns.t"),
        "SELECT * FROM ns.t " + "JOIN x " * 3_000,
        nested(MAX_DEPTH - 2, "SELECT * FROM (x JOIN (", "))", "SELECT * FROM ns.t")[:9_000],
    ],
    ids=["subqueries", "brackets", "joins", "cut off"],
)
def test_queries_too_deep_to_follow_are_left_to_spark(text: str) -> None:
    try:
        rewritten = push_down(text, lookup)
    except InvalidStatementError as error:
        assert "nested too deep" in str(error)
    else:
        assert all(scan.predicate is None for scan in rewritten.scans)


def test_many_joins_are_followed() -> None:
    text = "SELECT id FROM ns.t " + "CROSS JOIN x " * 150 + "WHERE ns.t.id = 7"
    (scan,) = push_down(text, lookup).scans
    assert scan.target.table == TABLE


# --- long, not deep


@pytest.mark.parametrize("count", [100, 20_000])
@pytest.mark.parametrize("word", ["IN", "NOT IN"])
def test_long_lists_are_pushed_down_whole(word: str, count: int) -> None:
    listed = ", ".join(map(str, range(count)))
    found = pushed_condition(f"id {word} ({listed})", SCHEMA)
    assert found.exact
    assert isinstance(found.predicate, Leaf)
    assert found.predicate.values == tuple(range(count))


@pytest.mark.parametrize(("word", "test", "op"), [("OR", "=", Op.IN), ("AND", "<>", Op.NOT_IN)])
def test_long_chains_become_lists(word: str, test: str, op: Op) -> None:
    chain = f" {word} ".join(f"id {test} {number}" for number in range(20_000))
    found = pushed_condition(chain if word == "OR" else f"({chain})", SCHEMA)
    assert found.exact
    assert found.predicate == Leaf(("id",), op, tuple(range(20_000)))


def test_chains_of_other_tests_keep_all_of_them() -> None:
    chain = " OR ".join(f"id = {n} AND v = 'x{n}'" for n in range(5_000)) + " OR v = 'y'"
    found = pushed_condition(chain, SCHEMA)
    assert found.exact
    assert sum(1 for _ in leaves(found.predicate)) == 10_001


def test_a_short_chain_stays_as_it_was_written() -> None:
    found = pushed_condition("id = 1 OR id = 2 OR v = 'a'", SCHEMA).predicate
    assert [leaf.op for leaf in leaves(found)] == [Op.EQ] * 3


@pytest.mark.parametrize(
    "text",
    [
        "v = '" + "a" * 10_000_000 + "'",
        "v = '" + "\\n''" * 100_000 + "'",
        "-- x\n" * 200_000 + "id = 1",
        "/* x */" * 200_000 + "id = 1",
        "/*" * 50_000 + "*/" * 50_000 + "id = 1",
        "`" + "a" * 1_000_000 + "` = 1",
        "a" * 1_000_000 + " = 1",
        "id = 1" + " " * 1_000_000,
    ],
    ids=["text", "escapes", "comments", "blocks", "nested", "quoted", "name", "space"],
)
def test_long_tokens_are_read(text: str) -> None:
    assert condition_of(text)
    pushed_condition(text, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "v = '" + "a" * 1_000_000,
        "v = '" + "''" * 500_000,
        "v = '" + "\\'" * 500_000,
        'v = "' + '""' * 500_000,
        "v = `" + "``" * 500_000 + "a",
        "/*" * 500_000,
        "#" * 500_000,
    ],
    ids=["quote", "doubled", "escaped", "double quotes", "backticks", "comment", "character"],
)
def test_what_is_not_closed_is_refused_in_a_short_text(text: str) -> None:
    with pytest.raises(InvalidStatementError) as raised:
        condition_of(text)
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize("number", ["1" * 100_000, "1e" + "9" * 30 + "BD", "1." + "1" * 99_999])
def test_numbers_that_no_type_holds_are_left_to_spark(number: str) -> None:
    assert pushed_condition(f"id = {number}", SCHEMA).predicate == TRUE


def test_a_number_too_long_for_an_option_is_refused() -> None:
    with pytest.raises(InvalidStatementError, match="too long"):
        parse(f"CREATE TABLE ns.t (a int) PARTITIONED BY (bucket({'9' * 5_000}, a))")
    with pytest.raises(InvalidStatementError, match="38 digits"):
        literal_text(10**5_000)


def test_wide_statements_are_read() -> None:
    columns = ", ".join(f"c{number} int" for number in range(5_000))
    assert len(parse(f"CREATE TABLE ns.t ({columns})").columns or ()) == 5_000  # type: ignore[union-attr]
    clauses = " ".join(
        f"WHEN MATCHED AND s.id = {number} THEN UPDATE SET v = 'x'" for number in range(1_000)
    )
    merge = parse(f"MERGE INTO ns.t USING s ON t.id = s.id {clauses}")
    assert len(merge.clauses) == 1_000  # type: ignore[union-attr]
    items = ", ".join(f"id + {number} AS c{number}" for number in range(5_000))
    assert len(push_down(f"SELECT {items} FROM ns.t", lookup).scans) == 1


def test_a_statement_with_more_words_than_the_limit_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("rowlake.sqltext.lexer.MAX_TOKENS", 100)
    assert len(Lexer("1," * 49).all()) == 99
    with pytest.raises(InvalidStatementError, match="more than 100 words"):
        Lexer("1," * 60).all()


def test_operators_are_counted_for_each_expression() -> None:
    items = ", ".join(["(1 + 2) * 3"] * MAX_OPERATORS)
    assert Lexer(f"SELECT {items}").all()
    assert Lexer(" AND ".join(["a + b > c"] * MAX_OPERATORS)).all()


def test_a_statement_that_is_no_unicode_text_is_refused() -> None:
    with pytest.raises(InvalidStatementError, match="no Unicode text") as raised:
        parse("CREATE TABLE ns.t (`\ud800` int)")
    assert raised.value.position == 20


# --- types


@pytest.mark.parametrize("before", ["array<", "map<int, ", "struct<a: ", "struct<and: ", "list<"])
def test_types_nested_too_deep_are_refused(before: str) -> None:
    text = nested(MAX_TYPE_DEPTH - 1, before, ">", "int")
    assert parse_type(text)
    for count in (MAX_TYPE_DEPTH + 1, 5_000):
        deep = nested(count, before, ">", "int")
        with pytest.raises(InvalidStatementError, match="nested too deep"):
            parse_type(deep)
        with pytest.raises(InvalidStatementError, match="nested too deep"):
            parse(f"CREATE TABLE ns.t (a {deep})")


# --- several statements


def test_many_statements_are_split() -> None:
    statements, left = split_statements("SELECT ';' /* ; */;\n" * 5_000 + "SELECT")
    assert (len(statements), left.strip()) == (5_000, "SELECT")


@pytest.mark.parametrize("text", ["SELECT " + "(" * 600 + ";", "SELECT # 1;"])
def test_a_statement_that_cannot_be_read_is_handed_out_to_say_why(text: str) -> None:
    assert split_statements(text) == ([text], "")


@pytest.mark.parametrize("text", ["SELECT 'a;", "SELECT /* a;", 'SELECT "a;', "SELECT `a;", "# a"])
def test_a_statement_that_goes_on_is_waited_for(text: str) -> None:
    assert split_statements(text) == ([], text)


@pytest.mark.parametrize(
    "text",
    [
        " UNION ALL ".join(["SELECT * FROM ns.t"] * 1_500),
        " UNION ALL ".join(["SELECT ns.t.id FROM ns.t WHERE id = 1"] * 1_500),
        "SELECT 1 WHERE " + " AND ".join(["EXISTS (SELECT * FROM ns.t)"] * 1_500),
    ],
    ids=["stars", "names", "subqueries"],
)
def test_many_references_to_tables_are_rewritten(text: str) -> None:
    assert len(push_down(text, lookup).scans) == 1_500


def test_many_assignments_are_read_and_each_column_once() -> None:
    values = ", ".join(f"c{number} = {number}" for number in range(5_000))
    assert len(parse(f"UPDATE ns.t SET {values}").assignments) == 5_000  # type: ignore[union-attr]
    with pytest.raises(InvalidStatementError, match="assigned twice"):
        parse(f"UPDATE ns.t SET {values}, c7 = 1")
