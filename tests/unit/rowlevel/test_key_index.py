"""The key index in use: rows are found by it, and a bad one costs time, never rows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.key_index import index_location
from rowlake.model.predicate import Leaf, Op
from rowlake.rowlevel.planning import plan_change
from rowlake.scan.key_index import clear_key_indexes
from tests.lakes import make_lake, using_format

ROWS = 4000
EAGER = {"rowlake.index.min-rows": "1", "rowlake.index.min-rows-per-key": "0"}


@pytest.fixture(params=["iceberg", "delta"])
def lake(request, tmp_path):
    with using_format(request.param):
        yield make_lake(tmp_path)


def _rows(first: int, count: int, value: int = 0) -> pa.Table:
    ids = np.random.default_rng(first).permutation(np.arange(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids),
            "value": pa.array(np.full(count, value)),
            "note": pa.array([f"n{each}" for each in ids.tolist()]),
        }
    )


def _table(lake, *, files: int = 2, index: bool = True):
    lake.create_namespace("db", if_not_exists=True)
    table = lake.create_table("db.t", _rows(0, 1).schema, properties=dict(EAGER))
    if index:
        table.create_index("id")
    for number in range(files):
        table.append(_rows(number * ROWS, ROWS))
    return table


def _indexes(table) -> set[str]:
    root = Path(table.location.removeprefix("file://"))
    return {str(each) for each in root.rglob("*.keys.puffin")}


def _expected(table) -> set[str]:
    files = table.files()
    locations = files.filter(pc.equal(files["content"], 0))["file_path"].to_pylist()
    return {index_location(place).removeprefix("file://") for place in locations}


def _held(table) -> dict[int, int]:
    rows = table.arrow()
    return dict(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))


@pytest.fixture
def lookups(monkeypatch):
    """Note how each change used the index."""
    seen = []

    def noted(*args, **options):
        planned = plan_change(*args, **options)
        seen.append(planned.lookup)
        return planned

    monkeypatch.setattr("rowlake.rowlevel.change.plan_change", noted)
    return seen


def test_every_write_indexes_its_files(lake):
    table = _table(lake)
    assert _indexes(table) == _expected(table)
    table.upsert(_rows(ROWS - 5, 10, 7), keys=["id"])
    assert _expected(table) <= _indexes(table)
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert _expected(table) <= _indexes(table)


def test_an_upsert_reads_only_what_the_index_says(lake, lookups):
    table = _table(lake, files=4)
    keys = [3, ROWS + 3, ROWS + 4, 4 * ROWS + 1]
    result = table.upsert(pa.table(_given(keys, 9)), keys=["id"])
    (lookup,) = lookups
    assert (lookup.keys, lookup.files_pruned, lookup.files_narrowed) == (4, 0, 2)
    assert lookup.rows == 3
    assert (result.rows_updated, result.rows_inserted) == (3, 1)
    held = _held(table)
    assert len(held) == 4 * ROWS + 1
    assert {key for key, value in held.items() if value == 9} == set(keys)


def _given(keys, value):
    return {"id": keys, "value": [value] * len(keys), "note": ["new"] * len(keys)}


def test_deletes_by_key_use_the_index(lake, lookups):
    table = _table(lake, files=3)
    result = table.delete(Leaf(("id",), Op.IN, (1, 2, ROWS + 1, 10**9)))
    assert result.rows_deleted == 3
    assert lookups[-1].rows == 3
    assert not {1, 2, ROWS + 1} & set(_held(table))


def test_look_ups_read_rows_by_position(lake):
    table = _table(lake, files=3)
    table.delete(Leaf(("id",), Op.EQ, (5,)))
    found = table.arrow(where=Leaf(("id",), Op.IN, (4, 5, ROWS + 9, -1)))
    assert sorted(found["id"].to_pylist()) == [4, ROWS + 9]
    assert set(found["note"].to_pylist()) == {"n4", f"n{ROWS + 9}"}


def _truncated(place: Path) -> None:
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])


def _flipped(place: Path) -> None:
    data = bytearray(place.read_bytes())
    for at in range(64, len(data), 97):
        data[at] ^= 0x55
    place.write_bytes(data)


def _of_another_file(place: Path) -> None:
    others = sorted(each for each in place.parent.rglob("*.keys.puffin") if each != place)
    place.write_bytes(others[0].read_bytes())


HARM = [Path.unlink, _truncated, _flipped, _of_another_file, lambda place: place.write_bytes(b"")]


@pytest.mark.parametrize("harm", HARM, ids=["missing", "truncated", "flipped", "foreign", "empty"])
@pytest.mark.parametrize("warm", [False, True])
def test_a_bad_index_loses_no_row(lake, harm, warm):
    table = _table(lake, files=3)
    if warm:
        table.arrow(where=Leaf(("id",), Op.EQ, (5,)))
    place = Path(sorted(_indexes(table))[0])
    harm(place)
    if not warm:
        clear_key_indexes()
    keys = [0, 1, ROWS, ROWS + 1, 2 * ROWS, 2 * ROWS + 1]
    assert table.arrow(where=Leaf(("id",), Op.IN, tuple(keys))).num_rows == 6
    result = table.upsert(pa.table(_given(keys, 9)), keys=["id"])
    assert (result.rows_updated, result.rows_inserted) == (6, 0)
    assert len(_held(table)) == 3 * ROWS
    assert _expected(table) <= _indexes(table)  # the upsert filled it in


def test_files_of_before_are_indexed_by_create_index(lake, lookups):
    table = _table(lake, index=False)
    assert not _indexes(table)
    report = table.create_index(["ID"])
    assert (report.keys, report.files_indexed) == (("id",), 2)
    assert table.create_index("id").files_indexed == 0
    table.upsert(pa.table(_given([5], 1)), keys=["id"])
    assert lookups[-1].is_used


def test_small_files_and_large_sources_are_scanned(lake, lookups):
    lake.create_namespace("db", if_not_exists=True)
    table = lake.create_table("db.t", _rows(0, 1).schema)
    table.create_index("id")
    table.append(_rows(0, ROWS))
    assert not _indexes(table)
    table.set_properties({"rowlake.index.min-rows": "1"})
    assert table.create_index("id").files_indexed == 1
    assert table.upsert(_rows(0, ROWS, 3), keys=["id"]).rows_updated == ROWS
    assert "to scan is cheaper" in lookups[-1].reason


def test_dropping_the_index_deletes_its_files(lake, lookups):
    table = _table(lake)
    table.upsert(_rows(0, 3, 7), keys=["id"])
    assert table.drop_index().files_removed >= 3
    assert not _indexes(table)
    table.upsert(_rows(0, 3, 8), keys=["id"])
    assert not lookups[-1].columns
    assert not _indexes(table)
    with pytest.raises(InvalidStatementError):
        table.drop_index()


def test_an_index_by_other_columns_replaces_the_first(lake, lookups):
    table = _table(lake)
    assert table.create_index(["note"]).files_indexed == 2
    table.upsert(pa.table(_given([5], 1)), keys=["id"])
    assert "not matched by note" in lookups[-1].reason
    assert table.arrow(where=Leaf(("note",), Op.EQ, ("n8",))).num_rows == 1


@pytest.mark.parametrize("keys", [[], ["nope"], ["id", "id"], [3]])
def test_wrong_columns_are_refused(lake, keys):
    table = _table(lake, files=0, index=False)
    with pytest.raises(InvalidStatementError):
        table.create_index(keys)
    assert "rowlake.index.keys" not in table.properties


def test_a_column_of_lists_cannot_be_a_key(lake):
    lake.create_namespace("db", if_not_exists=True)
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    with pytest.raises(UnsupportedFeatureError):
        lake.create_table("db.t", schema).create_index("tags")


def test_a_failed_write_leaves_no_index_behind(lake, monkeypatch):
    table = _table(lake)
    before = _indexes(table)

    def failing(*_, **__):
        raise RuntimeError("stop")

    monkeypatch.setattr("rowlake.commit.data.Commit._attempt", failing)
    with pytest.raises(RuntimeError):
        table.append(_rows(10**6, 50))
    with pytest.raises(RuntimeError):
        table.upsert(_rows(ROWS - 5, 50, 1), keys=["id"])
    assert _indexes(table) == before


def test_renamed_and_widened_keys_are_still_found(lake, lookups):
    lake.create_namespace("db", if_not_exists=True)
    schema = pa.schema([("id", pa.int32()), ("value", pa.int64())])
    table = lake.create_table("db.t", schema, properties=dict(EAGER))
    table.create_index("id")
    table.append(pa.table({"id": pa.array(range(ROWS), pa.int32()), "value": [0] * ROWS}))
    if table.handle.format.name == "iceberg":
        with table.handle.format.to_pyiceberg(table.handle).update_schema() as update:
            from pyiceberg.types import LongType

            update.update_column("id", field_type=LongType())
    table = lake.table("db.t")
    source = pa.table({"id": pa.array([5, ROWS], pa.int64()), "value": [1, 1]})
    if table.handle.format.name == "iceberg":
        assert table.upsert(source, keys=["id"]).rows_updated == 1
        assert lookups[-1].is_used


def test_orphan_removal_and_expiry_know_index_files(tmp_path):
    lake = make_lake(tmp_path)
    table = _table(lake)
    old = _expected(table)
    stray = Path(sorted(old)[0]).with_name("_gone.parquet.keys.puffin")
    stray.write_bytes(b"x")
    for place in [*_indexes(table), *_all_files(table)]:
        os.utime(place, (1, 1))
    report = table.remove_orphan_files(dry_run=False, older_than="2001-01-01")
    assert [Path(each).name for each in report.orphan_file_location] == [stray.name]
    assert _indexes(table) == old
    table.rewrite_data_files(options={"rewrite-all": "true"})
    report = table.expire_snapshots(older_than="2100-01-01", retain_last=1)
    assert _indexes(table) == _expected(table)
    assert {index for index in report.deleted_files if "keys.puffin" in index}
    root = Path(table.location.removeprefix("file://"))
    lake.drop_table("db.t", purge=True)
    assert not list(root.rglob("*.keys.puffin"))


def _all_files(table) -> set[str]:
    root = Path(table.location.removeprefix("file://"))
    return {str(each) for each in root.rglob("*.parquet")}


def test_vacuum_knows_index_files(tmp_path):
    with using_format("delta"):
        table = _table(make_lake(tmp_path))
        table.rewrite_data_files(options={"rewrite-all": "true"})
        for place in [*_indexes(table), *_all_files(table)]:
            os.utime(place, (1, 1))
        assert len(_indexes(table)) == 3
        table.vacuum(retain_hours=0, dry_run=False, enforce_retention_duration=False)
        assert _indexes(table) == _expected(table)


def test_rows_without_a_key_are_left_alone(lake):
    table = _table(lake)
    rows = pa.table({"id": pa.array([None, 5], pa.int64()), "value": [1, 1], "note": ["a", "b"]})
    table.append(rows.slice(0, 1))
    result = table.upsert(rows.slice(1), keys=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert pc.sum(table.arrow()["id"].is_null()).as_py() == 1
