"""compute_table_stats: distinct values per column, in a Puffin file that the metadata names."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid

import numpy as np
import pyarrow as pa
import pytest

from rowlake.codecs.puffin import read_footer
from rowlake.errors import CommitConflictError, InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.format import IcebergFormat
from rowlake.model.outcome import Conflict
from rowlake.storage.files import Storage
from tests.lakes import SALES, files_in, make_lake, sales
from tests.unit.sql.lake_without_spark import lake_without_spark

pytestmark = pytest.mark.iceberg

NAME = "shop.sales"
COUNTED = {"id": 100, "store": 4, "sold_on": 90, "amount": 100, "note": 85}


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


def filled(lake, version="2", **properties):
    given = {"format-version": version, "commit.retry.min-wait-ms": "1", **properties}
    table = lake.create_table(NAME, SALES, partition_by=["store"], properties=given)
    table.append(sales(50))
    table.append(sales(50, first=50))
    return table


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_every_column_is_counted_and_the_file_is_registered(lake, version):
    table = filled(lake, version)
    report = table.compute_table_stats()
    assert report.distinct_values == COUNTED
    assert "id 100, store 4, sold_on 90" in str(report)
    head = table.snapshots()[-1]
    (named,) = table.handle.metadata.statistics
    assert named.statistics_path == report.statistics_file
    assert named.snapshot_id == report.snapshot_id == head.snapshot_id
    assert named.file_size_in_bytes == report.file_size_in_bytes
    assert report.statistics_file.startswith(f"{table.location}/metadata/{head.snapshot_id}-")
    blobs = read_footer(report.statistics_file, Storage({}))
    assert [blob.fields for blob in blobs] == [(1,), (2,), (3,), (4,), (5,)]
    assert {blob.type for blob in blobs} == {"apache-datasketches-theta-v1"}
    assert [blob.properties for blob in blobs] == [{"ndv": str(n)} for n in COUNTED.values()]
    assert {blob.sequence_number for blob in blobs} == {head.sequence_number}
    data = Storage({}).read(report.statistics_file)
    footer = data[len(data) - named.file_footer_size_in_bytes :]
    assert footer[:4] == footer[-4:] == b"PFA1"
    assert len(table.snapshots()) == 2


def test_deleted_rows_are_not_counted_and_time_travel_is(lake):
    table = filled(lake)
    before = table.handle.metadata.current_snapshot_id
    table.delete("id >= 60 AND id < 90", mode="merge-on-read")
    assert table.compute_table_stats(columns=["id"]).distinct_values == {"id": 70}
    assert table.compute_table_stats(snapshot_id=before).distinct_values == COUNTED
    assert {one.snapshot_id for one in table.handle.metadata.statistics} == {
        before,
        table.handle.metadata.current_snapshot_id,
    }


def test_statistics_of_a_snapshot_replace_each_other(lake):
    table = filled(lake)
    table.compute_table_stats()
    report = table.compute_table_stats(columns=["store", "store"])
    (named,) = table.handle.metadata.statistics
    assert named.statistics_path == report.statistics_file
    assert [blob.fields for blob in named.blob_metadata] == [[2]]


TYPED = {
    "flag": (pa.bool_(), [True, False, True]),
    "i": (pa.int32(), [1, 2, 1]),
    "l": (pa.int64(), [1, 2**40, 1]),
    "f": (pa.float32(), [0.0, -0.0, float("nan")]),
    "d": (pa.float64(), [0.0, -0.0, float("nan")]),
    "day": (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]),
    "at": (pa.timestamp("us"), [dt.datetime(2024, 1, 1), None, None]),
    "zoned": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1), None, None]),
    "time": (pa.time64("us"), [dt.time(1), dt.time(2), dt.time(1)]),
    "dec": (pa.decimal128(20, 3), [decimal.Decimal("1.5"), decimal.Decimal("-1.5"), None]),
    "text": (pa.string(), ["", "a", "b"]),
    "bytes": (pa.binary(), [b"", b"a", b"a"]),
    "fixed": (pa.binary(4), [b"abcd", b"abce", b"abcd"]),
    "key": (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, uuid.UUID(int=1).bytes]),
    "nothing": (pa.int64(), [None, None, None]),
}
# As in DataSketches, empty values do not count.
TYPED_COUNTS = [2, 2, 2, 3, 3, 2, 1, 1, 2, 2, 2, 1, 2, 2, 0]


def test_all_primitive_types_are_counted_and_nested_columns_left_out(lake):
    columns = {name: pa.array(values, kind) for name, (kind, values) in TYPED.items()}
    inner = pa.array([{"a": 1, "l": [1]}, {"a": 2, "l": []}, None])
    rows = pa.table({**columns, "st": inner})
    table = lake.create_table("shop.typed", rows.schema)
    table.append(rows)
    found = table.compute_table_stats().distinct_values
    assert found == dict(zip(TYPED, TYPED_COUNTS, strict=True))
    assert table.compute_table_stats(columns=["st.a", "i"]).distinct_values == {"st.a": 2, "i": 2}
    for nested in ("st", "st.l", "st.l.element"):
        with pytest.raises(InvalidStatementError, match="primitive"):
            table.compute_table_stats(columns=[nested])


def test_many_values_in_several_tasks_are_estimated(lake):
    table = lake.create_table("shop.wide", pa.schema([("n", pa.int64()), ("s", pa.string())]))
    numbers = pa.array(np.arange(60_000) % 30_000)
    for first in (0, 30_000):
        part = numbers.slice(first, 30_000)
        table.append(pa.table({"n": part, "s": part.cast(pa.string())}))
    found = table.compute_table_stats().distinct_values
    assert found == {
        "n": pytest.approx(30_000, rel=0.05),
        "s": pytest.approx(30_000, rel=0.05),
    }


def test_a_table_without_snapshots_gets_no_file(lake):
    table = lake.create_table(NAME, SALES)
    report = table.compute_table_stats()
    assert (report.statistics_file, table.handle.metadata.statistics) == (None, [])


def test_a_dry_run_counts_and_writes_nothing(lake):
    table = filled(lake)
    location, files = table.handle.metadata_location, files_in(table.location)
    planned = table.compute_table_stats(dry_run=True)
    assert (table.handle.metadata_location, files_in(table.location)) == (location, files)
    done = table.compute_table_stats()
    assert planned.distinct_values == done.distinct_values
    assert planned.file_size_in_bytes == done.file_size_in_bytes
    assert planned.dry_run
    assert planned.statistics_file is None


def test_a_commit_that_never_lands_leaves_no_file(lake, monkeypatch):
    table = filled(lake, **{"commit.retry.num-retries": "0"})
    files = files_in(table.location)
    monkeypatch.setattr(IcebergFormat, "swap", lambda *_, **__: Conflict("no"))
    with pytest.raises(CommitConflictError, match="compute_table_stats"):
        table.compute_table_stats()
    assert files_in(table.location) == files


def test_wrong_arguments_are_told(lake):
    table = filled(lake)
    with pytest.raises(InvalidStatementError, match="no such column"):
        table.compute_table_stats(columns=["nope"])
    with pytest.raises(InvalidStatementError, match="list of names"):
        table.compute_table_stats(columns="id")
    with pytest.raises(InvalidStatementError, match="no column"):
        table.compute_table_stats(columns=[])
    with pytest.raises(InvalidStatementError, match="no snapshot 7"):
        table.compute_table_stats(snapshot_id=7)
    with pytest.raises(UnsupportedFeatureError, match="compute_table_stats"):  # noqa: SIM117
        with lake.transaction() as changes:
            changes.table(NAME).compute_table_stats()


def test_call_gives_the_file(tmp_path):
    lake = lake_without_spark(tmp_path)
    lake.sql("CREATE NAMESPACE shop")
    table = filled(lake)
    found = lake.sql(f"CALL system.compute_table_stats('{NAME}')")
    assert found.column_names == ["statistics_file"]
    (named,) = table.handle.metadata.statistics
    assert found["statistics_file"].to_pylist() == [named.statistics_path]
    empty = lake.create_table("shop.empty", SALES)
    assert lake.sql(f"CALL system.compute_table_stats('{empty.name}')").num_rows == 0
    lake.close()
