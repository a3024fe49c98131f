"""UPDATE, MERGE, DELETE and EXPLAIN: what they ask for, and where they are wrong."""

from __future__ import annotations

from textwrap import dedent

import pytest

from rowlake.dml.operations import (
    Action,
    Assignment,
    Clause,
    Delete,
    Explain,
    Merge,
    Update,
    When,
)
from rowlake.errors import InvalidStatementError
from rowlake.sql.parse.statement import parse
from rowlake.sql.statements import Insert, Passthrough, Query
from tests.row_level_texts import EXPRESSIONS, MISTAKES

MATCHED, NOT_MATCHED, BY_SOURCE = When.MATCHED, When.NOT_MATCHED, When.NOT_MATCHED_BY_SOURCE
NAME = ("ns", "t")


def sets(**values: str) -> tuple[Assignment, ...]:
    return tuple(Assignment((name,), value) for name, value in values.items())


def merged(rest: str, before: str = "MERGE INTO ns.t AS t USING u AS s ON t.id = s.id ") -> Merge:
    found = parse(before + rest)
    assert isinstance(found, Merge)
    return found


def clause(text: str) -> Clause:
    (only,) = merged(text).clauses
    return only


def refused(text: str) -> str:
    with pytest.raises(InvalidStatementError) as raised:
        parse(text)
    return str(raised.value)


# --- UPDATE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPDATE ns.t SET a = 1", Update(NAME, sets(a="1"))),
        ("update ns.t set a = 1;", Update(NAME, sets(a="1"))),
        ("UPDATE t SET a = 1 WHERE b > 2", Update(("t",), sets(a="1"), where="b > 2")),
        ("UPDATE ns.t AS x SET a == x.b", Update(NAME, sets(a="x.b"), "x")),
        ("UPDATE ns.t x SET x.a = 1, X.b = 2", Update(NAME, sets(a="1", b="2"), "x")),
        ("UPDATE ns.t SET t.a = 1, ns.t.b = 2", Update(NAME, sets(a="1", b="2"))),
        ("UPDATE ns.t AS x SET t.a = 1", Update(NAME, (Assignment(("t", "a"), "1"),), "x")),
        ("UPDATE ns.t SET s.a.b = 1", Update(NAME, (Assignment(("s", "a", "b"), "1"),))),
        ("UPDATE ns.t AS t SET t.t.a = 1", Update(NAME, (Assignment(("t", "a"), "1"),), "t")),
        ("UPDATE ns.t AS t SET t = 1", Update(NAME, sets(t="1"), "t")),
        ("UPDATE ns.t SET set = 1", Update(NAME, sets(set="1"))),
        ("UPDATE ns.t AS set SET set.a = 1", Update(NAME, sets(a="1"), "set")),
        ("UPDATE ns.t.branch_b SET a = 1", Update(("ns", "t", "branch_b"), sets(a="1"))),
        ("UPDATE `n s`.`t``x` SET `a.b` = 1", Update(("n s", "t`x"), sets(**{"a.b": "1"}))),
        ("UPDATE ns.t SET a = default, b = DEFAULT", Update(NAME, sets(a="DEFAULT", b="DEFAULT"))),
        ("UPDATE ns.t SET a = `default`", Update(NAME, sets(a="`default`"))),
        ("UPDATE ns.t SET a = ?, b = :b", Update(NAME, sets(a="?", b=":b"))),
        (
            "UPDATE ns.t SET a = f(b, c), d = 'x, WHERE', e = [1, 2][0] WHERE e IN (1, 2)",
            Update(NAME, sets(a="f(b, c)", d="'x, WHERE'", e="[1, 2][0]"), where="e IN (1, 2)"),
        ),
    ],
)
def test_update(text, expected) -> None:
    assert parse(text) == expected


def test_texts_end_with_their_last_token() -> None:
    found = parse(
        "UPDATE ns.t -- the target\n SET a /* why */ = 1 -- one\n, b = 2 /* two */ WHERE c = 3 -- x"
    )
    assert found == Update(NAME, sets(a="1", b="2"), where="c = 3")
    assert parse("DELETE FROM ns.t WHERE a = 1 -- x\n ; ;") == Delete(NAME, None, "a = 1")
    inner = "a = 1 -- one\n AND b /* WHEN */ = 2"
    assert parse(f"DELETE FROM ns.t WHERE {inner} -- x") == Delete(NAME, None, inner)


def test_delete() -> None:
    assert parse("DELETE FROM ns.t") == Delete(NAME)
    assert parse("DELETE FROM ns.t AS where WHERE where.a") == Delete(NAME, "where", "where.a")
    assert parse("DELETE FROM ns.t x WHERE x.a IN (SELECT 1)") == Delete(
        NAME, "x", "x.a IN (SELECT 1)"
    )


# --- expressions that hold keywords


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_keywords_inside_expressions_end_nothing(text) -> None:
    found = merged(
        f"WHEN MATCHED AND {text} THEN UPDATE SET a = {text}, b.c = {text} "
        f"WHEN NOT MATCHED AND {text} THEN INSERT (a, b) VALUES ({text}, {text}) "
        f"WHEN NOT MATCHED BY SOURCE AND {text} THEN UPDATE SET a = {text} "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE",
        f"MERGE INTO ns.t t USING u s ON {text} ",
    )
    assert found.on == text
    nested = Assignment(("b", "c"), text)
    assert found.clauses == (
        Clause(MATCHED, Action.UPDATE, text, (*sets(a=text), nested)),
        Clause(NOT_MATCHED, Action.INSERT, text, sets(a=text, b=text)),
        Clause(BY_SOURCE, Action.UPDATE, text, sets(a=text)),
        Clause(BY_SOURCE, Action.DELETE),
    )
    updated = f"UPDATE ns.t SET a = {text}, b = {text} WHERE {text}"
    assert parse(updated) == Update(NAME, sets(a=text, b=text), where=text)


@pytest.mark.parametrize(
    "word", ["when", "then", "matched", "values", "set", "not", "on", "source"]
)
def test_quoted_keywords_are_names(word) -> None:
    name = f"`{word}`"
    found = merged(
        f"WHEN MATCHED AND {name} = 1 THEN UPDATE SET {name} = {name} + {name}",
        f"MERGE INTO {name}.{name} AS {name} USING {name} {name} ON {name}.{name} = {name} ",
    )
    assert found.name == (word, word)
    assert (found.alias, found.source_alias, found.source) == (word, word, name)
    assert found.clauses[0].assignments == sets(**{word: f"{name} + {name}"})


@pytest.mark.parametrize("word", ["when", "then"])
def test_bare_keywords_are_columns_where_an_operand_stands(word) -> None:
    found = clause(f"WHEN MATCHED AND {word} = 1 OR a = {word} THEN UPDATE SET {word} = 1")
    assert found.condition == f"{word} = 1 OR a = {word}"
    assert found.assignments == sets(**{word: "1"})


# --- MERGE


def test_merge_with_everything() -> None:
    text = """
        MERGE WITH SCHEMA EVOLUTION INTO ns.t AS target USING (SELECT * FROM u) AS source
        ON target.id = source.id AND target.d > DATE'2024-01-01'
        WHEN MATCHED AND source.op = 'D' THEN DELETE
        WHEN MATCHED AND source.op = 'U' THEN UPDATE SET target.a = source.a, b.c = DEFAULT
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND source.op = 'I' THEN INSERT (target.id, a) VALUES (source.id, default)
        WHEN NOT MATCHED BY TARGET THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND target.old THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET gone = true;
    """
    assert parse(text) == Merge(
        NAME,
        "(SELECT * FROM u)",
        "target.id = source.id AND target.d > DATE'2024-01-01'",
        (
            Clause(MATCHED, Action.DELETE, "source.op = 'D'"),
            Clause(
                MATCHED,
                Action.UPDATE,
                "source.op = 'U'",
                (Assignment(("a",), "source.a"), Assignment(("b", "c"), "DEFAULT")),
            ),
            Clause(MATCHED, Action.UPDATE, None, None),
            Clause(
                NOT_MATCHED,
                Action.INSERT,
                "source.op = 'I'",
                sets(id="source.id", a="DEFAULT"),
            ),
            Clause(NOT_MATCHED, Action.INSERT, None, None),
            Clause(BY_SOURCE, Action.DELETE, "target.old"),
            Clause(BY_SOURCE, Action.UPDATE, None, sets(gone="true")),
        ),
        "target",
        "source",
        schema_evolution=True,
    )


@pytest.mark.parametrize(
    ("source", "expected", "alias"),
    [
        ("u", "u", None),
        ("ns.u", "ns.u", None),
        ("ns . `u x` AS s", "ns . `u x`", "s"),
        ("u s", "u", "s"),
        ("u AS on", "u", "on"),
        ("(SELECT 1 AS id) s", "(SELECT 1 AS id)", "s"),
        ("(SELECT ')' AS id -- )\n) AS `s 1`", "(SELECT ')' AS id -- )\n)", "s 1"),
        ("(SELECT 1 AS id)", "(SELECT 1 AS id)", "__source"),
        ("(VALUES (1, 2), (3, 4)) s", "(VALUES (1, 2), (3, 4))", "s"),
        (
            "VALUES (1, 'a'), (2, 'b') AS s(id, n)",
            "(SELECT * FROM VALUES (1, 'a'), (2, 'b') AS `s`(id, n))",
            "s",
        ),
        ("VALUES 1, 2 AS s", "(SELECT * FROM VALUES 1, 2)", "s"),
        ("VALUES (1)", "(SELECT * FROM VALUES (1))", "__source"),
        ("range(1, 5) s", "(SELECT * FROM range(1, 5))", "s"),
        ("range(5) AS s(n)", "(SELECT * FROM range(5) AS `s`(n))", "s"),
        ("ns.u VERSION AS OF 'v1' s", "(SELECT * FROM ns.u VERSION AS OF 'v1')", "s"),
        ("ns.u VERSION AS OF 5", "(SELECT * FROM ns.u VERSION AS OF 5)", "u"),
        (
            "ns.u FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY AS s",
            "(SELECT * FROM ns.u FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY)",
            "s",
        ),
        ("ns.u version", "ns.u", "version"),
    ],
)
def test_sources(source, expected, alias) -> None:
    found = merged("WHEN MATCHED THEN DELETE", f"MERGE INTO ns.t USING {source} ON id = 1 ")
    assert (found.source, found.source_alias, found.on) == (expected, alias, "id = 1")


def test_clauses_keep_their_order() -> None:
    found = merged(
        "WHEN MATCHED AND a THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN ! MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    kinds = [MATCHED, MATCHED, NOT_MATCHED, BY_SOURCE]
    assert [each.when for each in found.clauses] == kinds
    assert [each.condition for each in found.of(MATCHED)] == ["a", None]


def test_qualifiers_are_put_aside() -> None:
    found = merged("WHEN MATCHED THEN UPDATE SET t.a = 1, b = 2, T.c.d = 3")
    (only,) = found.clauses
    assert [each.qualifier for each in only.assignments or ()] == [("t",), (), ("T",)]
    updated = parse("UPDATE ns.t SET ns.t.a = 1, t.b = 2")
    assert isinstance(updated, Update)
    assert [each.qualifier for each in updated.assignments] == [("ns", "t"), ("t",)]


@pytest.mark.parametrize(
    ("target", "alias"), [("ns.t", None), ("ns.t t", "t"), ("ns.t AS using", "using")]
)
def test_targets(target, alias) -> None:
    found = merged("WHEN MATCHED THEN DELETE", f"MERGE INTO {target} USING u ON a = b ")
    assert (found.name, found.alias) == (NAME, alias)


# --- WITH and EXPLAIN


def test_with_before_row_level_statements() -> None:
    cte = "WITH c AS (SELECT ')' AS x), d (y) AS (SELECT 1) "
    assert parse(f"{cte}DELETE FROM ns.t WHERE a IN (SELECT x FROM c)") == Delete(
        NAME, None, "a IN (SELECT x FROM c)", cte
    )
    assert parse(f"-- c\n{cte}UPDATE ns.t SET a = (SELECT y FROM d)") == Update(
        NAME, sets(a="(SELECT y FROM d)"), with_clause=cte
    )
    found = merged("WHEN MATCHED THEN DELETE", f"{cte}MERGE INTO ns.t USING c ON t.a = c.x ")
    assert (found.with_clause, found.source) == (cte, "c")


@pytest.mark.parametrize("verb", ["update", "merge", "delete", "insert"])
def test_verbs_can_name_common_tables(verb) -> None:
    text = f"WITH {verb} AS (SELECT 1 AS a), b AS (SELECT 2) SELECT * FROM {verb}"
    assert parse(text) == Query(text)
    inserted = parse(f"WITH {verb} AS (SELECT 1) INSERT INTO ns.t SELECT * FROM {verb}")
    assert isinstance(inserted, Insert)


@pytest.mark.parametrize("how", ["", "EXTENDED ", "FORMATTED ", "CODEGEN ", "COST "])
@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM ns.t WHERE a = 1",
        "UPDATE ns.t SET a = 1",
        "MERGE INTO ns.t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
        "WITH c AS (SELECT 1) UPDATE ns.t SET a = 1",
    ],
)
def test_explain(how, text) -> None:
    assert parse(f"EXPLAIN {how}{text}") == Explain(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT 1",
        "EXPLAIN WITH a AS (SELECT 1) SELECT * FROM a",
        "EXPLAIN INSERT INTO t SELECT 1",
    ],
)
def test_explain_of_anything_else_is_sparks(text) -> None:
    assert parse(text) == Passthrough(text)


# --- mistakes


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_named_with_their_place(text) -> None:
    with pytest.raises(InvalidStatementError) as raised:
        parse(text)
    message = str(raised.value).split(" (line 1")[0]
    assert f"{message} @{raised.value.position}" == MISTAKES[text]
    assert raised.value.statement == text


def test_a_mistake_points_into_its_line() -> None:
    text = dedent(
        """\
        MERGE INTO ns.t
        USING u ON t.id = u.id
        WHEN NOT MATCHED THEN DELETE"""
    )
    assert refused(text) == (
        "A NOT MATCHED clause has no target row to DELETE: it can only INSERT "
        "(line 3, column 23)\n"
        "  WHEN NOT MATCHED THEN DELETE\n"
        "                        ^"
    )
