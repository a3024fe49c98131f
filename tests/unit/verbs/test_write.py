"""Writes without Spark: what is committed, what PyIceberg reads of it, what failures leave."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowlake.commit.phases import Phase
from rowlake.errors import (
    CommitConflictError,
    InvalidStatementError,
    SchemaMismatchError,
)
from rowlake.model.predicate import Leaf, Op
from rowlake.verbs import write
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.parts.stopping import stopped_at


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def table(lake, request):
    return lake.create_table(
        "shop.sales",
        SALES,
        partition_by=["store"],
        properties={"format-version": request.param},
    )


def read_by_pyiceberg(table) -> pa.Table:
    return table.evolve().scan().to_arrow()


def test_append_is_one_snapshot_that_pyiceberg_reads(table):
    result = table.append(sales(100))
    (snapshot,) = table.snapshots()
    assert result.snapshot_id == snapshot.snapshot_id
    assert (result.operation, snapshot.operation) == ("append", "append")
    assert (result.rows_inserted, result.data_files_added, result.retries) == (100, 4, 0)
    assert snapshot.summary["added-records"] == "100"
    assert snapshot.summary["total-data-files"] == "4"
    assert snapshot.summary["changed-partition-count"] == "4"
    assert snapshot.summary["engine-name"] == "rowlake"
    assert rows_of(read_by_pyiceberg(table)) == rows_of(sales(100))


def test_an_empty_append_commits_nothing(table):
    result = table.append(sales(0))
    assert result.snapshot_id is None
    assert table.snapshots() == []


def test_appends_add_up_and_keep_older_manifests(table):
    table.append(sales(10))
    first = set(table.inspect("manifests")["path"].to_pylist())
    table.append(sales(10, 10))
    assert first < set(table.inspect("manifests")["path"].to_pylist())
    assert rows_of(read_by_pyiceberg(table)) == rows_of(sales(20))


def test_dynamic_overwrite_replaces_only_the_partitions_hit(table):
    table.append(sales(40))
    new = sales(40, 1000).filter(pc.equal(sales(40, 1000)["store"], 2))
    result = table.overwrite(new, dynamic=True)
    kept = sales(40).filter(pc.not_equal(sales(40)["store"], 2))
    assert rows_of(read_by_pyiceberg(table)) == rows_of(pa.concat_tables([kept, new]))
    assert (result.rows_deleted, result.rows_inserted) == (10, 10)
    assert table.snapshots()[-1].operation == "overwrite"


def test_overwrite_by_partition_filter_removes_whole_files(table):
    table.append(sales(40))
    where = Leaf(("store",), Op.EQ, (1,))
    table.overwrite(sales(4, 500), where=where)
    kept = sales(40).filter(pc.not_equal(sales(40)["store"], 1))
    assert rows_of(read_by_pyiceberg(table)) == rows_of(pa.concat_tables([kept, sales(4, 500)]))


def test_overwrite_by_a_filter_that_cuts_files_is_refused_and_leaves_no_file(table):
    table.append(sales(40))
    before = files_in(table.location)
    with pytest.raises(InvalidStatementError, match="some rows"):
        table.overwrite(sales(4, 500), where=Leaf(("id",), Op.LT, (20,)))
    assert files_in(table.location) == before
    assert len(table.snapshots()) == 1


def test_truncate_removes_all_rows_by_metadata(table):
    table.append(sales(40))
    result = table.truncate()
    assert result.rows_deleted == 40
    assert table.snapshots()[-1].operation == "delete"
    assert table.snapshots()[-1].summary["total-records"] == "0"
    assert read_by_pyiceberg(table).num_rows == 0


@pytest.mark.spec("Snapshot Row IDs: a snapshot starts at the table's next-row-id")
def test_v3_snapshots_assign_row_ids_without_gaps_or_overlaps(lake):
    table = lake.create_table("shop.v3", SALES, properties={"format-version": "3"})
    table.append(sales(10))
    table.append(sales(5, 10))
    first, second = table.snapshots()
    assert (first.first_row_id, first.added_rows) == (0, 10)
    assert (second.first_row_id, second.added_rows) == (10, 5)
    assert table.handle.metadata.next_row_id == 15
    found = table.inspect("files").select(["first_row_id", "record_count"]).to_pylist()
    assert sorted((row["first_row_id"], row["record_count"]) for row in found) == [(0, 10), (10, 5)]


def test_a_null_in_a_required_column_is_refused_and_leaves_no_file(table):
    before = files_in(table.location)
    bad = pa.table({"id": pa.array([1, None], pa.int64()), "store": pa.array([1, 2], pa.int32())})
    with pytest.raises(SchemaMismatchError) as raised:
        table.append(bad)
    assert raised.value.column == "id"
    assert files_in(table.location) == before


def test_unknown_and_missing_columns_are_named(table):
    with pytest.raises(SchemaMismatchError) as raised:
        table.append([{"id": 1, "colour": "red"}])
    assert raised.value.column == "colour"
    with pytest.raises(SchemaMismatchError) as raised:
        table.append([{"store": 1}])
    assert raised.value.column == "id"


def test_rows_come_as_dicts_frames_and_readers(table):
    import pandas as pd
    import polars as pl

    table.append([{"ID": 1, "store": 1}])
    table.append(pd.DataFrame({"id": [2], "store": pd.array([2], dtype="int32")}))
    table.append(pl.DataFrame({"id": [3], "store": pl.Series([3], dtype=pl.Int32)}))
    table.append(sales(1, 4).to_reader())
    assert sorted(read_by_pyiceberg(table)["id"].to_pylist()) == [1, 2, 3, 4]


def test_lost_races_are_retried_with_the_same_files(lake, table):
    other = lake.table("shop.sales")
    table.append(sales(4))
    with stopped_at(Phase.PRODUCED, lambda: other.append(sales(4, 100))):
        result = table.append(sales(4, 200))
    assert result.retries == 1
    expected = pa.concat_tables([sales(4), sales(4, 100), sales(4, 200)])
    assert rows_of(read_by_pyiceberg(table)) == rows_of(expected)
    known = set(table.inspect("all_manifests")["path"].to_pylist())
    known |= {snapshot.manifest_list for snapshot in table.snapshots()}
    stray = {f for f in files_in(table.location) if f.endswith(".avro")} - known
    assert not stray


def test_a_serializable_overwrite_names_the_append_that_it_lost_to(lake, table, monkeypatch):
    table.append(sales(8))
    other = lake.table("shop.sales")
    rows, done = write.write_rows, []

    def once(*args, **kwargs):
        monkeypatch.setattr(write, "write_rows", rows)
        written = rows(*args, **kwargs)
        done.append(other.append(sales(4, 100)).snapshot_id)
        return written

    monkeypatch.setattr(write, "write_rows", once)
    with pytest.raises(CommitConflictError) as raised:
        table.overwrite(sales(2, 500), isolation="serializable")
    assert raised.value.snapshot_id == done[0]
    assert len(table.snapshots()) == 2
    live = {Path(path).name for path in table.inspect("data_files")["file_path"].to_pylist()}
    found = {Path(path).name for path in files_in(table.location)}
    assert {name for name in found if name.endswith(".parquet")} == live
