"""DELETE, UPDATE and MERGE INTO in full, as Spark reads them.

Comes in: a cursor at the verb. Goes out: `Delete`, `Update` or `Merge`; conditions and values stay
text, which ends with its last token, so that more text can follow it. More than Spark's grammar is
taken where it is plain what is meant: the source of MERGE may also be VALUES, a table function, or
a table at a version.

The name or alias of the target before an assigned column is left out: `SET t.a = 1` assigns
`("a",)` and keeps `("t",)` aside, for a table that has no `a` but a struct column `t`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.dml.clause_rules import first_broken_rule, first_misplaced, refused_action
from rowlake.dml.operations import (
    Action,
    Assignment,
    Clause,
    Delete,
    Merge,
    Update,
    When,
    assignment,
    qualifiers,
)
from rowlake.sqltext.cursor import Cursor, take_value
from rowlake.sqltext.expression_end import CLAUSES_AFTER_WHERE
from rowlake.sqltext.lexer import TokenKind, quote, readable

if TYPE_CHECKING:
    from rowlake.sqltext.lexer import Token
    from rowlake.sqltext.names import Name

UNNAMED_SOURCE = "__source"
VERBS = ("DELETE", "UPDATE", "MERGE")

_TABLE = "the name of a table"
_TRAVEL = ("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")


def parse_row_level(cursor: Cursor, with_clause: str = "") -> Delete | Update | Merge:
    """DELETE, UPDATE or MERGE; `with_clause` is the text `WITH …` that stood before it."""
    verb = cursor.expect_one(*VERBS)
    if verb == "DELETE":
        return _delete(cursor, with_clause)
    return _update(cursor, with_clause) if verb == "UPDATE" else _merge(cursor, with_clause)


def _delete(cursor: Cursor, with_clause: str) -> Delete | Merge:
    cursor.expect("FROM")
    name, alias = _take_target(cursor, "DELETE", "WHERE", "USING")
    if cursor.accept("USING"):
        clause = Clause(When.MATCHED, Action.DELETE)
        return _of_matches(cursor, name, alias, clause, with_clause)
    return Delete(name, alias, _take_where(cursor), with_clause)


def _update(cursor: Cursor, with_clause: str) -> Update | Merge:
    name, alias = _take_target(cursor, "UPDATE", "SET")
    cursor.expect("SET")
    if _has_from(cursor):
        assignments = take_assignments(cursor, qualifiers(name, alias), "FROM")
        cursor.expect("FROM")
        clause = Clause(When.MATCHED, Action.UPDATE, None, assignments)
        return _of_matches(cursor, name, alias, clause, with_clause)
    assignments = take_assignments(cursor, qualifiers(name, alias), "WHERE")
    return Update(name, assignments, alias, _take_where(cursor), with_clause)


def _has_from(cursor: Cursor) -> bool:
    """Return whether FROM follows the assignments of UPDATE; IS DISTINCT FROM is an operator."""
    depth, ahead = 0, 0
    while cursor.peek(ahead).kind is not TokenKind.END:
        token = cursor.peek(ahead)
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.word == "WHERE":
            return False
        if depth == 0 and token.word == "FROM" and cursor.peek(ahead - 1).word != "DISTINCT":
            return True
        ahead += 1
    return False


def _of_matches(
    cursor: Cursor, name: Name, alias: str | None, clause: Clause, with_clause: str
) -> Merge:
    """Take `source WHERE condition` of UPDATE … FROM or DELETE … USING: a MERGE of one clause."""
    source, source_alias = take_source(cursor, "WHERE")
    if not cursor.at_words("WHERE"):
        verb = clause.action.value.upper()
        cursor.fail(
            f"One table, view or query in brackets and WHERE must follow; write any other {verb} "
            f"as MERGE INTO {readable(name)} USING (SELECT …) AS s ON … WHEN MATCHED THEN {verb} …"
        )
    return Merge(
        name,
        source,
        _take_where(cursor) or "",
        (clause,),
        alias,
        source_alias,
        with_clause=with_clause,
    )


def _take_where(cursor: Cursor) -> str | None:
    where = cursor.skip_expression(*CLAUSES_AFTER_WHERE) if cursor.accept("WHERE") else None
    cursor.expect_end()
    return where


def _take_target(cursor: Cursor, verb: str, *follows: str) -> tuple[Name, str | None]:
    name = cursor.dotted_name(_TABLE)
    alias = _take_alias(cursor, *follows)
    if cursor.at_symbol("("):
        cursor.fail(f"The target of {verb} cannot give its columns other names")
    return name, alias


def _take_alias(cursor: Cursor, *follows: str) -> str | None:
    """Take `[AS] alias`; the keywords that may follow are an alias only after AS."""
    if cursor.accept("AS"):
        return cursor.name("an alias")
    is_alias = cursor.current.is_name and cursor.current.word not in follows
    return cursor.name() if is_alias else None


# --- assignments


def take_assignments(
    cursor: Cursor, owners: tuple[Name, ...], *stop_words: str
) -> tuple[Assignment, ...]:
    """Take `column = value, …`; values end at a stop word."""
    found: list[Assignment] = []
    taken: set[Name] = set()
    while True:
        column = _take_column(cursor, owners, taken)
        if not cursor.accept_symbol("="):
            cursor.accept_symbol("==") or cursor.expected("=")
        found.append(replace(column, value=take_value(cursor, *stop_words)))
        if not cursor.accept_symbol(","):
            return tuple(found)


def _take_column(cursor: Cursor, owners: tuple[Name, ...], taken: set[Name]) -> Assignment:
    """Take the column of an assignment whose value is not known yet; note it as taken."""
    at = cursor.current
    found = assignment(cursor.dotted_name("a column"), "", owners)
    if found.column in taken:
        cursor.fail(f"Column {readable(found.column)} is assigned twice", at)
    taken.add(found.column)
    return found


# --- MERGE


def _merge(cursor: Cursor, with_clause: str) -> Merge:
    evolves = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    name, alias = _take_target(cursor, "MERGE", "USING")
    cursor.expect("USING")
    source, source_alias = take_source(cursor)
    cursor.expect("ON")
    condition = cursor.skip_expression("WHEN")
    clauses = _take_clauses(cursor, qualifiers(name, alias))
    return Merge(name, source, condition, clauses, alias, source_alias, evolves, with_clause)


def take_source(cursor: Cursor, follows: str = "ON") -> tuple[str, str | None]:
    """Take the source of MERGE and its alias; what is more than a name becomes a query.

    `follows` is the keyword that comes next.
    """
    first = cursor.current
    if cursor.at_symbol("("):
        query = cursor.bracketed()
        return query, _take_source_alias(cursor, follows) or UNNAMED_SOURCE
    if cursor.accept("VALUES"):
        _skip_rows(cursor, follows)
        return _selected(cursor, first, UNNAMED_SOURCE, follows)
    name = cursor.dotted_name("a table, a view or a query in brackets")
    if cursor.at_symbol("("):
        cursor.bracketed()
        return _selected(cursor, first, UNNAMED_SOURCE, follows)
    if cursor.at_words("FOR") or (cursor.current.word in _TRAVEL and cursor.peek().word == "AS"):
        _skip_travel(cursor, follows)
        return _selected(cursor, first, name[-1], follows)
    return _text(cursor, first), _take_source_alias(cursor, follows)


def _take_source_alias(cursor: Cursor, follows: str) -> str | None:
    alias = _take_alias(cursor, follows)
    if alias and cursor.at_symbol("("):
        cursor.fail("The source of MERGE cannot give its columns other names; use a query")
    return alias


def _skip_rows(cursor: Cursor, follows: str) -> None:
    while True:
        if cursor.at_symbol("("):
            cursor.bracketed()
        else:
            cursor.skip_expression("AS", follows)
        if not cursor.accept_symbol(","):
            return


def _skip_travel(cursor: Cursor, follows: str) -> None:
    cursor.accept("FOR")
    cursor.expect_one(*_TRAVEL)
    cursor.expect("AS", "OF")
    if cursor.current.kind in (TokenKind.STRING, TokenKind.NUMBER):
        cursor.advance()
    else:
        cursor.skip_expression("AS", follows)


def _selected(cursor: Cursor, first: Token, unnamed: str, follows: str) -> tuple[str, str]:
    """Return a relation as a query, in which an alias may also name the columns."""
    relation = _text(cursor, first)
    alias = _take_alias(cursor, follows) or unnamed
    columns = ""
    if cursor.at_symbol("("):
        columns = f" AS {quote(alias)}{cursor.bracketed()}"
    return f"(SELECT * FROM {relation}{columns})", alias


def _text(cursor: Cursor, first: Token) -> str:
    return cursor.text[first.start : cursor.peek(-1).end]


def _take_clauses(cursor: Cursor, owners: tuple[Name, ...]) -> tuple[Clause, ...]:
    clauses: list[Clause] = []
    places: list[Token] = []
    while cursor.at_words("WHEN"):
        places.append(cursor.advance())
        clauses.append(take_clause(cursor, _take_when(cursor), owners))
    if not cursor.at_end():
        cursor.expected("WHEN or the end of the statement")
    broken = first_broken_rule(clauses) or first_misplaced(clauses)
    if broken:
        cursor.fail(broken.text, places[broken.index] if places else cursor.current)
    return tuple(clauses)


def _take_when(cursor: Cursor) -> When:
    negated = cursor.accept("NOT") or cursor.accept_symbol("!")
    cursor.expect("MATCHED")
    if not negated:
        return When.MATCHED
    by_source = cursor.accept("BY") and cursor.expect_one("SOURCE", "TARGET") == "SOURCE"
    return When.NOT_MATCHED_BY_SOURCE if by_source else When.NOT_MATCHED


def take_clause(cursor: Cursor, when: When, owners: tuple[Name, ...]) -> Clause:
    """Take `[AND condition] THEN action`, the part of a clause after WHEN …."""
    condition = cursor.skip_expression("THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    return _take_action(cursor, when, condition, owners)


def parse_clause(text: str, when: When, owners: tuple[Name, ...]) -> Clause:
    """Return the clause of a text: an action, or `AND condition THEN action`."""
    cursor = Cursor(text)
    if cursor.current.word in ("AND", "THEN"):
        clause = take_clause(cursor, when, owners)
    else:
        clause = _take_action(cursor, when, None, owners)
    cursor.expect_end()
    return clause


def _take_action(
    cursor: Cursor, when: When, condition: str | None, owners: tuple[Name, ...]
) -> Clause:
    at = cursor.current
    action = Action(cursor.expect_one(*(action.value for action in Action)))
    refusal = refused_action(when, action)
    if refusal:
        cursor.fail(refusal, at)
    if action is Action.DELETE:
        return Clause(when, action, condition)
    take = _take_update if action is Action.UPDATE else _take_insert
    return Clause(when, action, condition, take(cursor, when, owners))


def _take_update(
    cursor: Cursor, when: When, owners: tuple[Name, ...]
) -> tuple[Assignment, ...] | None:
    cursor.expect("SET")
    if not cursor.at_symbol("*"):
        return take_assignments(cursor, owners, "WHEN")
    if when is not When.MATCHED:
        cursor.fail(f"A {when.value} clause has no source row: UPDATE SET * needs one")
    cursor.advance()
    return None


def _take_insert(
    cursor: Cursor, _: When, owners: tuple[Name, ...]
) -> tuple[Assignment, ...] | None:
    if cursor.accept_symbol("*"):
        return None
    if not cursor.at_symbol("("):
        cursor.expected("* or the columns to insert in brackets")
    columns = _take_insert_columns(cursor, owners)
    cursor.expect("VALUES")
    at = cursor.expect_symbol("(")
    values = [take_value(cursor)]
    while cursor.accept_symbol(","):
        values.append(take_value(cursor))
    cursor.expect_symbol(")")
    if len(values) != len(columns):
        counts = f"INSERT names {len(columns)} column{'s' * (len(columns) != 1)} but has"
        cursor.fail(f"{counts} {len(values)} value{'s' * (len(values) != 1)}", at)
    return tuple(replace(c, value=v) for c, v in zip(columns, values, strict=True))


def _take_insert_columns(cursor: Cursor, owners: tuple[Name, ...]) -> list[Assignment]:
    columns: list[Assignment] = []
    taken: set[Name] = set()
    cursor.expect_symbol("(")
    while True:
        columns.append(_take_column(cursor, owners, taken))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return columns
