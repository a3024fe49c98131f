"""ORC files hold the rows of slices, nulls of structs included."""

from __future__ import annotations

import pyarrow as pa

from tests.lakes import make_lake

PAIR = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])
VALUES = [{"a": 1, "b": "x"}, None, {"a": None, "b": None}, None, {"a": None, "b": "y"}]


def test_null_structs_of_slices_stay_null(tmp_path):
    rows = pa.table({"id": pa.array(range(5), pa.int32()), "pair": pa.array(VALUES, PAIR)})
    sliced = pa.concat_tables([rows.slice(place, 1) for place in range(5)])
    with make_lake(tmp_path) as lake:
        lake.create_namespace("db")
        properties = {"write.format.default": "orc"}
        table = lake.create_table("db.t", rows.schema, properties=properties)
        table.append(sliced)
        assert table.arrow().sort_by("id")["pair"].to_pylist() == VALUES
