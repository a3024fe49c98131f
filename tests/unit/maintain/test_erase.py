"""erase: no reachable file holds the key afterwards, whatever hid it before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.any_format import changing
from tests.lakes import make_lake

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("p", pa.int32())]
)
SECRET = "zz-secret-of-forty-two"


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"], ids="v{}".format)
def version(request):
    return request.param


def rows(*ids: int) -> pa.Table:
    names = [SECRET if i == 42 else f"name {i}" for i in ids]
    return pa.table({"id": list(ids), "name": names, "p": [i % 2 for i in ids]}, COLUMNS)


def create(lake, version, partition_by=()):
    properties = {
        "format-version": version,
        "write.parquet.compression-codec": "uncompressed",
        "write.avro.compression-codec": "uncompressed",
    }
    table = lake.create_table("shop.t", COLUMNS, partition_by=partition_by, properties=properties)
    table.append(rows(*range(30)))
    table.append(rows(*range(30, 60)))
    table.append(rows(*range(60, 90)))
    return table


def ids(table, **at) -> list[int]:
    return sorted(table.arrow(**at)["id"].to_pylist())


def files_with_secret(table) -> list[str]:
    """Return every file below the table's folder whose bytes hold the value."""
    folder = Path(table.location.removeprefix("file://"))
    paths = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in paths if SECRET.encode() in path.read_bytes()]


EVERY_ROW = [i for i in range(90) if i != 42]


def test_a_live_row_leaves_table_and_history(lake, version):
    table = create(lake, version)
    assert files_with_secret(table)
    report = table.erase([{"id": 42}])
    assert report.rows_deleted == 1
    assert report.is_proven
    assert ids(table) == EVERY_ROW
    assert files_with_secret(table) == []


def test_a_row_that_was_only_marked_as_deleted_leaves_too(lake, version):
    table = create(lake, version)
    table.delete("id = 42", mode="merge-on-read")
    assert files_with_secret(table)
    report = table.erase([{"id": 42}])
    assert (report.rows_deleted, report.files_rewritten) == (0, 1)
    assert ids(table) == EVERY_ROW
    assert files_with_secret(table) == []


def test_equality_deletes_that_hold_the_key_are_folded_in(lake, version):
    table = create(lake, version)
    table.upsert(rows(41, 42), keys=["name"], deletes="equality")
    table.delete(f"name = '{SECRET}'", deletes="equality")
    report = table.erase(where=f"name = '{SECRET}'")
    assert report.is_proven
    assert ids(table) == EVERY_ROW
    assert files_with_secret(table) == []


def test_only_snapshots_that_hold_such_rows_expire(lake, version):
    table = create(lake, version)
    first = table.snapshots()[0].snapshot_id
    report = table.erase([{"id": 42}])
    assert first not in report.expired_snapshot_ids
    assert ids(table, snapshot_id=first) == list(range(30))


def test_every_branch_is_rewritten(lake, version):
    table = create(lake, version, partition_by=["p"])
    table.create_branch("side")
    table.append(rows(100), branch="side")
    table.delete("id = 42", mode="merge-on-read")
    table.erase([{"id": 42}])
    assert ids(table) == EVERY_ROW
    assert ids(table, ref="side") == [*EVERY_ROW, 100]
    assert files_with_secret(table) == []


def test_tags_are_dropped_only_where_that_is_said(lake, version):
    table = create(lake, version)
    table.create_tag("audit")
    count = len(table.snapshots())
    with pytest.raises(InvalidStatementError, match="audit"):
        table.erase([{"id": 42}])
    assert len(table.snapshots()) == count
    report = table.erase([{"id": 42}], drop_tags=True)
    assert report.dropped_tags == ("audit",)
    assert files_with_secret(table) == []


def test_a_dry_run_changes_nothing(lake, version):
    table = create(lake, version)
    count = len(table.snapshots())
    foreseen = table.erase([{"id": 42}], dry_run=True)
    assert foreseen.files_holding == 1
    assert len(table.snapshots()) == count
    done = table.erase([{"id": 42}])
    assert foreseen.held_before == done.held_before
    assert set(foreseen.expired_snapshot_ids) <= set(done.expired_snapshot_ids)


def test_a_key_that_is_not_there_changes_nothing(lake, version):
    table = create(lake, version)
    count = len(table.snapshots())
    report = table.erase([{"id": 4242}])
    assert report.is_proven
    assert report.files_searched == 3
    assert len(table.snapshots()) == count


def test_keys_are_values_of_the_identifier_or_dicts(lake):
    table = create(lake, "2")
    with pytest.raises(InvalidStatementError, match="identifier"):
        table.erase([42])
    with pytest.raises(InvalidStatementError, match="either keys or where"):
        table.erase()
    with pytest.raises(InvalidStatementError, match="no keys"):
        table.erase([])
    with pytest.raises(InvalidStatementError, match="nope"):
        table.erase([{"nope": 1}])
    with changing(table, "schema") as update:
        update.set_identifier_fields("id")
    table.erase([42, 43])
    assert ids(table) == [i for i in range(90) if i not in (42, 43)]


@pytest.mark.iceberg
def test_not_inside_a_transaction(lake):
    create(lake, "2")
    with pytest.raises(UnsupportedFeatureError, match="transaction"), lake.transaction() as tx:
        tx.table("shop.t").erase([{"id": 42}])
