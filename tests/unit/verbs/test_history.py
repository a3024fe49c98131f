"""`history` and `tables`: what made each snapshot, and how many rows a reader sees after it."""

from __future__ import annotations

import getpass

import pytest

from rowlake.cli.views import history_of, tables_of
from rowlake.model.predicate import Leaf, Op
from rowlake.model.provenance import CONDITION, LONGEST_CONDITION, noted, provenance_of
from rowlake.model.view import SnapshotInfo
from tests.lakes import SALES, make_lake, sales


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def table(lake, request):
    made = lake.create_table(
        "shop.sales", SALES, partition_by=["store"], properties={"format-version": request.param}
    )
    made.append(sales(1000))
    return made


def rows_told(table) -> list[tuple]:
    told = history_of(table)
    return [dict(zip(told.schema.names, row, strict=True)) for row in told.values]


def test_rows_deleted_on_read_are_counted(lake, table):
    table.delete("id < 100", mode="merge-on-read")
    (row,) = tables_of(lake, None).values
    assert row[:3] == ("shop.sales", table.format_version, 900)
    newest = rows_told(table)[0]
    counts = [newest[f"rows_{word}"] for word in ("updated", "deleted", "inserted")]
    assert counts == [0, 100, 0]
    assert newest["total_rows"] == table.arrow().num_rows == 900


def test_history_names_statement_condition_and_user(table):
    table.delete("id < 100", mode="merge-on-read")
    table.upsert(sales(2, 990), keys=["id"])
    table.upsert(sales(2, 5000), keys=["id"])
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.truncate()
    told = rows_told(table)[::-1]
    statements = [row["statement"] for row in told]
    assert statements == ["APPEND", "DELETE", "UPSERT", "rewrite_data_files", "TRUNCATE"]
    assert [row["condition"] for row in told] == [None, "id < 100", None, None, None]
    assert {row["user"] for row in told} == {getpass.getuser()}
    assert [row["total_rows"] for row in told] == [1000, 900, 902, 902, 0]
    assert [row["rows_deleted"] for row in told] == [0, 100, 0, 0, 902]
    in_python = table.history().to_pylist()
    assert [row["statement"] for row in in_python] == statements
    assert [row["total_rows"] for row in in_python] == [1000, 900, 902, 902, 0]
    assert {"made_current_at", "snapshot_id", "is_current_ancestor"} <= set(in_python[0])


def test_rows_stay_exact_where_position_deletes_outlive_their_file(table):
    table.delete("id < 100", mode="merge-on-read")
    table.delete("store = 1 AND id < 500", mode="copy-on-write")
    table.delete("id > 990", mode="merge-on-read")
    assert rows_told(table)[0]["total_rows"] == table.arrow().num_rows


def test_a_predicate_is_told_as_text(table):
    table.delete(Leaf(("id",), Op.LT, (7,)))
    assert rows_told(table)[0]["condition"] == "id < 7"


def test_partitions_that_change_count_once(table):
    stores = len(set(table.arrow()["store"].to_pylist()))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    newest = table.snapshots()[-1].summary
    assert newest["added-data-files"] == newest["deleted-data-files"] == str(stores)
    assert newest["changed-partition-count"] == str(stores)


def test_a_condition_hides_secrets_and_is_cut():
    found = noted("delete", "password = 'hunter22' AND id = 3")
    assert "hunter22" not in found[CONDITION]
    assert "id = 3" in found[CONDITION]
    long = noted("delete", f"id IN ({', '.join(map(str, range(1000)))})")[CONDITION]
    assert len(long) == LONGEST_CONDITION
    assert long.endswith("…")


def snapshot(number: int, operation: str, summary: dict[str, str], parent: int | None = None):
    return SnapshotInfo(number, parent, number, number, None, operation, summary)


def test_counts_of_icebergs_spark_are_read():
    totals = {"total-records": "8", "total-position-deletes": "0", "total-equality-deletes": "0"}
    counts = {
        "spark.merge-into.num-target-rows-updated": "3",
        "spark.merge-into.num-target-rows-inserted": "2",
    }
    found = provenance_of([snapshot(1, "overwrite", totals | counts)])[1]
    assert found.statement == "MERGE"
    assert (found.rows_updated, found.rows_deleted, found.rows_inserted) == (3, 0, 2)
    assert found.total_rows == 8


def test_equality_deletes_leave_counts_open():
    summary = {
        "added-records": "5",
        "added-equality-deletes": "5",
        "total-records": "15",
        "total-position-deletes": "0",
        "total-equality-deletes": "5",
    }
    found = provenance_of([snapshot(1, "overwrite", summary)])[1]
    assert (found.rows_updated, found.rows_deleted, found.rows_inserted) == (None, None, 5)
    assert found.total_rows is None


def test_another_writers_overwrite_tells_records_not_updates():
    summary = {"added-records": "5", "deleted-records": "4", "total-records": "5"}
    found = provenance_of([snapshot(1, "overwrite", summary)])[1]
    assert (found.rows_updated, found.rows_deleted, found.rows_inserted) == (None, 4, 5)
