"""Tokens of a condition, split at its operators outside of brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.predicate import Op
from rowlake.sqltext.lexer import Kind, Token

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMPARISONS = {
    "=": Op.EQ,
    "==": Op.EQ,
    "<>": Op.NE,
    "!=": Op.NE,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
}


_PREDICATE_WORDS = frozenset(
    {"BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS", "NOT", "ESCAPE"}
)


def unwrapped(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens without brackets round all of them."""
    if not is_one_bracket(tokens):
        return tokens
    opened = _run_length(tokens, "(")
    closed = _run_length(tokens[::-1], ")")
    inside = [depth for _, depth in _depths(tokens)][opened - 1 : len(tokens) - closed]
    pairs = min(opened, closed, *inside, (len(tokens) - 1) // 2)
    return tokens[pairs : len(tokens) - pairs]


def _run_length(tokens: Sequence[Token], symbol: str) -> int:
    """Return how often a symbol stands at the start of tokens."""
    return next((at for at, token in enumerate(tokens) if token.text != symbol), len(tokens))


def leading_negations(tokens: Sequence[Token]) -> int:
    """Return how many NOTs stand at the start of tokens."""
    found = (at for at, token in enumerate(tokens) if token.word != "NOT" and token.text != "!")
    return next(found, len(tokens))


def is_one_bracket(tokens: Sequence[Token]) -> bool:
    """Return True where one pair of brackets is round all tokens."""
    if len(tokens) < 3 or tokens[0].text != "(" or tokens[-1].text != ")":
        return False
    return all(depth > 0 for token, depth in _depths(tokens[:-1]) if token.text != "(")


_DEPTH_CHANGES = {"(": 1, "[": 1, ")": -1, "]": -1, "CASE": 1, "END": -1}


def _depths(tokens: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    """Yield each token with how many brackets and CASEs are open after it."""
    depth, before = 0, ""
    for token in tokens:
        text = token.text
        change = _DEPTH_CHANGES.get(text)
        if change is None and len(text) <= 4 and before != ".":
            change = _DEPTH_CHANGES.get(token.word)
        depth += change or 0
        before = text
        yield token, depth


def is_balanced(tokens: Sequence[Token]) -> bool:
    """Return False where a column is named END or CASE, which would shift what is in what."""
    depths = [depth for _, depth in _depths(tokens)]
    return min(depths) >= 0 and depths[-1] == 0


def split(tokens: Sequence[Token], word: str, *, between: bool = True) -> list[Sequence[Token]]:
    """Split at a keyword outside of brackets; the AND of a BETWEEN does not split."""
    parts: list[Sequence[Token]] = []
    start, owed = 0, 0
    for index, (token, depth) in enumerate(_depths(tokens)):
        if depth != 0 or not token.word or (index > 0 and tokens[index - 1].text == "."):
            continue
        if between and token.word == "BETWEEN":
            owed += 1
        elif token.word == "AND" and owed:
            owed -= 1
        elif token.word == word:
            parts.append(tokens[start:index])
            start = index + 1
    return [*parts, tokens[start:]]


def conjuncts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Return the parts that must all hold; one part where an OR binds less than every AND."""
    return [tokens] if len(split(tokens, "OR")) > 1 else split(tokens, "AND")


def is_operand(tokens: Sequence[Token]) -> bool:
    """Return whether tokens are one side of a comparison: nothing in them binds less than it."""
    if not tokens or operator_at(tokens) is not None:
        return False
    logical = (len(split(tokens, word)) > 1 for word in ("AND", "OR"))
    return not any(logical) and tokens[0].text != "!"


def split_commas(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """Split at commas outside of brackets."""
    parts: list[Sequence[Token]] = []
    start = 0
    for index, (token, depth) in enumerate(_depths(tokens)):
        if depth == 0 and token.text == "," and token.kind is Kind.SYMBOL:
            parts.append(tokens[start:index])
            start = index + 1
    return [*parts, tokens[start:]]


def operator_at(tokens: Sequence[Token]) -> int | None:
    """Return the place of the first comparison or predicate word outside of brackets."""
    for index, (token, depth) in enumerate(_depths(tokens)):
        if depth != 0:
            continue
        symbol = token.kind is Kind.SYMBOL and (token.text in COMPARISONS or token.text == "<=>")
        dotted = index > 0 and tokens[index - 1].text == "."
        if symbol or (token.word in _PREDICATE_WORDS and not dotted):
            return index
    return None


_NOT_COLUMNS = frozenset({"NULL", "TRUE", "FALSE", "CASE", "END", "NOT", "AND", "OR"})


def column_path(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the dotted name that the tokens are; None for anything else."""
    if len(tokens) % 2 == 0 or any(token.text != "." for token in tokens[1::2]):
        return None
    names = tokens[::2]
    if any(not token.is_name for token in names) or names[0].word in _NOT_COLUMNS:
        return None
    return tuple(token.value for token in names)
