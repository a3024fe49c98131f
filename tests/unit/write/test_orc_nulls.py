"""Missing structs in ORC files, wherever they are: values stay with their rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from rowlake.write.orc_nulls import writable
from tests.lakes import make_lake

INNER = pa.struct([("x", pa.int64()), ("t", pa.string())])
OUTER = pa.struct([pa.field("s", INNER), pa.field("n", pa.int32())])
KINDS = [
    OUTER,
    pa.struct([("o", OUTER)]),
    pa.list_(OUTER),
    pa.map_(pa.string(), OUTER),
    pa.struct([("l", pa.list_(OUTER)), ("m", pa.map_(pa.string(), INNER))]),
    pa.struct([("s", pa.struct([("l", pa.list_(pa.int64())), ("d", pa.decimal128(9, 2))]))]),
]


def through_a_file(column: pa.ChunkedArray) -> list[object]:
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table({"c": column}), sink)
    return orc.read_table(pa.BufferReader(sink.getvalue()))["c"].to_pylist()


def values_of(kind: pa.DataType, *, required: bool = False) -> st.SearchStrategy[object]:
    if pa.types.is_struct(kind):
        found = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    elif pa.types.is_map(kind):
        held = st.dictionaries(st.sampled_from("abc"), values_of(kind.item_type), max_size=3)
        found = held.map(lambda one: list(one.items()))
    elif pa.types.is_list(kind):
        found = st.lists(values_of(kind.value_type), max_size=3)
    elif pa.types.is_integer(kind):
        found = st.integers(-9, 99)
    elif pa.types.is_decimal(kind):
        found = st.decimals(-9, 9, places=2)
    else:
        found = st.sampled_from(["", "a", "bc"])
    return found if required else st.one_of(found, st.none())


def test_required_fields_of_missing_structs_are_no_matter():
    held = pa.list_(pa.field("element", pa.int64(), nullable=False))
    inner = [pa.field("x", pa.int64(), nullable=False), pa.field("l", held, nullable=False)]
    kind = pa.struct([pa.field("s", pa.struct(inner))])
    rows = [{"s": {"x": 1, "l": [1]}}, {"s": None}, {"s": {"x": 3, "l": []}}]
    column = pa.chunked_array([pa.array(rows, kind)])
    assert through_a_file(writable(column)) == rows


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_every_value_is_read_back_where_it_was(data):
    kind = data.draw(st.sampled_from(KINDS))
    # Columns without nulls are where it went wrong.
    required = data.draw(st.booleans())
    rows = data.draw(st.lists(values_of(kind, required=required), min_size=1, max_size=8))
    start = data.draw(st.integers(0, len(rows) - 1))
    column = pa.chunked_array([pa.array(rows, kind).slice(start)], kind)
    found = writable(column)
    found.validate(full=True)
    assert found.to_pylist() == column.to_pylist()
    assert through_a_file(found) == column.to_pylist()


def test_pyarrow_alone_still_misplaces_values():
    """Once this fails, `writable` may have nothing to do any more."""
    rows = [{"s": {"x": 1, "t": "a"}, "n": 1}, {"s": None, "n": 2}, {"s": {"x": 3, "t": "c"}}]
    column = pa.chunked_array([pa.array(rows, OUTER)])
    assert through_a_file(column) != column.to_pylist()
    assert through_a_file(writable(column)) == column.to_pylist()


@pytest.mark.parametrize("required", [True, False])
def test_a_table_of_orc_files_keeps_structs_within_structs(tmp_path, required):
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("c", OUTER, nullable=not required)])
    rows = [
        {"id": n, "c": {"s": None if n % 3 else {"x": n, "t": f"t{n}"}, "n": n}} for n in range(40)
    ]
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        table = lake.create_table("shop.t", schema, properties={"write.format.default": "orc"})
        table.append(pa.Table.from_pylist(rows, schema))
        table.delete("id = 7", mode="copy-on-write")
        found = sorted(table.arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [row for row in rows if row["id"] != 7]
