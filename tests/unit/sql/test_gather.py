"""Conditions outside of a subquery or CTE that reach the tables inside."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.model.schema import Schema
from rowlake.query.pushdown import push_down

T = Schema(
    pa.schema([("id", pa.int64()), ("x", pa.int32()), ("st", pa.struct([("a", pa.int32())]))])
)
U = Schema(pa.schema([("id", pa.int64()), ("k", pa.string())]))
LAKE = {("t",): T, ("u",): U}


def pushed(text):
    scans = push_down(text, LAKE.get).scans
    return [".".join(s.predicate.path) if s.predicate else None for s in scans]


REACHED = {
    "SELECT * FROM (SELECT * FROM t) WHERE x = 1": ["x"],
    "SELECT * FROM (SELECT * FROM t) q WHERE q.x = 1": ["x"],
    "SELECT * FROM (SELECT t.* FROM t, u) q WHERE q.x = 1": ["x", None],
    "SELECT * FROM (SELECT id AS i, x AS id FROM t) WHERE id = 1": ["x"],
    "SELECT * FROM (SELECT id i, x + 1 AS y FROM t) WHERE i = 1 AND y = 2": ["id"],
    "SELECT * FROM (SELECT st FROM t) WHERE st.a = 1": ["st.a"],
    "SELECT * FROM (SELECT st.a AS b FROM t) WHERE b = 1": ["st.a"],
    "SELECT * FROM (SELECT * FROM (SELECT x y FROM t)) WHERE y = 1": ["x"],
    "WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE x = 1": ["x"],
    "WITH c AS (SELECT * FROM t), e AS (SELECT id, x FROM c) SELECT * FROM e WHERE e.x = 1": ["x"],
    "SELECT * FROM (SELECT DISTINCT x FROM t) WHERE x = 1": ["x"],
    "SELECT * FROM (SELECT x FROM t ORDER BY id) WHERE x = 1": ["x"],
    "SELECT * FROM u LEFT JOIN (SELECT * FROM t) q ON q.x = 1": [None, "x"],
    "SELECT * FROM (SELECT t.id, k FROM t LEFT JOIN u ON t.id = u.id) WHERE k = 'a'": [None, "k"],
}
KEPT_OUT = [
    "SELECT * FROM (SELECT * FROM t LIMIT 3) WHERE x = 1",
    "SELECT * FROM (SELECT x, row_number() OVER (ORDER BY id) n FROM t) WHERE x = 1",
    "SELECT * FROM (SELECT x, count(*) FROM t GROUP BY x) WHERE x = 1",
    "SELECT * FROM (SELECT * FROM t) AS q(id, x, y) WHERE x = 1",
    "SELECT * FROM (SELECT * FROM t) TABLESAMPLE (5 ROWS) WHERE x = 1",
    "SELECT * FROM (SELECT x + 1 AS x FROM t) WHERE x = 1",
    "SELECT * FROM (SELECT x, id AS x FROM t) WHERE x = 1",
    "SELECT * FROM (SELECT max(x) AS x FROM t) WHERE x = 1",
    "WITH c AS (SELECT * FROM t) SELECT * FROM c a JOIN c b ON a.id = b.id WHERE a.x = 1",
    "SELECT * FROM (SELECT x FROM t UNION ALL SELECT 1) WHERE x = 1",
    "SELECT * FROM other LEFT JOIN (SELECT * FROM t) q ON true WHERE q.x IS NULL",
    "SELECT * FROM (SELECT x FROM other LEFT JOIN t ON true) WHERE x IS NULL",
]


@pytest.mark.parametrize(("text", "expected"), REACHED.items(), ids=list(REACHED))
def test_conditions_reach_tables_inside(text, expected):
    assert pushed(text) == expected


@pytest.mark.parametrize("text", KEPT_OUT)
def test_conditions_stay_out_where_rows_depend_on_each_other(text):
    assert set(pushed(text)) == {None}
