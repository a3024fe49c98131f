"""Source rows are staged whole, by partition or by target file, and come back as they were."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from rowlake.engine.spark import Engine
from rowlake.errors import CardinalityError
from rowlake.model.schema import Schema
from rowlake.model.values import decode, encode_partitions
from rowlake.rowlevel import staged as room
from rowlake.rowlevel.staged import (
    NO_FILE,
    PARTS,
    WHOLE,
    Dealing,
    StageContext,
    part_of_location,
    part_of_partition,
    pieces_of,
    read_pieces,
    stage_batches,
)
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.unique import Keys
from rowlake.storage.files import Storage
from tests.lakes import SALES, make_lake, rows_of, sales

STORAGE = Storage({})


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["inline", "file"])
def kept(request, monkeypatch):
    """Where rows are kept: inside the answer, or in Arrow files."""
    if request.param == "file":
        monkeypatch.setattr(room, "_INLINE_BYTES", 0)
    return request.param


def context(folder, rows: pa.Table, keys=("id",), dealing=None, unique=None) -> StageContext:
    schema = Shape(list(rows.schema)).schema
    return StageContext(schema, keys, dealing or Dealing(), folder.as_uri(), {}, unique)


def staged(made: StageContext, rows: pa.Table, size: int | None = None) -> pa.Table:
    batches = rows.to_batches(max_chunksize=size)
    return pa.Table.from_batches(stage_batches(made, batches), room.STAGED)


def by_part(found: pa.Table, schema: pa.Schema) -> dict[int, list[tuple]]:
    pieces = pieces_of(found)
    return {
        part: rows_of(read_pieces([one for one in pieces if one.part == part], schema, STORAGE))
        for part in {one.part for one in pieces}
    }


def test_rows_that_are_not_dealt_out_are_one_part(tmp_path, kept):
    made = context(tmp_path, sales(100))
    found = staged(made, sales(100), size=7)
    assert by_part(found, made.schema.arrow) == {WHOLE: rows_of(sales(100))}
    assert found["rows"].to_pylist() == [100]
    assert (found["location"].null_count == 0) == (kept == "file")
    assert (found["data"].null_count == 0) == (kept == "inline")
    assert len(list(tmp_path.iterdir())) == (kept == "file")


def test_no_rows_are_no_parts(tmp_path, kept):
    del kept
    found = staged(context(tmp_path, sales(0)), sales(0))
    assert (found.num_rows, list(tmp_path.iterdir())) == (0, [])


def test_rows_are_read_back_in_their_order(tmp_path, kept, monkeypatch):
    del kept
    monkeypatch.setattr(room, "_CHUNK_BYTES", 500)
    made = context(tmp_path, sales(200))
    found = staged(made, sales(200), size=10)
    assert found.num_rows > 5
    back = read_pieces(pieces_of(found), made.schema.arrow, STORAGE)
    assert back["id"].to_pylist() == list(range(200))
    assert back["note"].num_chunks == 1


@pytest.mark.parametrize("partitions", [["store"], ["bucket(3, id)", "store"], ["days(sold_on)"]])
def test_rows_lie_in_the_part_of_their_partition(lake, tmp_path, kept, partitions):
    del kept
    table = lake.create_table("shop.sales", SALES, partition_by=partitions)
    table.append(sales(60))
    view = table.handle.view()
    names = {view.schema.paths[field.source_id][0] for field in view.spec.fields}
    pairs = tuple((name, f"k_{name}") for name in sorted(names))
    rows = sales(60).rename_columns([f"k_{name}" for name in SALES.names])
    made = context(tmp_path, rows, ("k_id",), Dealing(view.spec, view.schema, pairs))
    parts = by_part(staged(made, rows), made.schema.arrow)
    assert sorted(row for held in parts.values() for row in held) == sorted(rows_of(sales(60)))
    files = table.arrow(["id", "_file"])
    where = dict(zip(files["id"].to_pylist(), files["_file"].to_pylist(), strict=True))
    entries = table.inspect("data_files")
    encoded = encode_partitions(entries["partition"].combine_chunks()).to_pylist()
    part_of = {
        place: part_of_partition(tuple(key))
        for place, key in zip(entries["file_path"].to_pylist(), encoded, strict=True)
    }
    for part, held in parts.items():
        assert {part_of[where[row[0]]] for row in held} == {part}


def test_null_partitions_have_a_part_too(lake, tmp_path):
    table = lake.create_table("shop.sales", SALES, partition_by=["store"])
    view = table.handle.view()
    rows = pa.table({"s": pa.array([None, 1, None], pa.int32()), "id": [1, 2, 3]})
    dealing = Dealing(view.spec, view.schema, (("store", "s"),))
    made = context(tmp_path, rows, ("s",), dealing)
    parts = by_part(staged(made, rows), made.schema.arrow)
    assert parts[part_of_partition((None,))] == [(None, 1), (None, 3)]
    assert len(parts) == 2


def test_a_key_beyond_the_column_is_dealt_out_without_an_error(lake, tmp_path):
    table = lake.create_table("shop.sales", SALES, partition_by=["store"])
    view = table.handle.view()
    rows = pa.table({"s": pa.array([2**40, 1], pa.int64())})
    made = context(tmp_path, rows, ("s",), Dealing(view.spec, view.schema, (("store", "s"),)))
    parts = by_part(staged(made, rows), made.schema.arrow)
    assert sorted(row for held in parts.values() for row in held) == [(1,), (2**40,)]


def test_rows_lie_in_the_part_of_their_target_file(tmp_path, kept):
    del kept
    names = [f"file:///t/data/{number}.parquet" for number in range(50)]
    files = [names[number % 50] if number % 7 else None for number in range(400)]
    rows = pa.table({"file": files, "n": range(400)})
    made = context(tmp_path, rows, (), Dealing(file_column="file"))
    parts = by_part(staged(made, rows), made.schema.arrow)
    assert [n for _, n in sorted(parts.pop(NO_FILE), key=lambda row: row[1])] == [*range(0, 400, 7)]
    assert all(0 <= part < PARTS for part in parts)
    for part, held in parts.items():
        assert {part_of_location(name) for name, _ in held} == {part}
    assert sum(map(len, parts.values())) == 400 - len(range(0, 400, 7))


def test_rows_of_no_file_alone_are_a_part(tmp_path):
    rows = pa.table({"file": pa.array([None, None], pa.string()), "n": [1, 2]})
    made = context(tmp_path, rows, (), Dealing(file_column="file"))
    assert by_part(staged(made, rows), made.schema.arrow) == {NO_FILE: [(None, 1), (None, 2)]}


def test_bounds_of_keys_are_kept(tmp_path):
    day = dt.date(2024, 1, 1)
    rows = pa.table(
        {
            "id": pa.array([5, None, -3], pa.int64()),
            "name": ["b", "a", "ä"],
            "day": [day, None, None],
            "none": pa.nulls(3, pa.int32()),
            "x": [1.0, 2.0, float("nan")],
        }
    )
    names = ("id", "name", "day", "none", "x")
    found = staged(context(tmp_path, rows, names), rows)
    (lower,), (upper,) = found["lower"].to_pylist(), found["upper"].to_pylist()

    def decoded(bounds, name):
        held = bounds[names.index(name)]
        return None if held is None else decode(pa.array([held]), rows[name].type)[0].as_py()

    assert (decoded(lower, "id"), decoded(upper, "id")) == (-3, 5)
    assert (decoded(lower, "name"), decoded(upper, "name")) == ("a", "ä")
    assert (decoded(lower, "day"), decoded(upper, "day")) == (day, day)
    # NaN has no place in a range, so there is none.
    assert lower[3:] == upper[3:] == [None, None]


def test_a_batch_of_a_file_is_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_INLINE_BYTES", 0)
    rows = pa.table({"file": [f"f{n % 3}" for n in range(30)], "n": range(30)})
    made = context(tmp_path, rows, (), Dealing(file_column="file"))
    found = staged(made, rows)
    assert len(set(found["location"].to_pylist())) == 1
    assert sorted(found["batch"].to_pylist()) == [0, 1, 2]
    for piece in pieces_of(found):
        back = read_pieces([piece], made.schema.arrow, STORAGE)
        (number,) = {n % 3 for n in back["n"].to_pylist()}
        assert part_of_location(f"f{number}") == piece.part
        assert back.num_rows == piece.rows == 10


def test_keys_that_are_there_twice_are_refused_over_batches_and_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_CHUNK_BYTES", 100)
    rows = pa.table({"id": np.repeat(np.arange(20), [1] * 19 + [2]), "n": range(21)})
    schema = Shape(list(rows.schema)).schema
    keys = Keys("shop.sales", schema, (1,))
    made = context(tmp_path, rows, ("id",), unique=keys)
    with pytest.raises(CardinalityError, match="id=19"):
        staged(made, rows, size=20)


def test_staging_is_removed_whatever_comes(lake, monkeypatch):
    monkeypatch.setattr(room, "_INLINE_BYTES", 0)
    table = lake.create_table("shop.sales", SALES)
    view = table.handle.view()
    folders = []
    for is_one_machine in (True, False):
        monkeypatch.setattr(Engine, "is_one_machine", is_one_machine)
        with pytest.raises(KeyboardInterrupt), staging(Engine(), view) as place:
            found = place.stage(sales(10).to_batches(), Shape(list(SALES), ("id",)))
            assert [each.location for each in STORAGE.list(place.folder)] == found.rows[
                "location"
            ].to_pylist()
            folders.append(place.folder)
            raise KeyboardInterrupt
        assert list(STORAGE.list(place.folder)) == []
    here, beside = folders
    assert "rowlake-staging-" in here
    assert beside.startswith(f"{view.location}/data/staging-")


def test_nulls_may_be_staged_for_required_columns():
    field = pa.field("id", pa.int64(), nullable=False)
    schema = Shape([field]).schema
    assert isinstance(schema, Schema)
    assert schema.arrow.field("id").nullable
