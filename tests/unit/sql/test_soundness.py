"""Random conditions, evaluated with SQL's three values: what is pushed never loses a row.

The oracle evaluates the condition's own tree; the predicate is evaluated by its definition. Where
nothing was dropped, both must select the same rows.
"""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.conditions.column_lookup import find_column
from rowlake.conditions.pushed import columns_in, pushed_condition
from rowlake.conditions.reader import ConditionReader
from rowlake.model.predicate import And, Leaf, Op, Or, Predicate
from rowlake.model.schema import Schema
from rowlake.sqltext.lexer import Lexer
from rowlake.sqltext.names import Names

SCHEMA = Schema(
    pa.schema([("x", pa.int32()), ("f", pa.float32()), ("s", pa.string()), ("b", pa.bool_())])
)
Value = object


def compared(op, left, right):
    if left is None or right is None:
        return None
    if left != left or right != right:  # NaN is equal to NaN and above all else
        left, right = (
            (left != left, right != right)
            if left != left and right != right
            else ((1, 0) if left != left else (0, 1))
        )
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def negated(value):
    return None if value is None else not value


def all_of(values):
    return False if False in values else (None if None in values else True)


def any_of(values):
    return True if True in values else (None if None in values else False)


# A condition is (text, how to evaluate it on a row, whether the reader knows it).
numbers = st.sampled_from(["-2", "-1.5", "0", "0.1", "1", "1.0", "1.5", "2", "3000000000", "NULL"])
texts = st.sampled_from(["", "a", "ab", "abc", "b"])
OPS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def number(text):
    return None if text == "NULL" else float(text)


@st.composite
def leaves(draw):
    kind = draw(st.integers(0, 9))
    column = draw(st.sampled_from(["x", "f"]))
    if kind == 0:
        op, text = draw(OPS), draw(numbers)
        return f"{column} {op} {text}", lambda row: compared(op, row[column], number(text)), True
    if kind == 1:
        items, no = draw(st.lists(numbers, min_size=1, max_size=3)), draw(st.booleans())
        word = "NOT IN" if no else "IN"

        def member(row):
            found = any_of([compared("=", row[column], number(item)) for item in items])
            return negated(found) if no else found

        return f"{column} {word} ({', '.join(items)})", member, True
    if kind == 2:
        low, high, no = draw(numbers), draw(numbers), draw(st.booleans())

        def between(row):
            value = row[column]
            found = all_of(
                [compared(">=", value, number(low)), compared("<=", value, number(high))]
            )
            return negated(found) if no else found

        return f"{column} {'NOT ' * no}BETWEEN {low} AND {high}", between, True
    if kind == 3:
        no = draw(st.booleans())
        name = draw(st.sampled_from(["x", "f", "s", "b"]))
        return f"{name} IS {'NOT ' * no}NULL", lambda row: (row[name] is None) is not no, True
    if kind == 4:
        text = draw(numbers)

        def same(row):
            one, other = row[column], number(text)
            return one is other if one is None or other is None else compared("=", one, other)

        return f"{column} <=> {text}", same, True
    if kind == 5:
        prefix, no = draw(texts), draw(st.booleans())

        def liked(row):
            found = None if row["s"] is None else row["s"].startswith(prefix)
            return negated(found) if no else found

        return f"s {'NOT ' * no}LIKE '{prefix}%'", liked, True
    if kind == 6:
        return "b", lambda row: row["b"], True
    if kind == 7:
        return "isnan(f)", lambda row: row["f"] is not None and row["f"] != row["f"], True
    if kind == 8:
        op, text = draw(OPS), draw(texts)
        return f"s {op} '{text}'", lambda row: compared(op, row["s"], text), True
    text = draw(texts)
    return (
        f"upper(s) = '{text.upper()}'",
        lambda row: None if row["s"] is None else row["s"].upper() == text.upper(),
        False,
    )


def combined(parts):
    def both(word, combine, two):
        (one, first, knows), (other, second, also) = two
        return (
            f"({one} {word} {other})",
            lambda row: combine([first(row), second(row)]),
            knows and also,
        )

    pairs = st.tuples(parts, parts)
    return st.one_of(
        pairs.map(lambda two: both("AND", all_of, two)),
        pairs.map(lambda two: both("OR", any_of, two)),
        parts.map(lambda one: (f"NOT ({one[0]})", lambda row: negated(one[1](row)), one[2])),
    )


conditions = st.recursive(leaves(), combined, max_leaves=8)
rows = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, -(2**31), -2, -1, 0, 1, 2, 2**31 - 1]),
        "f": st.sampled_from([None, -2.0, -1.5, -0.0, 0.0, 0.10000000149011612, 1.5, float("nan")]),
        "s": st.sampled_from([None, "", "a", "ab", "abcd", "b", "B"]),
        "b": st.sampled_from([None, True, False]),
    }
)


def holds(predicate: Predicate, row) -> bool:
    """Return whether a predicate is TRUE, by its definition."""
    if isinstance(predicate, And):
        return all(holds(part, row) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(holds(part, row) for part in predicate.parts)
    return leaf_holds(predicate, row[predicate.path[0]])


def leaf_holds(leaf: Leaf, value) -> bool:
    if leaf.op is Op.IS_NULL:
        return value is None
    if value is None:
        return False
    if leaf.op in (Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN):
        return leaf.op is Op.NOT_NULL or (value != value) is (leaf.op is Op.IS_NAN)
    if leaf.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return value.startswith(leaf.value) is (leaf.op is Op.STARTS_WITH)
    if leaf.op in (Op.IN, Op.NOT_IN):
        found = any(compared("=", value, item) for item in leaf.values)
        return found is (leaf.op is Op.IN)
    text = "<>" if leaf.op is Op.NE else leaf.op.value
    return compared(text, value, leaf.value) is True


def test_one_condition_over_a_table():
    found = pushed_condition("X = 1 AND upper(s) = 'A'", SCHEMA)
    assert found == (Leaf(("x",), Op.EQ, (1,)), False)
    assert pushed_condition("b", SCHEMA).exact
    assert columns_in("X = 1 OR upper(`S`) = 'f'", SCHEMA) == ["x", "s"]


@settings(max_examples=400, deadline=None)
@given(conditions, st.lists(rows, min_size=1, max_size=8))
def test_pushed_predicates_keep_every_row_that_the_condition_selects(condition, table):
    text, evaluate, known = condition
    known = known and "3000000000" not in text  # not certain beside a float
    reader = ConditionReader(lambda path: find_column(SCHEMA, path, Names()), {})
    pushed = reader.read(Lexer(text).all()[:-1])
    if pushed is None:
        assert not known
        return
    for row in table:
        if evaluate(row) is True:
            assert holds(pushed.predicate, row), (text, row, pushed)
        elif pushed.exact:
            assert not holds(pushed.predicate, row), (text, row, pushed)
    assert pushed.exact or not known
