"""Deletes applied: positions, vectors, equality; alone and together."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from rowlake.errors import CorruptTableError
from rowlake.model.files import Content, DeleteFile
from rowlake.model.predicate import Leaf, Op
from rowlake.model.task import DELETED_COLUMN, DELETED_COLUMN_ID
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
    write_avro,
    write_orc,
    write_parquet,
)

TABLE = schema(field("k", pa.int64(), 1), field("c", pa.string(), 2))
ROWS = [{"k": index, "c": None if index % 3 else f"v{index % 4}"} for index in range(20)]


@pytest.fixture
def data(tmp_path) -> str:
    deletes_module.clear_caches()
    return write_parquet(tmp_path / "data.parquet", table_of(TABLE, ROWS), row_group_size=6)


def remaining(data: str, *deletes: DeleteFile, **facts) -> list[int]:
    return [row["k"] for row in scan(TABLE, file_task(data, deletes=deletes), **facts)]


def without(*gone: int) -> list[int]:
    return [index for index in range(20) if index not in gone]


def test_position_deletes_of_other_files_do_not_count(tmp_path, data) -> None:
    made = position_deletes(
        tmp_path / "p.parquet", [("other", 1), (data, 19), (data, 0), ("zzz", 5), (data, 7)]
    )
    assert remaining(data, made) == without(0, 7, 19)


def test_position_delete_files_too_large_to_keep_are_read_by_file(
    tmp_path, data, monkeypatch
) -> None:
    monkeypatch.setattr(deletes_module, "WHOLE_FILE_LIMIT_IN_BYTES", 0)
    made = position_deletes(tmp_path / "p.parquet", [("other", 1), (data, 19), ("zzz", 5)])
    assert remaining(data, made) == without(19)
    assert remaining(data, position_deletes(tmp_path / "q.parquet", [("other", 1)])) == without()


@pytest.mark.parametrize("file_format", ["ORC", "AVRO"])
def test_position_deletes_in_other_formats(tmp_path, data, file_format) -> None:
    rows = [{"file_path": data, "pos": 3}, {"file_path": "other", "pos": 4}]
    if file_format == "ORC":
        arrow = schema(
            field("file_path", pa.string(), 2147483546), field("pos", pa.int64(), 2147483545)
        )
        path = write_orc(tmp_path / "p", table_of(arrow, rows))
    else:
        fields = [
            {"name": "file_path", "type": "string", "field-id": 2147483546},
            {"name": "pos", "type": "long", "field-id": 2147483545},
        ]
        path = write_avro(tmp_path / "p", {"type": "record", "name": "t", "fields": fields}, rows)
    made = DeleteFile(Content.POSITION_DELETES, path, file_format, 1, 2)
    assert remaining(data, made) == without(3)


def test_vectors_are_read_at_their_offset(tmp_path, data) -> None:
    made = vector(tmp_path / "v.puffin", data, [0, 5, 6, 7, 8, 9, 10, 11, 19], [1, 2], [3])
    assert made.content_offset is not None and made.content_offset > 4
    assert remaining(data, made) == without(0, 5, 6, 7, 8, 9, 10, 11, 19)


def test_a_damaged_vector_is_not_applied(tmp_path, data) -> None:
    made = vector(tmp_path / "v.puffin", data, [1])
    with pytest.raises(CorruptTableError, match="positions, expected 2"):
        remaining(data, replace(made, record_count=2))
    with pytest.raises(CorruptTableError, match="length field"):
        remaining(data, replace(made, content_offset=5))
    with pytest.raises(CorruptTableError, match="where the deletion vector is"):
        remaining(data, replace(made, content_offset=None, content_size_in_bytes=None))


def test_a_missing_delete_file_is_an_error(tmp_path, data) -> None:
    gone = DeleteFile(Content.POSITION_DELETES, str(tmp_path / "gone"), "PARQUET", 1, 1)
    no_vector = replace(gone, file_format="PUFFIN", content_offset=4, content_size_in_bytes=44)
    for delete in (gone, no_vector):
        with pytest.raises(CorruptTableError, match="gone"):
            remaining(data, delete)


def keys(**columns: list[object]) -> pa.Table:
    kinds = {"k": field("k", pa.int64(), 1), "c": field("c", pa.string(), 2)}
    arrow = pa.schema([kinds[name] for name in columns])
    return pa.table(
        [pa.array(held, arrow.field(name).type) for name, held in columns.items()], schema=arrow
    )


@pytest.mark.spec("Equality Delete Files: null matches null")
def test_equality_deletes_of_several_key_sets(tmp_path, data) -> None:
    by_key = equality_deletes(tmp_path / "a", keys(k=[1, 4, 99]), [1])
    by_both = equality_deletes(
        tmp_path / "b", keys(k=[3, 6, 2, 7], c=["v3", "v0", None, "x"]), [1, 2]
    )
    by_value = equality_deletes(tmp_path / "c", keys(c=["v1"]), [2])
    assert remaining(data, by_key) == without(1, 4)
    assert remaining(data, by_both) == without(3, 2)
    assert remaining(data, by_value) == without(9)
    assert remaining(data, by_key, by_both, by_value) == without(1, 2, 3, 4, 9)
    nulls = equality_deletes(tmp_path / "d", keys(c=[None, "v2"]), [2])
    assert remaining(data, nulls) == [0, 3, 9, 12, 15]


def test_extra_columns_of_an_equality_delete_file_do_not_count(tmp_path, data) -> None:
    made = equality_deletes(tmp_path / "a", keys(k=[3, 5], c=["wrong", None]), [1])
    assert remaining(data, made) == without(3, 5)


def test_equality_columns_need_not_be_projected(tmp_path, data) -> None:
    made = equality_deletes(tmp_path / "a", keys(k=[1, 2, 3]), [1])
    projection = schema(TABLE.arrow.field("c"))
    found = scan(TABLE, file_task(data, deletes=(made,)), projection=projection)
    assert found == [{"c": ROWS[index]["c"]} for index in without(1, 2, 3)]


@pytest.mark.spec("Equality Delete Files: dropped columns still apply, added ones read as null")
def test_equality_columns_dropped_from_or_added_to_the_table(tmp_path, data) -> None:
    made = equality_deletes(tmp_path / "a", keys(k=[2, 3]), [1])
    table = schema(field("c", pa.string(), 2), field("fresh", pa.int32(), 3))
    found = scan(table, file_task(data, deletes=(made,)))
    assert [row["c"] for row in found] == [ROWS[index]["c"] for index in without(2, 3)]
    fresh = pa.schema([field("fresh", pa.int32(), 3)])
    null = equality_deletes(
        tmp_path / "b", pa.table([pa.array([None], pa.int32())], schema=fresh), [3]
    )
    assert scan(table, file_task(data, deletes=(null,))) == []
    one = equality_deletes(tmp_path / "c", pa.table([pa.array([1], pa.int32())], schema=fresh), [3])
    assert len(scan(table, file_task(data, deletes=(one,)))) == 20


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_equals_nan_and_zeros_differ_as_javas_key_sets_do(tmp_path, kind) -> None:
    table = schema(field("x", kind, 1))
    rows = [{"x": value} for value in (math.nan, 0.0, -0.0, 1.0, None)]
    data = write_parquet(tmp_path / "f.parquet", table_of(table, rows))
    made = equality_deletes(tmp_path / "e", table_of(table, [{"x": math.nan}, {"x": -0.0}]), [1])
    found = scan(table, file_task(data, deletes=(made,)))
    assert [repr(row["x"]) for row in found] == ["0.0", "1.0", "None"]


def test_nested_equality_columns(tmp_path) -> None:
    inner = pa.struct([field("x", pa.int32(), 2), field("y", pa.int32(), 3)])
    table = schema(field("s", inner, 1))
    rows = [
        {"s": {"x": 1, "y": 1}},
        {"s": {"x": 2, "y": 2}},
        {"s": None},
        {"s": {"x": None, "y": 3}},
    ]
    data = write_parquet(tmp_path / "f.parquet", table_of(table, rows))
    only = schema(field("s", pa.struct([field("x", pa.int32(), 2)]), 1))
    made = equality_deletes(tmp_path / "e", table_of(only, [{"s": {"x": 2}}, {"s": None}]), [2])
    assert scan(table, file_task(data, deletes=(made,))) == [rows[0]]


def test_an_equality_file_without_its_column_is_corrupt(tmp_path, data) -> None:
    made = equality_deletes(tmp_path / "a", keys(k=[1]), [77])
    with pytest.raises(CorruptTableError, match="77"):
        remaining(data, made)


def all_kinds(tmp_path, data: str) -> list[DeleteFile]:
    return [
        position_deletes(tmp_path / "p", [(data, 1), (data, 2)]),
        vector(tmp_path / "v", data, [2, 3]),
        equality_deletes(tmp_path / "e", keys(k=[4, 19]), [1]),
    ]


def test_all_kinds_together_with_a_filter(tmp_path, data) -> None:
    made = all_kinds(tmp_path, data)
    assert remaining(data, *made) == without(1, 2, 3, 4, 19)
    below = Leaf(("k",), Op.LT, (6,), 1)
    assert remaining(data, *made, predicate=below) == [0, 5]


def test_deleted_rows_are_marked_where_the_column_is_asked_for(tmp_path, data) -> None:
    projection = schema(
        TABLE.arrow.field("k"), field(DELETED_COLUMN, pa.bool_(), DELETED_COLUMN_ID)
    )
    task = file_task(data, deletes=tuple(all_kinds(tmp_path, data)))
    found = scan(TABLE, task, projection=projection)
    assert [row["k"] for row in found] == list(range(20))
    assert [row["k"] for row in found if row["_deleted"]] == [1, 2, 3, 4, 19]
    below = Leaf(("c",), Op.IS_NULL, (), 2)
    found = scan(TABLE, task, projection=projection, predicate=below)
    assert [row["k"] for row in found if row["_deleted"]] == [1, 2, 4, 19]


def test_splits_see_their_own_deletes(tmp_path, data) -> None:
    made = tuple(all_kinds(tmp_path, data))
    size = file_task(data).length
    found = []
    for start in range(0, size, 50):
        task = file_task(data, deletes=made, start=start, length=50)
        found += [row["k"] for row in scan(TABLE, task)]
    assert found == without(1, 2, 3, 4, 19)


def test_parsed_deletes_are_kept_within_the_limit(tmp_path, data) -> None:
    made = all_kinds(tmp_path, data)
    assert remaining(data, *made) == remaining(data, *made)
    for delete in made:
        (tmp_path / delete.location).unlink()
    assert remaining(data, *made) == without(1, 2, 3, 4, 19)
    deletes_module.clear_caches()
    with pytest.raises(CorruptTableError):
        remaining(data, *made)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-2.00")]),
        (pa.decimal128(30, 2), [Decimal("1.10"), Decimal(10) ** 20]),
        (pa.binary(16), [b"0" * 16, b"1" * 16]),
        (pa.binary(), [b"\xff", b""]),
        (pa.date32(), [dt.date(1960, 1, 1), dt.date(2020, 1, 1)]),
        (pa.time64("us"), [dt.time(1), dt.time(2)]),
        (
            pa.timestamp("us", tz="UTC"),
            [dt.datetime(2020, 1, day, tzinfo=dt.timezone.utc) for day in (1, 2)],
        ),
    ],
)
def test_equality_keys_of_every_type(tmp_path, kind, values) -> None:
    table = schema(field("x", kind, 1), field("k", pa.int32(), 2))
    rows = [{"x": value, "k": key} for value in [*values, None] for key in (1, 2)]
    data = write_parquet(tmp_path / "f.parquet", table_of(table, rows))
    single = schema(field("x", kind, 1))
    one = equality_deletes(tmp_path / "a", table_of(single, [{"x": values[0]}]), [1])
    assert scan(table, file_task(data, deletes=(one,))) == rows[2:]
    two = equality_deletes(
        tmp_path / "b", table_of(table, [{"x": values[1], "k": 2}, {"x": None, "k": 1}]), [2, 1]
    )
    assert scan(table, file_task(data, deletes=(one, two))) == [rows[2], rows[5]]
