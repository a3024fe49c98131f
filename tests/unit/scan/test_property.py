"""Random rows, deletes and filters against plain Python."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.model.predicate import And, Leaf, Op, Or, Predicate
from rowlake.model.task import POS_COLUMN_ID
from rowlake.scan import deletes as deletes_module
from tests.scanning import (
    equality_deletes,
    field,
    file_task,
    position_deletes,
    scan,
    schema,
    table_of,
    vector,
    write_orc,
    write_parquet,
)

INNER = pa.struct([field("x", pa.int32(), 4), field("y", pa.string(), 5)])
TABLE = schema(
    field("a", pa.int64(), 1),
    field("f", pa.float64(), 2),
    field("s", INNER, 3),
    field("t", pa.string(), 6),
)
OLD = schema(
    field("t", pa.string(), 6),
    field("was_s", pa.struct([field("y", pa.string(), 5), field("x", pa.int32(), 4)]), 3),
    field("f", pa.float32(), 2),
    field("gone", pa.int32(), 9),
    field("a", pa.int32(), 1),
)
OUT = schema(*TABLE.arrow, field("_pos", pa.int64(), POS_COLUMN_ID))

INTS = st.none() | st.integers(-3, 3)
FLOATS = st.none() | st.sampled_from([math.nan, -0.0, 0.0, 1.5, -math.inf])
TEXTS = st.none() | st.sampled_from(["", "a", "ab", "b", "é"])
ROW = st.fixed_dictionaries(
    {
        "a": INTS,
        "f": FLOATS,
        "s": st.none() | st.fixed_dictionaries({"x": INTS, "y": TEXTS}),
        "t": TEXTS,
    }
)
COLUMNS: dict[tuple[str, ...], tuple[int, Any]] = {
    ("a",): (1, st.integers(-3, 3)),
    ("f",): (2, st.sampled_from([math.nan, -0.0, 0.0, 1.5])),
    ("s", "x"): (4, st.integers(-3, 3)),
    ("s", "y"): (5, st.sampled_from(["", "a", "ab", "é"])),
    ("t",): (6, st.sampled_from(["", "a", "ab", "é"])),
}
COMPARED = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]
UNARY = [Op.IS_NULL, Op.NOT_NULL]


@st.composite
def leaf(draw) -> Leaf:
    path = draw(st.sampled_from(list(COLUMNS)))
    key, values = COLUMNS[path]
    texts = [Op.STARTS_WITH, Op.NOT_STARTS_WITH] if path[-1] in ("y", "t") else []
    nans = [Op.IS_NAN, Op.NOT_NAN] if path == ("f",) else []
    op = draw(st.sampled_from([*COMPARED, *UNARY, Op.IN, Op.NOT_IN, *texts, *nans]))
    if op in (Op.IN, Op.NOT_IN):
        wanted = tuple(draw(st.lists(values, max_size=3)))
    else:
        wanted = () if op in (*UNARY, Op.IS_NAN, Op.NOT_NAN) else (draw(values),)
    return Leaf(path, op, wanted, key)


PREDICATE = st.recursive(
    leaf(),
    lambda below: (
        st.builds(And, st.lists(below, max_size=3).map(tuple))
        | st.builds(Or, st.lists(below, max_size=3).map(tuple))
    ),
    max_leaves=4,
)


def order(value: Any) -> tuple[int, Any]:
    """Return what sorts as in Spark: NaN last, zeros equal."""
    if isinstance(value, float):
        return (1, 0) if math.isnan(value) else (0, value + 0.0)
    return (0, value.encode() if isinstance(value, str) else value)


def holds(row: dict[str, Any], predicate: Predicate) -> bool | None:
    if isinstance(predicate, And):
        parts = [holds(row, part) for part in predicate.parts]
        return False if False in parts else (None if None in parts else True)
    if isinstance(predicate, Or):
        parts = [holds(row, part) for part in predicate.parts]
        return True if True in parts else (None if None in parts else False)
    value: Any = row
    for name in predicate.path:
        value = None if value is None else value[name]
    return leaf_holds(value, predicate)


def leaf_holds(value: Any, test: Leaf) -> bool | None:
    is_nan = isinstance(value, float) and math.isnan(value)
    known = {
        Op.IS_NULL: value is None,
        Op.NOT_NULL: value is not None,
        Op.IS_NAN: is_nan,
        Op.NOT_NAN: not is_nan,
    }
    if test.op in known:
        return known[test.op]
    if value is None:
        return None
    if test.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return value.startswith(test.value) is (test.op is Op.STARTS_WITH)
    found = order(value)
    if test.op in (Op.IN, Op.NOT_IN):
        return (found in [order(one) for one in test.values]) is (test.op is Op.IN)
    wanted = order(test.value)
    return {
        Op.EQ: found == wanted,
        Op.NE: found != wanted,
        Op.LT: found < wanted,
        Op.LE: found <= wanted,
        Op.GT: found > wanted,
        Op.GE: found >= wanted,
    }[test.op]


def ordered(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the output's order of fields, so that rows compare as text (NaN, -0.0)."""
    inner = row["s"] and {name: row["s"][name] for name in ("x", "y")}
    return {name: inner if name == "s" else row[name] for name in OUT.arrow.names}


KEYS = st.lists(st.tuples(INTS, TEXTS), max_size=4)
ALL_KEYS = {"a": 1, "t": 6}


@settings(max_examples=120, deadline=None)
@given(
    rows=st.lists(ROW, max_size=40),
    predicate=st.none() | PREDICATE,
    positions=st.sets(st.integers(0, 45), max_size=10),
    marked=st.sets(st.integers(0, 45), max_size=10),
    keys=KEYS,
    by=st.sampled_from([["a"], ["t"], ["a", "t"]]),
    group_size=st.integers(1, 20),
    batch_rows=st.integers(1, 30),
    file_format=st.sampled_from(["PARQUET", "PARQUET", "PARQUET", "ORC"]),
)
def test_scan_equals_plain_python(
    rows, predicate, positions, marked, keys, by, group_size, batch_rows, file_format
) -> None:
    deletes_module.clear_caches()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        stored = [{**row, "was_s": row["s"], "gone": 1} for row in rows]
        table = table_of(OLD, stored)
        if file_format == "ORC":
            data = write_orc(base / "data", table)
        else:
            data = write_parquet(base / "data", table, row_group_size=group_size)
        deletes = [vector(base / "v", data, sorted(marked))]
        if positions:
            deletes.append(position_deletes(base / "p", [(data, one) for one in positions]))
        gone_keys = [tuple({"a": a, "t": t}[name] for name in by) for a, t in keys]
        if keys:
            arrow = pa.schema([TABLE.arrow.field(name) for name in by])
            held = [dict(zip(by, key, strict=True)) for key in gone_keys]
            deletes.append(
                equality_deletes(base / "e", table_of(arrow, held), [ALL_KEYS[one] for one in by])
            )
        found = scan(
            TABLE,
            file_task(data, file_format, deletes=tuple(deletes)),
            projection=OUT,
            predicate=predicate,
            exact=True,
            batch_rows=batch_rows,
        )
    expected = [
        ordered({**row, "_pos": index})
        for index, row in enumerate(rows)
        if index not in positions | marked
        and tuple(row[name] for name in by) not in gone_keys
        and (predicate is None or holds(row, predicate))
    ]
    assert repr(found) == repr(expected)
