"""A required field of an optional struct has no value where the struct is null."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.errors import SchemaMismatchError
from rowlake.model.predicate import Leaf, Op
from tests.lakes import make_lake

ITEMS = pa.list_(pa.field("element", pa.int64(), nullable=False))
INNER = pa.struct([pa.field("y", pa.float64(), nullable=False), pa.field("z", pa.string())])
FIELDS = [
    pa.field("a", pa.int32(), nullable=False),
    pa.field("flag", pa.bool_(), nullable=False),
    pa.field("text", pa.string(), nullable=False),
    pa.field("items", ITEMS, nullable=False),
    pa.field("in", INNER, nullable=False),
    pa.field("free", pa.string()),
]
STRUCT = pa.struct(FIELDS)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("s", STRUCT),
        ("l", pa.list_(STRUCT)),
        ("m", pa.map_(pa.string(), STRUCT)),
    ]
)


def struct(number: int, free: str | None = None) -> dict[str, object]:
    inner = {"y": number / 2, "z": free}
    flag, items = number % 2 == 0, [number] * (number % 3)
    return {
        "a": number,
        "flag": flag,
        "text": "x" * number,
        "items": items,
        "in": inner,
        "free": free,
    }


ROWS = [
    {"id": 1, "s": struct(1), "l": [struct(2), None], "m": [("k", None), ("n", struct(3))]},
    {"id": 2, "s": None, "l": None, "m": None},
    {"id": 3, "s": struct(4, "f"), "l": [], "m": []},
    {"id": 4, "s": None, "l": [None, struct(5)], "m": [("k", struct(6))]},
]


@pytest.fixture(params=["parquet", "orc", "avro"])
def table(request, tmp_path):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("db", if_not_exists=True)
        made = lake.create_table("db.t", SCHEMA, properties={"write.format.default": request.param})
        made.append(pa.Table.from_pylist(ROWS, SCHEMA))
        yield made


def rows_of(table, **how) -> list[dict[str, object]]:
    return sorted(table.arrow(**how).to_pylist(), key=lambda row: row["id"])


def test_null_structs_are_written_and_read(table):
    assert rows_of(table) == ROWS


def test_slices_are_written_as_they_are(table):
    table.append(pa.Table.from_pylist([ROWS[0], *ROWS], SCHEMA).slice(2, 2))
    assert rows_of(table) == [ROWS[0], ROWS[1], ROWS[1], ROWS[2], ROWS[2], ROWS[3]]


def test_filters_see_null_below_a_null_struct(table):
    assert rows_of(table, where=Leaf(("s", "a"), Op.EQ, (4,))) == [ROWS[2]]
    assert rows_of(table, where=Leaf(("s", "a"), Op.IS_NULL)) == [ROWS[1], ROWS[3]]
    assert rows_of(table, where=Leaf(("s", "in", "y"), Op.GT, (1.0,))) == [ROWS[2]]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_row_level_changes_keep_null_structs(table, mode):
    table.delete(Leaf(("s", "a"), Op.EQ, (1,)), mode=mode)
    assert rows_of(table) == ROWS[1:]
    table.upsert(pa.Table.from_pylist([{**ROWS[2], "s": None}], SCHEMA), keys=["id"], mode=mode)
    assert rows_of(table) == [ROWS[1], {**ROWS[2], "s": None}, ROWS[3]]
    table.delete(Leaf(("s", "text"), Op.IS_NULL), mode=mode)
    assert rows_of(table) == []


def test_compaction_keeps_null_structs(table):
    table.append(pa.Table.from_pylist([{**ROWS[1], "id": 9}], SCHEMA))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert rows_of(table) == [*ROWS, {**ROWS[1], "id": 9}]


def test_a_null_in_the_required_field_of_a_struct_that_is_there_is_refused(table):
    bad = {**ROWS[0], "s": {**struct(1), "a": None}}
    loose = pa.schema(
        [
            (one.name, pa.struct([(f.name, f.type) for f in STRUCT])) if one.name == "s" else one
            for one in SCHEMA
        ]
    )
    with pytest.raises(SchemaMismatchError, match=r"s\.a"):
        table.append(pa.Table.from_pylist([bad], loose))
