"""Conditions of a query to predicates.

Comes in: the tokens of a boolean expression and a way to resolve its columns to those of one
table. Goes out: a predicate that is TRUE at least wherever the condition is (so that it may be
used to leave rows out before Spark evaluates the condition), and whether it is TRUE only there.

Negation is carried down to the tests, so every part is positive: of an AND what cannot be said
is dropped, of an OR all must be said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from rowlake.conditions.comparisons import ComparedColumn, compare, is_boolean, is_floating, is_text
from rowlake.conditions.token_groups import (
    COMPARISONS,
    column_path,
    is_balanced,
    is_one_bracket,
    leading_negations,
    operator_at,
    split,
    split_commas,
    unwrapped,
)
from rowlake.conditions.transform_calls import transform_call, transformed
from rowlake.model.predicate import (
    FALSE,
    MAX_NESTING,
    NEGATED,
    TRUE,
    And,
    Leaf,
    Op,
    Or,
    Predicate,
    conjunction,
    disjunction,
    nesting,
)
from rowlake.sqltext.lexer import QUERY_STARTS, Token
from rowlake.sqltext.limits import CONDITION_TOKENS, MAX_CONDITION_DEPTH
from rowlake.sqltext.literals import Literal, literal_of

Resolve = Callable[[tuple[str, ...]], "ComparedColumn | None"]

_FLIPPED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
# Comparisons with one column that stay comparisons; more become a list.
FEW_TESTS = 16


class Pushed(NamedTuple):
    """A predicate, and whether it is exactly the condition (else it only follows from it)."""

    predicate: Predicate
    exact: bool = True


class ConditionReader:
    """Reads conditions over the columns of one table."""

    def __init__(self, resolve: Resolve, arguments: Mapping[str | int, Any]) -> None:
        self.resolve, self.arguments = resolve, arguments
        self.depth, self.allowed = 0, CONDITION_TOKENS

    def read(self, tokens: Sequence[Token], *, negated: bool = False) -> Pushed | None:
        """Return what a condition (or its negation) says of the table; None for nothing.

        Also None where it is nested so deep that reading it would take too long.
        """
        self.allowed += 0 if self.depth else 20 * len(tokens)
        self.allowed -= len(tokens)
        if self.depth >= MAX_CONDITION_DEPTH or self.allowed < 0:
            return None
        self.depth += 1
        try:
            found = self._read(unwrapped(tokens), negated)
        finally:
            self.depth -= 1
        if found is None or self.depth or nesting(found.predicate) <= MAX_NESTING:
            return found
        return None

    def _read(self, tokens: Sequence[Token], negated: bool) -> Pushed | None:
        if not tokens or tokens[0].word in QUERY_STARTS or not is_balanced(tokens):
            return None
        for word, is_any in (("OR", not negated), ("AND", negated)):
            parts = split(tokens, word)
            if len(parts) > 1:
                return _combined([self.read(p, negated=negated) for p in parts], is_any=is_any)
        negations = leading_negations(tokens)
        if negations:
            return self.read(tokens[negations:], negated=negated is (negations % 2 == 0))
        return self._test(tokens, negated)

    # --- one test

    def _test(self, tokens: Sequence[Token], negated: bool) -> Pushed | None:
        at = operator_at(tokens)
        if at is None:
            return self._bare(tokens, negated)
        left, operator, right = tokens[:at], tokens[at], tokens[at + 1 :]
        if operator.text == "<=>":
            return self._null_safe(left, right, negated)
        if operator.text in COMPARISONS:
            return self._comparison(left, COMPARISONS[operator.text], right, negated)
        if operator.word == "NOT":
            if not right or right[0].word not in ("BETWEEN", "IN", "LIKE"):
                return None
            operator, right, negated = right[0], right[1:], not negated
        tests = {"BETWEEN": self._between, "IN": self._in, "LIKE": self._like, "IS": self._is}
        test = tests.get(operator.word)
        return test(left, right, negated) if test else None

    def _column(self, tokens: Sequence[Token]) -> ComparedColumn | None:
        tokens = unwrapped(tokens)
        path = column_path(tokens)
        if path:
            return self.resolve(path)
        call = transform_call(tokens)
        inner = None if call is None else self._column(call.argument)
        return None if call is None or inner is None else transformed(inner, call.transform)

    def _literal(self, tokens: Sequence[Token]) -> Literal | None:
        return literal_of(unwrapped(tokens), self.arguments)

    def _bare(self, tokens: Sequence[Token], negated: bool) -> Pushed | None:
        """Read a boolean column, TRUE, FALSE, or one of a few functions."""
        column = self._column(tokens)
        if column is not None:
            return Pushed(column.leaf(Op.EQ, not negated)) if is_boolean(column) else None
        literal = self._literal(tokens)
        if literal is not None and literal.kind in ("boolean", "null"):
            return Pushed(TRUE if literal.value is (not negated) else FALSE)
        return self._function(tokens, negated)

    def _function(self, tokens: Sequence[Token], negated: bool) -> Pushed | None:
        if len(tokens) < 4 or tokens[1].text != "(" or not is_one_bracket(tokens[1:]):
            return None
        name, arguments = tokens[0].word, split_commas(tokens[2:-1])
        column = self._column(arguments[0])
        if column is None:
            return None
        if name in ("ISNULL", "ISNOTNULL") and len(arguments) == 1:
            wants_null = (name == "ISNULL") is not negated
            return Pushed(column.is_null if wants_null else column.not_null)
        if name == "ISNAN" and len(arguments) == 1 and is_floating(column):
            found = column.leaf(Op.IS_NAN)
            return Pushed(
                disjunction(column.leaf(Op.NOT_NAN), column.is_null) if negated else found
            )
        if name == "STARTSWITH" and len(arguments) == 2 and is_text(column):
            return self._starts_with(column, arguments[1], negated)
        return None

    def _starts_with(
        self, column: ComparedColumn, argument: Sequence[Token], negated: bool
    ) -> Pushed | None:
        prefix = self._literal(argument)
        if prefix is None or prefix.kind != "string":
            return None
        return Pushed(_prefixed(column, prefix.value, negated))

    def _comparison(
        self, left: Sequence[Token], op: Op, right: Sequence[Token], negated: bool
    ) -> Pushed | None:
        column, literal = self._column(left), self._literal(right)
        if column is None:
            column, literal, op = self._column(right), self._literal(left), _FLIPPED.get(op, op)
        if column is None or literal is None:
            return self._constant(left, op, right, negated)
        found = compare(column, NEGATED[op] if negated else op, literal)
        return None if found is None else Pushed(found)

    def _constant(
        self, left: Sequence[Token], op: Op, right: Sequence[Token], negated: bool
    ) -> Pushed | None:
        """Two whole numbers, as in `1 = 0`."""
        one, other = self._literal(left), self._literal(right)
        if one is None or other is None or {one.kind, other.kind} != {"integer"}:
            return None
        if op not in (Op.EQ, Op.NE):
            return None
        holds = (one.value == other.value) is (op is Op.EQ)
        return Pushed(TRUE if holds is not negated else FALSE)

    def _null_safe(
        self, left: Sequence[Token], right: Sequence[Token], negated: bool
    ) -> Pushed | None:
        column, literal = self._column(left), self._literal(right)
        if column is None:
            column, literal = self._column(right), self._literal(left)
        if column is None or literal is None:
            return None
        if literal.kind == "null":
            return Pushed(column.not_null if negated else column.is_null)
        found = compare(column, Op.NE if negated else Op.EQ, literal)
        if found is None:
            return None
        return Pushed(disjunction(found, column.is_null) if negated else found)

    def _between(
        self, left: Sequence[Token], right: Sequence[Token], negated: bool
    ) -> Pushed | None:
        parts = split(right, "AND", between=False)
        column = self._column(left)
        if column is None or len(parts) != 2:
            return None
        low, high = self._literal(parts[0]), self._literal(parts[1])
        if low is None or high is None:
            return None
        ops = (Op.LT, Op.GT) if negated else (Op.GE, Op.LE)
        bounds = [compare(column, op, value) for op, value in zip(ops, (low, high), strict=True)]
        if any(bound is None for bound in bounds):
            return None
        combine = disjunction if negated else conjunction
        return Pushed(combine(*(bound for bound in bounds if bound is not None)))

    def _in(self, left: Sequence[Token], right: Sequence[Token], negated: bool) -> Pushed | None:
        column = self._column(left)
        if column is None or not is_one_bracket(right):
            return None
        values: list[Literal] = []
        for item in split_commas(right[1:-1]):
            literal = self._literal(item)
            if literal is None:
                return None
            values.append(literal)
        found = membership(column, values, negated=negated)
        return None if found is None else Pushed(found)

    def _like(self, left: Sequence[Token], right: Sequence[Token], negated: bool) -> Pushed | None:
        column, pattern = self._column(left), self._literal(right)
        if column is None or not is_text(column) or pattern is None or pattern.kind != "string":
            return None
        return _matching(column, pattern.value, negated)

    def _is(self, left: Sequence[Token], right: Sequence[Token], negated: bool) -> Pushed | None:
        if right and right[0].word == "NOT":
            negated, right = not negated, right[1:]
        if len(right) > 2 and right[0].word == "DISTINCT" and right[1].word == "FROM":
            return self._null_safe(left, right[2:], not negated)
        column = self._column(left)
        if column is None or len(right) != 1:
            return None
        if right[0].word == "NULL" or (right[0].word == "UNKNOWN" and is_boolean(column)):
            return Pushed(column.not_null if negated else column.is_null)
        if right[0].word not in ("TRUE", "FALSE") or not is_boolean(column):
            return None
        wanted = right[0].word == "TRUE"
        if not negated:
            return Pushed(column.leaf(Op.EQ, wanted))
        return Pushed(disjunction(column.leaf(Op.EQ, not wanted), column.is_null))


def _combined(parts: list[Pushed | None], *, is_any: bool) -> Pushed | None:
    known = [part for part in parts if part is not None]
    if is_any:
        if len(known) < len(parts):
            return None
        found = _merged(disjunction(*(p.predicate for p in known)), Or, Op.EQ, Op.IN)
        return Pushed(found, all(p.exact for p in known))
    if not known:
        return None
    exact = len(known) == len(parts) and all(part.exact for part in known)
    found = _merged(conjunction(*(p.predicate for p in known)), And, Op.NE, Op.NOT_IN)
    return Pushed(found, exact)


def _merged(predicate: Predicate, kind: type[And] | type[Or], one: Op, many: Op) -> Predicate:
    """Make `a = 1 OR a = 2 OR …` one IN, so that a long chain costs as little as a list."""
    parts = predicate.parts if isinstance(predicate, kind) else ()
    values: dict[tuple[str, ...], dict[Any, None]] = {}
    for part in parts:
        if isinstance(part, Leaf) and part.op is one and part.transform is None:
            values.setdefault(part.path, {})[part.value] = None
    several = {path for path, found in values.items() if len(found) > FEW_TESTS}
    if not several:
        return predicate
    lists = [Leaf(path, many, tuple(values[path])) for path in values if path in several]
    return (disjunction if kind is Or else conjunction)(
        *lists,
        *(p for p in parts if not _is_listed(p, one, several)),
    )


def _is_listed(part: Predicate, op: Op, paths: Set[tuple[str, ...]]) -> bool:
    if not isinstance(part, Leaf) or part.op is not op:
        return False
    return part.transform is None and part.path in paths


_IN_GROUPS = (
    frozenset({"integer", "decimal"}),
    frozenset({"double"}),
    frozenset({"float"}),
    frozenset({"string"}),
    frozenset({"boolean"}),
    frozenset({"binary"}),
    frozenset({"date"}),
    frozenset({"timestamp"}),
)


def membership(column: ComparedColumn, values: list[Literal], *, negated: bool) -> Predicate | None:
    """Return `column [NOT] IN (values)`; None where a value's comparison is not certain."""
    kinds = {value.kind for value in values if value.kind != "null"}
    if not any(kinds <= group for group in _IN_GROUPS):
        return None
    if kinds == {"string"} and not (is_text(column) or _reads_text_as_itself(column)):
        return None
    if negated and any(value.kind == "null" for value in values):
        return FALSE
    wanted = [value for value in values if value.kind != "null"]
    tests = [compare(column, Op.NE if negated else Op.EQ, value) for value in wanted]
    if any(test is None for test in tests):
        return None
    plain, other = _partitioned([test for test in tests if test is not None])
    many = [column.leaf(Op.NOT_IN if negated else Op.IN, *plain)] if len(plain) > 1 else []
    single = [column.leaf(Op.NE if negated else Op.EQ, plain[0])] if len(plain) == 1 else []
    return (conjunction if negated else disjunction)(*many, *single, *other)


def _reads_text_as_itself(column: ComparedColumn) -> bool:
    """Dates and uuids are the same whether Spark compares them as text or as values."""
    kind = str(column.field.type)
    return kind.startswith(("date", "fixed_size_binary"))


def _partitioned(tests: list[Predicate]) -> tuple[list[Any], list[Predicate]]:
    """Return the values of plain comparisons and the other tests, each once."""
    plain: dict[Any, None] = {}
    other: dict[Predicate, None] = {}
    for test in tests:
        if isinstance(test, Leaf) and test.op in (Op.EQ, Op.NE):
            plain[test.value] = None
        else:
            other[test] = None
    return list(plain), list(other)


def _prefixed(column: ComparedColumn, prefix: str, negated: bool) -> Predicate:
    if not prefix:
        return FALSE if negated else column.not_null
    return column.leaf(Op.NOT_STARTS_WITH if negated else Op.STARTS_WITH, prefix)


def _matching(column: ComparedColumn, pattern: str, negated: bool) -> Pushed | None:
    """Read a LIKE pattern: all of it where it is a prefix or plain text, else what follows."""
    if "\\" in pattern:
        return None
    wild = min((pattern.find(c) for c in "%_" if c in pattern), default=-1)
    if wild < 0:
        return Pushed(column.leaf(Op.NE if negated else Op.EQ, pattern))
    prefix, rest = pattern[:wild], pattern[wild:]
    if set(rest) == {"%"}:
        return Pushed(_prefixed(column, prefix, negated))
    return None if negated else Pushed(_prefixed(column, prefix, negated), exact=False)


# --- tokens
