"""compute_partition_stats: what partitions hold, in the file of the spec."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.maintain.iceberg import partition_stats
from rowlake.model.schema import children, field_id
from rowlake.storage.files import Storage
from tests.lakes import SALES, files_in, sales
from tests.unit.sql.lake_without_spark import lake_without_spark

pytestmark = pytest.mark.iceberg

NAME = "shop.sales"
IDS = {
    "partition": 1,
    "spec_id": 2,
    "data_record_count": 3,
    "data_file_count": 4,
    "total_data_file_size_in_bytes": 5,
    "position_delete_record_count": 6,
    "position_delete_file_count": 7,
    "equality_delete_record_count": 8,
    "equality_delete_file_count": 9,
    "total_record_count": 10,
    "last_updated_at": 11,
    "last_updated_snapshot_id": 12,
}


@pytest.fixture
def lake(tmp_path):
    opened = lake_without_spark(tmp_path)
    opened.create_namespace("shop")
    yield opened
    opened.close()


def filled(lake, version="2", partition_by=("store",)):
    given = {"format-version": version, "commit.retry.min-wait-ms": "1"}
    table = lake.create_table(NAME, SALES, partition_by=list(partition_by), properties=given)
    table.append(sales(10))
    table.append(sales(10, first=10))
    return table


def rows_of(report):
    return pq.read_table(report.partition_statistics_file).to_pylist()


def in_full(table, monkeypatch):
    """Return the rows that a computation from all manifests gives."""
    with monkeypatch.context() as patch:
        patch.setattr(partition_stats, "partition_statistics_of", lambda _: {})
        rows, incremental = partition_stats._Computing(table.handle, table.handle.view()).rows_at(
            table.handle.metadata.current_snapshot_id
        )
    assert not incremental
    return rows


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.spec("Partition Statistics File: field ids, order and required fields")
def test_the_file_has_the_layout_of_the_spec(lake, version):
    table = filled(lake, version)
    report = table.compute_partition_stats()
    schema = pq.read_schema(report.partition_statistics_file)
    expected = IDS | ({"dv_count": 13} if version == "3" else {})
    assert {field.name: field_id(field) for field in schema} == expected
    assert list(expected) == schema.names
    assert [field_id(part) for part in children(schema.field("partition").type)] == [1000]
    required = {field.name for field in schema if not field.nullable}
    always = {"partition", *list(IDS)[1:5]}
    assert required == (always | {*list(IDS)[5:9], "dv_count"} if version == "3" else always)
    (named,) = table.handle.metadata.partition_statistics
    assert named.statistics_path == report.partition_statistics_file
    assert named.file_size_in_bytes == report.file_size_in_bytes
    assert named.snapshot_id == report.snapshot_id == table.snapshots()[-1].snapshot_id


@pytest.mark.parametrize("version", ["2", "3"])
def test_partitions_are_counted_in_order(lake, version):
    table = filled(lake, version)
    table.delete("id IN (1, 5)", mode="merge-on-read")
    report = table.compute_partition_stats()
    rows = rows_of(report)
    assert [row["partition"] for row in rows] == [{"store": n} for n in range(4)]
    assert [row["data_record_count"] for row in rows] == [5, 5, 5, 5]
    assert [row["data_file_count"] for row in rows] == [2] * 4
    assert [row["position_delete_record_count"] for row in rows] == [0, 2, 0, 0]
    vectors = [row.get("dv_count") for row in rows]
    files = [row["position_delete_file_count"] for row in rows]
    assert (vectors, files) == (
        ([0, 1, 0, 0], [0] * 4) if version == "3" else ([None] * 4, [0, 1, 0, 0])
    )
    second, third = table.snapshots()[1:]
    updated = [(row["last_updated_at"], row["last_updated_snapshot_id"]) for row in rows]
    assert updated[1] == (third.timestamp_ms, third.snapshot_id)
    assert updated[0] == (second.timestamp_ms, second.snapshot_id)
    assert {row["total_record_count"] for row in rows} == {None}
    sizes = sum(row["total_data_file_size_in_bytes"] for row in rows)
    assert sizes == sum(table.inspect("data_files")["file_size_in_bytes"].to_pylist())
    assert (report.partitions, report.incremental) == (4, False)


@pytest.mark.parametrize("version", ["2", "3"])
def test_what_changed_since_is_added_to_older_statistics(lake, version, monkeypatch):
    table = filled(lake, version)
    table.compute_partition_stats()
    table.append(sales(3, first=100))
    table.delete("id IN (1, 5)", mode="merge-on-read")
    table.delete("store = 2")
    table.upsert(sales(2), keys=["id"], deletes="equality")
    table.rewrite_manifests()
    report = table.compute_partition_stats()
    assert report.incremental
    full = in_full(table, monkeypatch)
    counts = [name for name in full.column_names if name.endswith(("_count", "_bytes"))]
    found = {row["partition"]["store"]: row for row in rows_of(report)}
    for row in full.to_pylist():
        mine = found.pop(row["partition"]["store"])
        present = [name for name in counts if name in mine]
        assert {name: mine[name] for name in present} == {name: row[name] for name in present}
    assert {store: row["data_file_count"] for store, row in found.items()} in ({}, {2: 0})


def test_a_snapshot_keeps_the_file_it_has(lake):
    table = filled(lake)
    first = table.compute_partition_stats()
    location = table.handle.metadata_location
    again = table.compute_partition_stats()
    assert again.partition_statistics_file == first.partition_statistics_file
    assert table.handle.metadata_location == location


def test_a_damaged_older_file_is_not_used(lake):
    table = filled(lake)
    first = table.compute_partition_stats()
    Storage({}).write(first.partition_statistics_file, b"no")
    table.append(sales(4, first=100))
    report = table.compute_partition_stats()
    assert not report.incremental
    assert sum(row["data_record_count"] for row in rows_of(report)) == 24


@pytest.mark.parametrize("column", ["partition", "spec_id", "data_record_count"])
def test_an_older_file_of_other_types_is_not_used(lake, column):
    table = filled(lake)
    path = table.compute_partition_stats().partition_statistics_file
    found = pq.read_table(path)
    place = found.schema.get_field_index(column)
    texts = pa.array(["x"] * found.num_rows)
    field = pa.field(column, texts.type, metadata=found.schema.field(place).metadata)
    pq.write_table(found.set_column(place, field, texts), path)
    table.append(sales(4, first=100))
    report = table.compute_partition_stats()
    assert not report.incremental
    assert sum(row["data_record_count"] for row in rows_of(report)) == 24


def test_statistics_of_an_older_snapshot_are_those_of_then(lake):
    table = filled(lake)
    first = table.snapshots()[0].snapshot_id
    report = table.compute_partition_stats(snapshot_id=first)
    assert sum(row["data_record_count"] for row in rows_of(report)) == 10
    newest = table.compute_partition_stats()
    assert newest.incremental
    assert sum(row["data_record_count"] for row in rows_of(newest)) == 20


def test_specs_of_the_past_are_rows_of_their_own(lake):
    table = filled(lake)
    first = table.compute_partition_stats()
    assert first.partitions == 4
    lake.sql(f"ALTER TABLE {NAME} ADD PARTITION FIELD bucket(2, id)")
    table.append(sales(4, first=100))
    rows = rows_of(table.compute_partition_stats())
    assert {row["spec_id"] for row in rows} == {0, 1}
    assert {tuple(row["partition"]) for row in rows} == {("store", "id_bucket_2")}
    keys = [
        (row["partition"]["store"], -1 if row["partition"]["id_bucket_2"] is None else 1)
        for row in rows
    ]
    assert keys == sorted(keys)
    assert sum(row["data_record_count"] for row in rows) == 24


@pytest.mark.parametrize(
    "column", ["sold_on", "amount", "note", "truncate(3, note)", "year(sold_on)"]
)
def test_partitions_of_any_type_are_sorted_nulls_first(lake, column):
    table = filled(lake, partition_by=(column,))
    rows = rows_of(table.compute_partition_stats())
    values = [next(iter(row["partition"].values())) for row in rows]
    known = [value for value in values if value is not None]
    assert values == [None] * (len(values) - len(known)) + sorted(known)
    table.append(sales(3, first=50))
    again = table.compute_partition_stats()
    assert again.incremental
    assert sum(row["data_record_count"] for row in rows_of(again)) == 23


def test_a_dry_run_counts_and_writes_nothing(lake):
    table = filled(lake)
    location, files = table.handle.metadata_location, files_in(table.location)
    planned = table.compute_partition_stats(dry_run=True)
    assert (table.handle.metadata_location, files_in(table.location)) == (location, files)
    done = table.compute_partition_stats()
    assert (planned.partitions, planned.file_size_in_bytes) == (
        done.partitions,
        done.file_size_in_bytes,
    )


def test_wrong_tables_and_arguments_are_told(lake):
    table = filled(lake)
    with pytest.raises(InvalidStatementError, match="no snapshot 7"):
        table.compute_partition_stats(snapshot_id=7)
    plain = lake.create_table("shop.plain", SALES)
    with pytest.raises(InvalidStatementError, match="not partitioned"):
        plain.compute_partition_stats()
    with pytest.raises(UnsupportedFeatureError, match="compute_partition_stats"):  # noqa: SIM117
        with lake.transaction() as changes:
            changes.table(NAME).compute_partition_stats()


def test_call_gives_the_file(lake):
    table = filled(lake)
    found = lake.sql(f"CALL system.compute_partition_stats('{NAME}')")
    assert found.column_names == ["partition_statistics_file"]
    (named,) = table.handle.metadata.partition_statistics
    assert found["partition_statistics_file"].to_pylist() == [named.statistics_path]
    empty = lake.create_table("shop.empty", SALES, partition_by=["store"])
    assert lake.sql(f"CALL system.compute_partition_stats('{empty.name}')").num_rows == 0


TYPED = {
    "flag": (pa.bool_(), [True, False, None]),
    "d": (pa.float64(), [0.5, float("nan"), None]),
    "at": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc), None, None],
    ),
    "dec": (pa.decimal128(20, 3), [decimal.Decimal("1.5"), decimal.Decimal("-1.5"), None]),
    "bytes": (pa.binary(), [b"b", b"a", None]),
    "fixed": (pa.binary(4), [b"abce", b"abcd", None]),
    "key": (pa.uuid(), [uuid.UUID(int=2).bytes, uuid.UUID(int=1).bytes, None]),
}


@pytest.mark.parametrize("column", TYPED)
def test_partition_values_of_any_type_are_written_and_read_back(lake, column):
    kind, values = TYPED[column]
    rows = pa.table({column: pa.array(values, kind), "n": pa.array([1, 2, 3])})
    table = lake.create_table("shop.typed", rows.schema, partition_by=[column])
    table.append(rows)
    first = table.compute_partition_stats()
    table.append(rows)
    table.rewrite_manifests()
    second = table.compute_partition_stats()
    assert second.incremental
    assert first.partitions == second.partitions == len({str(value) for value in values})
    written = [str(row["partition"][column]) for row in rows_of(first)]
    assert written == [str(row["partition"][column]) for row in rows_of(second)]
    assert written[0] == "None"
    assert sum(row["data_file_count"] for row in rows_of(second)) == 2 * first.partitions
