"""Upserts of Parquet files too large for the driver: tasks sort them by key, one row for each."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rowlake.errors import CardinalityError, SchemaMismatchError
from rowlake.model.transform import apply_transform
from rowlake.rowlevel import matches, one_per_key, operation, staged
from rowlake.sources import rows
from tests.any_format import read_by_others
from tests.lakes import files_in, make_lake

ROWS = pa.schema([("id", pa.int64()), ("part", pa.string()), ("v", pa.int64())])
LAYOUTS = {
    "whole": [],
    "by the key": ["bucket(3, id)"],
    "by another column": ["part"],
    "in one partition": ["truncate(1000000, id)"],
}


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Take any file for a large one."""
    monkeypatch.setattr(rows, "SMALL_BYTES", 0)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(staged, "_CHUNK_BYTES", 4000)
    monkeypatch.setattr(staged, "_INLINE_BYTES", 100)
    monkeypatch.setattr(one_per_key, "PART_BYTES", 2000)
    monkeypatch.setattr(operation, "PART_BYTES", 2000)


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("a")
        yield opened


def table_of(ids, value: int) -> pa.Table:
    ids = np.asarray(ids)
    parts = [f"p{number % 2}" for number in ids.tolist()]
    return pa.table([pa.array(ids, pa.int64()), parts, pa.array([value] * len(ids))], schema=ROWS)


def file_of(folder, rows: pa.Table) -> str:
    path = folder / "rows.parquet"
    pq.write_table(rows, path, row_group_size=100)
    return str(path)


def create(lake, layout=(), schema=ROWS, version="3"):
    return lake.create_table(
        "a.t", schema, partition_by=list(layout), properties={"format-version": version}
    )


def pairs_of(rows: pa.Table):
    return zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_take_the_place_of_those_with_their_keys(lake, tmp_path, layout, mode, little_memory):
    table = create(lake, LAYOUTS[layout])
    for start in (0, 400, 800):
        table.append(table_of(range(start, start + 400), 1))
    given = table_of(np.random.default_rng(1).permutation(np.arange(600, 1600)), 2)
    result = table.upsert(file_of(tmp_path, given), keys=["id"], mode=mode)
    assert (result.rows_updated, result.rows_inserted) == (600, 400)
    expected = sorted({number: 1 if number < 600 else 2 for number in range(1600)}.items())
    for found in (table.arrow(), *read_by_others(table)):
        assert sorted(pairs_of(found)) == expected
    again = table.upsert(file_of(tmp_path, given), keys=["id"], mode=mode)
    assert (again.rows_unchanged, again.snapshot_id) == (1000, None)


def test_a_column_that_tells_two_rows_apart_is_found_wherever_it_is(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(matches, "_FEW_ROWS", 10)
    names = [f"c{number}" for number in range(6)]
    rows = {"id": range(100), **dict.fromkeys(names, [0] * 100)}
    table = create(lake, schema=pa.schema([(name, pa.int64()) for name in rows]))
    table.append(pa.table({name: pa.array(held, pa.int64()) for name, held in rows.items()}))
    for place, name in enumerate(names):
        rows[name] = [int(number % 6 == place) for number in range(100)]
    path = file_of(tmp_path, pa.table({k: pa.array(v, pa.int64()) for k, v in rows.items()}))
    result = table.upsert(path, keys=["id"])
    assert (result.rows_updated, result.rows_unchanged) == (100, 0)
    assert table.arrow().sort_by("id").to_pydict() == {k: list(v) for k, v in rows.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_key_that_is_there_twice_is_an_error(lake, tmp_path, layout, little_memory):
    table = create(lake, LAYOUTS[layout])
    table.append(table_of(range(10), 1))
    before = files_in(str(tmp_path / "lake"))
    given = table_of([*range(900), 7, 899], 2)
    with pytest.raises(CardinalityError, match="several source rows have the same key") as raised:
        table.upsert(file_of(tmp_path, given), keys=["id"])
    assert raised.value.keys
    assert all(key in [{"id": 7}, {"id": 899}] for key in raised.value.keys)
    assert files_in(str(tmp_path / "lake")) == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_latest_of_equal_keys_stays(lake, tmp_path, layout, little_memory):
    table = create(lake, LAYOUTS[layout])
    table.append(table_of(range(10), 0))
    rows = pa.concat_tables([table_of(range(300), value) for value in (2, 3, 1)])
    result = table.upsert(file_of(tmp_path, rows), keys=["id"], on_duplicates="latest by v")
    assert (result.rows_updated, result.rows_inserted) == (10, 290)
    assert table.arrow().select(["id", "v"]).sort_by("id").to_pydict() == {
        "id": list(range(300)),
        "v": [3] * 300,
    }


def test_a_null_key_is_an_error(lake, tmp_path):
    table = create(lake, ["bucket(3, id)"])
    given = pa.table({"id": pa.array([1, None, 3], pa.int64()), "v": pa.array([1, 2, 3])})
    with pytest.raises(SchemaMismatchError, match="id is null in 1 source rows"):
        table.upsert(file_of(tmp_path, given), keys=["id"])


def test_keys_of_many_types_are_dealt_out(lake, tmp_path, little_memory):
    kinds = {
        "i": (pa.int32(), lambda n: n),
        "s": (pa.string(), lambda n: f"key {n}"),
        "d": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
        "t": (pa.date32(), lambda n: date(2000, 1, 1) + timedelta(n)),
        "b": (pa.bool_(), lambda n: n % 2 == 0),
        "y": (pa.binary(), lambda n: b"%d" % n),
    }
    schema = pa.schema([*((name, kind) for name, (kind, _) in kinds.items()), ("v", pa.int64())])

    def rows(numbers, value: int) -> pa.Table:
        columns = [[make(n) for n in numbers] for _, make in kinds.values()]
        return pa.table([*columns, [value] * len(numbers)], schema=schema)

    table = create(lake, schema=schema)
    table.append(rows(range(300), 1))
    result = table.upsert(file_of(tmp_path, rows(range(200, 500), 2)), keys=list(kinds))
    assert (result.rows_updated, result.rows_inserted) == (100, 200)
    assert table.arrow().sort_by("i")["v"].to_pylist() == [1] * 200 + [2] * 300


def test_slices_of_one_bucket_are_about_equal():
    ids = np.arange(100_000)
    rows = pa.table({"id": pa.array(ids)})
    own = rows.filter(pc.equal(apply_transform("bucket[16]", rows["id"]), 3))
    sizes = [some.num_rows for _, some in staged.sliced([(0, own)], ("id",), 4)]
    assert len(sizes) == 4
    assert max(sizes) < 1.2 * min(sizes)
