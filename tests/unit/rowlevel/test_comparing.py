"""Clauses for matches whose columns compare in some way with the source's."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.model.merge import Action, When
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.column_comparison import OPERATORS, Comparison, holds
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.verbs.write import WriteOptions
from tests.lakes import make_lake

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("v", pa.string())])
SOURCE = [pa.field("k", pa.int64()), pa.field("m", pa.int64()), pa.field("v", pa.string())]
EXPECTED = {
    "=": [False, True, False, False, False, False],
    "!=": [True, False, True, False, False, False],
    "<": [True, False, False, False, False, False],
    "<=": [True, True, False, False, False, False],
    ">": [False, False, True, False, False, False],
    ">=": [False, True, True, False, False, False],
    "<=>": [False, True, False, False, False, True],
}
VALUES = [
    ("int", pa.int32(), [1, 2, 3]),
    ("long", pa.int64(), [-(2**62), 0, 2**62]),
    ("text", pa.string(), ["Z", "a", "é"]),
    ("bytes", pa.binary(), [b"\x01", b"\x7f", b"\xff"]),
    ("date", pa.date32(), [datetime.date(1969, 1, 1), datetime.date(1970, 1, 1)] * 2),
    ("decimal", pa.decimal128(9, 2), [Decimal("-1.00"), Decimal("0.00"), Decimal("0.01")]),
]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("_, kind, values", VALUES, ids=[one[0] for one in VALUES])
def test_a_comparison_holds_where_it_is_true(operator, _, kind, values):
    low, high = values[0], values[1]
    left = pa.array([low, low, high, None, low, None], kind)
    right = pa.array([high, low, low, low, None, None], kind)
    assert holds(operator, left, right).tolist() == EXPECTED[operator]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_clause_is_for_the_matches_that_compare(tmp_path, table_format, mode):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.t", COLUMNS)
        for first in (0, 4):
            ids = range(first, first + 4)
            rows = {"id": list(ids), "n": [5, 6, 7, None], "v": ["old"] * 4}
            table.append(pa.table(rows, COLUMNS))
        given = {"k": [0, 1, 2, 3, 4, 5, 9], "m": [6, 6, 6, 6, None, 9, 6], "v": ["new"] * 7}
        newer = (Comparison("n", "<", "m"), Comparison("v", "!=", "v"))
        clauses = (
            TaskClause(When.MATCHED, Action.UPDATE, values={"v": "v"}, comparisons=newer),
            TaskClause(When.MATCHED, Action.DELETE, comparisons=(Comparison("n", "=", "m"),)),
            TaskClause(When.NOT_MATCHED, Action.INSERT, values={"id": "k", "n": "m", "v": "v"}),
        )
        with staging(table._engine, table.handle.view()) as place:
            batches = pa.table(given, pa.schema(SOURCE)).to_batches()
            change = RowChange(
                "merge",
                clauses,
                Matching((("id", "k"),), (False,)),
                staged=place.stage(batches, Shape(SOURCE, ("k",))),
                checks_cardinality=True,
            )
            options = WriteOptions(mode=mode)
            _, result = change_rows(table.handle, table._engine, change, options)
        found = table.arrow().sort_by("id")
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (2, 1, 1)
    assert found["id"].to_pylist() == [0, 2, 3, 4, 5, 6, 7, 9]
    assert found["v"].to_pylist() == ["new", "old", "old", "old", "new", "old", "old", "new"]
