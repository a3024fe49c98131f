"""Statements made of parts: reading them gives the parts back, whatever keywords they hold."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.dml.operations import Action, Assignment, Clause, Merge, Update, When
from rowlake.sql.parse.statement import parse

LEAVES = [
    *["a", "t.a", "s.`b c`", "t.when", "s.then", "t.end.case", "`WHEN`", "matched", "source", "by"],
    *["1", "-1.5", ".5D", "'WHEN MATCHED'", "'it''s )'", r"'\' THEN'", '"END, "', "X'00'", "NULL"],
    *[
        "DATE'2024-01-01'",
        "INTERVAL '1' DAY",
        ":p",
        "?",
        "count(*)",
        "current_date",
        "x::map<a, b>",
    ],
]
INFIX = ["+", "-", "*", "=", "<>", "<=>", "<", ">", "||", "AND", "OR", "LIKE", "DIV", "NOT LIKE"]
SHAPES = [
    "({0})",
    "f({0}, {1})",
    "{0}[{1}]",
    "NOT {0}",
    "- {0}",
    "{0} IS NOT NULL",
    "{0} IN ({1}, {2})",
    "{0} NOT IN (SELECT a FROM u WHERE {1})",
    "{0} BETWEEN {1} AND {2}",
    "CASE WHEN {0} THEN {1} END",
    "CASE WHEN {0} THEN {1} ELSE {2} END",
    "CASE {0} WHEN {1} THEN {2} END",
    "EXISTS (SELECT CASE WHEN {0} THEN 1 END FROM u WHERE {1})",
    "transform(a, (x, i) -> {0})",
    "CAST({0} AS struct<a: int, b: map<string, int>>)",
    "{0} /* WHEN ) */ + {1}",
    "{0} -- THEN (\n OR {1}",
]


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    three = st.lists(inner, min_size=3, max_size=3)
    shaped = st.builds(lambda shape, parts: shape.format(*parts), st.sampled_from(SHAPES), three)
    joined = st.builds(lambda a, op, b: f"{a} {op} {b}", inner, st.sampled_from(INFIX), inner)
    return shaped | joined


EXPRESSIONS = st.recursive(st.sampled_from(LEAVES), compound, max_leaves=12)
COLUMNS = st.sampled_from([("a",), ("b", "c"), ("when",), ("e f",), ("set",), ("values", "then")])
ASSIGNED = st.dictionaries(COLUMNS, EXPRESSIONS, min_size=1, max_size=3)


def name_text(name: tuple[str, ...]) -> str:
    return ".".join(f"`{part}`" if " " in part else part for part in name)


def set_text(values: dict[tuple[str, ...], str]) -> str:
    return ", ".join(f"{name_text(name)} = {value}" for name, value in values.items())


def assignments(values: dict[tuple[str, ...], str]) -> tuple[Assignment, ...]:
    return tuple(Assignment(name, value) for name, value in values.items())


@st.composite
def clauses(draw) -> list[tuple[str, Clause]]:
    """Clauses with their texts, in Spark's order; all but the last of a kind have a condition."""
    found = []
    for when in When:
        count = draw(st.integers(0, 2))
        for index in range(count):
            optional = EXPRESSIONS if index < count - 1 else st.none() | EXPRESSIONS
            condition = draw(optional)
            text, action, values = draw(action_of(when))
            tested = "" if condition is None else f" AND {condition}"
            clause = Clause(when, action, condition, values)
            found.append((f"WHEN {when.value}{tested} THEN {text}", clause))
    return found


@st.composite
def action_of(draw, when: When) -> tuple[str, Action, tuple[Assignment, ...] | None]:
    values = draw(ASSIGNED)
    if when is When.NOT_MATCHED:
        if draw(st.booleans()):
            return "INSERT *", Action.INSERT, None
        names = ", ".join(map(name_text, values))
        text = f"INSERT ({names}) VALUES ({', '.join(values.values())})"
        return text, Action.INSERT, assignments(values)
    if draw(st.booleans()):
        return "DELETE", Action.DELETE, ()
    if when is When.MATCHED and draw(st.booleans()):
        return "UPDATE SET *", Action.UPDATE, None
    return f"UPDATE SET {set_text(values)}", Action.UPDATE, assignments(values)


@settings(deadline=None, max_examples=150)
@given(ASSIGNED, st.none() | EXPRESSIONS)
def test_update_gives_its_parts_back(values, where) -> None:
    condition = "" if where is None else f" WHERE {where}"
    found = parse(f"UPDATE ns.t AS q SET {set_text(values)}{condition}")
    assert found == Update(("ns", "t"), assignments(values), "q", where)


@settings(deadline=None, max_examples=150)
@given(EXPRESSIONS, clauses().filter(bool))
def test_merge_gives_its_parts_back(on, made) -> None:
    text = " ".join(text for text, _ in made)
    found = parse(f"MERGE INTO ns.t AS q USING (SELECT {on}) AS s ON {on} {text}")
    expected = tuple(clause for _, clause in made)
    assert found == Merge(("ns", "t"), f"(SELECT {on})", on, expected, "q", "s")
