"""Structs of tables with column mapping: their fields have other names in files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake import connect

ROWS = [
    {"id": 1, "s": {"a": 1, "b": [{"c": "x"}]}},
    {"id": 2, "s": None},
    {"id": 3, "s": {"a": 3, "b": None}},
]


@pytest.mark.parametrize("is_required", [False, True])
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_null_structs_of_required_fields_are_written(tmp_path, mode, is_required):
    inner = [
        pa.field("a", pa.int32(), nullable=not is_required),
        pa.field("b", pa.list_(pa.struct([("c", pa.string())]))),
    ]
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct(inner))])
    place = ("delta", str(tmp_path / "t"))
    with connect(str(tmp_path / "lake")) as lake:
        table = lake.create_table(place, schema, properties={"delta.columnMapping.mode": mode})
        table.append(pa.Table.from_pylist(ROWS, schema))
        table.append(pa.Table.from_pylist(ROWS, schema).slice(1, 2))
        table.delete("id = 1", mode="copy-on-write")
        found = sorted(lake.table(place).arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [ROWS[1], ROWS[1], ROWS[2], ROWS[2]]
