"""Conditions of one table as predicates: what binds to what."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.conditions.pushed import pushed_condition
from rowlake.model.predicate import And, Leaf, Op, Or
from rowlake.model.schema import FIELD_ID, Schema

SCHEMA = Schema(
    pa.schema(
        [
            pa.field(name, pa.int64(), metadata={FIELD_ID: str(number).encode()})
            for number, name in enumerate("abc", start=1)
        ]
    )
)
A, B, C = (Leaf((name,), Op.EQ, (value,)) for name, value in (("a", 1), ("b", 2), ("c", 3)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 OR b = 2 AND c = 3", Or((A, And((B, C))))),
        ("a = 1 AND b = 2 OR c = 3", Or((And((A, B)), C))),
        ("(a = 1 OR b = 2) AND c = 3", And((Or((A, B)), C))),
        ("a = 1 AND (b = 2 OR c = 3)", And((A, Or((B, C))))),
        ("a = 1 AND b = 2 AND c = 3", And((A, B, C))),
    ],
)
def test_and_binds_closer_than_or(text, expected):
    pushed = pushed_condition(text, SCHEMA)
    assert pushed.exact
    assert pushed.predicate == expected
