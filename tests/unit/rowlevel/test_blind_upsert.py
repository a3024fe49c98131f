"""Blind upserts without Spark: equality deletes and new rows in one commit, the target unread."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import (
    CardinalityError,
    CommitConflictError,
    InvalidStatementError,
    RowlakeError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from rowlake.plan.files import plan_files
from rowlake.rowlevel import equality_writes
from rowlake.rowlevel import equality_writes_kernel as blind_kernel
from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.storage.files import Storage
from rowlake.verbs.write import WriteOptions
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, rows_of, sales


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def version(request):
    return request.param


TABLES = {
    "whole": ("3", ()),
    "by key": ("2", ("bucket(2, id)",)),
    "by other": ("3", ("store",)),
    "by both": ("2", ("store", "bucket(2, id)")),
}


@pytest.fixture(params=TABLES)
def table(lake, request):
    format_version, partitions = TABLES[request.param]
    return lake.create_table(
        "shop.sales",
        SALES,
        partition_by=partitions,
        properties={"format-version": format_version},
    )


def upsert(table, rows, keys=("id",), *, branch="main", **more):
    """Upsert as `Table` will; return the result."""
    options = WriteOptions(branch=branch, properties=more.pop("properties", {}))
    _, result = blind_upsert(table.handle, table._engine, rows, keys, options, **more)
    return result


def changed(rows: pa.Table, note: str) -> pa.Table:
    place = rows.schema.get_field_index("note")
    notes = pa.array([f"{note} {each}" for each in rows["id"].to_pylist()], pa.string())
    return rows.set_column(place, rows.schema.field(place), notes)


def merged(*tables: pa.Table) -> list[tuple]:
    """Return the rows of the last table for each id."""
    found = {row["id"]: tuple(row.values()) for rows in tables for row in rows.to_pylist()}
    return sorted(found.values(), key=repr)


def test_rows_are_replaced_by_key_and_new_ones_added(table):
    table.append(sales(100))
    source = changed(sales(60, 70), "new")
    result = upsert(table, source)
    assert rows_of(table.arrow()) == merged(sales(100), source)
    assert (result.operation, result.rows_inserted, result.rows_deleted) == ("upsert", 60, 0)
    assert result.snapshot_id == table.snapshots()[-1].snapshot_id
    snapshot = table.snapshots()[-1]
    summary = snapshot.summary
    assert snapshot.operation == "overwrite"
    assert summary["added-equality-deletes"] == "60"
    assert summary["added-records"] == "60"
    assert summary["added-delete-files"] == str(result.delete_files_added)
    assert summary["added-equality-delete-files"] == str(result.delete_files_added)


def test_upserting_again_and_again_keeps_one_row_per_key(table):
    table.append(sales(50))
    rounds = [changed(sales(30, 10 * number), f"round {number}") for number in range(5)]
    for source in rounds:
        upsert(table, source)
    assert rows_of(table.arrow()) == merged(sales(50), *rounds)


def test_a_row_that_moves_to_another_partition_is_gone_from_the_old_one(lake, version):
    table = lake.create_table(
        "shop.moved", SALES, partition_by=["store"], properties={"format-version": version}
    )
    table.append(sales(8))
    moved = sales(1, 2).set_column(1, SALES.field("store"), pa.array([77], pa.int32()))
    upsert(table, moved)
    assert rows_of(table.arrow()) == merged(sales(8), moved)


def test_an_empty_table_takes_the_rows(table):
    upsert(table, sales(10))
    upsert(table, sales(10))
    assert rows_of(table.arrow()) == rows_of(sales(10))


def test_an_empty_source_commits_nothing(table):
    table.append(sales(3))
    before = files_in(table.location)
    result = upsert(table, sales(0))
    assert result.snapshot_id is None
    assert (len(table.snapshots()), files_in(table.location)) == (1, before)


def deletes_of(table) -> list[dict]:
    return table.inspect("delete_files").to_pylist()


@pytest.mark.spec("Scan Planning: equality deletes of an unpartitioned spec are global")
def test_deletes_go_to_partitions_that_keys_name_else_to_the_whole_table(lake, version):
    properties = {"format-version": version}
    by_key = lake.create_table(
        "shop.by_key", SALES, partition_by=["bucket(4, id)"], properties=properties
    )
    upsert(by_key, sales(40))
    assert [found["spec_id"] for found in deletes_of(by_key)] == [0, 0, 0, 0]
    assert {found["partition"]["id_bucket"] for found in deletes_of(by_key)} == {0, 1, 2, 3}
    assert len(by_key.handle.view().specs) == 1

    by_other = lake.create_table(
        "shop.by_other", SALES, partition_by=["store"], properties=properties
    )
    upsert(by_other, sales(40))
    upsert(by_other, sales(40))
    assert [found["spec_id"] for found in deletes_of(by_other)] == [1, 1]
    specs = {key: list(spec.fields) for key, spec in by_other.handle.view().specs.items()}
    assert (len(specs), specs[1], by_other.handle.view().default_spec_id) == (2, [], 0)
    assert rows_of(by_other.arrow()) == rows_of(sales(40))


def test_a_scope_can_be_asked_for(lake):
    table = lake.create_table("shop.scope", SALES, partition_by=["bucket(4, id)"])
    table.append(sales(20))
    assert upsert(table, sales(20), scope="global").delete_files_added == 1
    assert upsert(table, sales(20), scope="partition").delete_files_added == 4
    assert rows_of(table.arrow()) == rows_of(sales(20))
    with pytest.raises(InvalidStatementError, match="Unknown scope 'local'"):
        upsert(table, sales(1), scope="local")
    other = lake.create_table("shop.scope2", SALES, partition_by=["store"])
    with pytest.raises(InvalidStatementError, match="do not follow from id"):
        upsert(other, sales(1), scope="partition")


def test_data_of_every_partition_spec_is_reached(lake, version):
    table = lake.create_table(
        "shop.specs",
        SALES,
        partition_by=["bucket(2, id)"],
        properties={"format-version": version},
    )
    table.append(sales(20))
    with changing(table, "spec") as update:
        update.remove_field("id_bucket")
        update.add_field("id", "bucket[3]", "id_thirds")
    table.append(sales(20, 20))
    source = changed(sales(40), "new")
    upsert(table, source)
    assert rows_of(table.arrow()) == rows_of(source)
    # By partition in both specs: keys name the partitions of either.
    assert {found["spec_id"] for found in deletes_of(table)} == {0, 1}

    with changing(table, "spec") as update:
        update.add_field("store", "identity", "store")
    table.append(sales(20, 40))
    source = changed(sales(60), "newer")
    result = upsert(table, source)
    assert result.delete_files_added == 1  # keys do not name stores
    assert rows_of(table.arrow()) == rows_of(source)


def test_a_table_that_once_was_unpartitioned_is_deleted_from_globally(lake, version):
    table = lake.create_table("shop.grown", SALES, properties={"format-version": version})
    table.append(sales(20))
    with changing(table, "spec") as update:
        update.add_field("id", "bucket[2]", "id_bucket")
    table.append(sales(20, 20))
    source = changed(sales(40), "new")
    assert upsert(table, source).delete_files_added == 1
    assert rows_of(table.arrow()) == rows_of(source)
    assert len(table.handle.view().specs) == 2


TYPES = {
    "string": (pa.string(), ["ä", "b", "", "x" * 40]),
    "decimal": (pa.decimal128(25, 3), [Decimal("1.500"), Decimal("-2.250"), Decimal(0)]),
    "date": (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "binary": (pa.binary(), [b"", b"\x00\xff", b"k" * 30]),
    "fixed": (pa.binary(3), [b"abc", b"\xff\x00\x01"]),
    "bool": (pa.bool_(), [True, False]),
    "time": (pa.time64("us"), [dt.time(1, 2, 3), dt.time(23, 59, 59, 999999)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 1, 1)]),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(2024, 1, 1, 1).astimezone()],
    ),
    "uuid": (pa.uuid(), [uuid.UUID(int=5).bytes, uuid.UUID(int=1 << 127).bytes]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_keys_of_every_type(lake, version, kind):
    arrow_type, values = TYPES[kind]
    schema = pa.schema([pa.field("k", arrow_type), pa.field("v", pa.int64())])
    table = lake.create_table("shop.typed", schema, properties={"format-version": version})
    keys = pa.array(values, arrow_type)
    table.append(pa.table([keys, pa.array(range(len(keys)))], schema=schema))
    first = keys.slice(0, 1)
    upsert(table, pa.table([first, pa.array([100])], schema=schema), ["k"])
    found = dict(zip(*table.arrow().to_pydict().values(), strict=True))
    expected = dict(zip(values, range(len(keys)), strict=True))
    assert found == expected | {values[0]: 100}


def test_keys_inside_structs_and_identifier_fields(lake, version):
    inner = pa.struct([pa.field("id", pa.int64(), nullable=False), pa.field("x", pa.string())])
    schema = pa.schema([pa.field("who", inner, nullable=False), pa.field("v", pa.int64())])
    table = lake.create_table("shop.nested", schema, properties={"format-version": version})
    table.append([{"who": {"id": 1, "x": "a"}, "v": 1}, {"who": {"id": 2, "x": "b"}, "v": 2}])
    with changing(table, "schema") as update:
        update.set_identifier_fields("who.id")
    upsert(table, [{"who": {"id": 2, "x": "c"}, "v": 20}], None)
    assert rows_of(table.arrow()) == [
        ({"id": 1, "x": "a"}, 1),
        ({"id": 2, "x": "c"}, 20),
    ]


def test_several_key_columns(table):
    table.append(sales(40))
    source = changed(sales(10, 5), "new")
    upsert(table, source, ["id", "store"])
    assert rows_of(table.arrow()) == merged(sales(40), source)
    moved = source.set_column(1, SALES.field("store"), pa.array([99] * 10, pa.int32()))
    upsert(table, moved, ["store", "ID"])
    assert table.arrow().num_rows == 50


def test_equal_keys_are_an_error_with_samples(table):
    table.append(sales(5))
    before = files_in(table.location)
    twice = pa.concat_tables([sales(30), sales(12, 5)])
    with pytest.raises(CardinalityError, match=r"Cannot upsert into shop\.sales") as caught:
        upsert(table, twice)
    assert caught.value.keys == tuple({"id": number} for number in range(5, 15))
    assert files_in(table.location) == before
    with pytest.raises(CardinalityError) as caught:
        upsert(table, pa.concat_tables([sales(3), sales(1, 2)]))
    assert caught.value.keys == ({"id": 2},)


def test_the_latest_row_of_equal_keys_is_kept(table):
    days = [dt.date(2024, 5, 3), dt.date(2024, 5, 9), None, dt.date(2024, 5, 8)]
    rows = [
        {"id": number % 3, "store": 1, "sold_on": day, "amount": None, "note": f"{number} {day}"}
        for number in range(3)
        for day in days
    ]
    result = upsert(table, rows, on_duplicates="latest by sold_on")
    assert result.rows_inserted == 3
    assert set(table.arrow()["note"].to_pylist()) == {f"{n} 2024-05-09" for n in range(3)}


def test_equal_keys_that_are_equally_late_are_an_error(table):
    day = dt.date(2024, 5, 9)
    rows = [
        {"id": 7, "store": number, "sold_on": day, "amount": None, "note": None}
        for number in range(2)
    ]
    with pytest.raises(CardinalityError, match="same latest sold_on: id=7") as caught:
        upsert(table, rows, on_duplicates="latest by SOLD_ON")
    assert caught.value.keys == ({"id": 7},)
    rows.append({**rows[0], "sold_on": day + dt.timedelta(days=1), "note": "last"})
    upsert(table, rows, on_duplicates="latest by sold_on")
    assert table.arrow()["note"].to_pylist() == ["last"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_neighbours_are_found_across_batches(lake, size):
    table = lake.create_table("shop.cut", SALES)
    twice = pa.concat_tables([sales(9), sales(1, 4)]).sort_by("id")
    keys = equality_writes.upsert_keys(table.handle.view(), ["id"], "error")
    with pytest.raises(CardinalityError) as caught:
        list(blind_kernel.unique_rows(twice.to_batches(max_chunksize=size), keys))
    assert caught.value.keys == ({"id": 4},)
    keys = equality_writes.upsert_keys(table.handle.view(), ["id"], "latest by note")
    later = changed(sales(9), "z")
    both = pa.concat_tables([changed(sales(9), "a"), later])
    both = both.sort_by([("id", "ascending"), ("note", "ascending")])
    kept = blind_kernel.unique_rows(both.to_batches(max_chunksize=size), keys)
    assert rows_of(pa.Table.from_batches(kept)) == rows_of(later)


WRONG = {
    "unknown key": ({"keys": ["nope"]}, InvalidStatementError, "no column nope"),
    "no key": ({"keys": []}, InvalidStatementError, "without keys"),
    "no identifier": ({"keys": None}, InvalidStatementError, "without keys"),
    "named twice": ({"keys": ["id", "ID"]}, InvalidStatementError, "named twice"),
    "duplicates": ({"on_duplicates": "first"}, InvalidStatementError, "latest by <column>"),
    "no latest": ({"on_duplicates": "latest by x"}, InvalidStatementError, "no column x"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_arguments_are_told(lake, kind):
    given, error, text = WRONG[kind]
    table = lake.create_table("shop.wrong", SALES)
    with pytest.raises(error, match=text):
        upsert(table, sales(1), **given)
    assert table.snapshots() == []


def test_null_keys_missing_columns_and_other_types_are_refused(lake):
    schema = pa.schema(
        [
            pa.field("k", pa.int64()),
            pa.field("f", pa.float64()),
            pa.field("l", pa.list_(pa.int32())),
        ]
    )
    table = lake.create_table("shop.refused", schema)
    row = {"k": 1, "f": 1.0, "l": [1]}
    with pytest.raises(SchemaMismatchError, match="key column k is null in 1 source rows"):
        upsert(table, [row, {**row, "k": None}], ["k"])
    with pytest.raises(SchemaMismatchError, match="lacks f, l"):
        upsert(table, [{"k": 1}], ["k"])
    for name in ("f", "l", "l.element"):
        with pytest.raises(UnsupportedFeatureError, match="cannot be a key"):
            upsert(table, [row], [name])
    assert table.snapshots() == []
    assert not any("/data/" in location for location in files_in(table.location))


def test_version_1_has_no_delete_files(lake):
    table = lake.create_table("shop.old", SALES, properties={"format-version": "1"})
    with pytest.raises(UnsupportedFeatureError, match="format version 2 or 3"):
        upsert(table, sales(1))


def test_bounds_are_kept_so_that_planning_leaves_deletes_out(lake, version):
    properties = {"format-version": version, "write.metadata.metrics.default": "none"}
    properties["write.metadata.metrics.column.id"] = "counts"
    table = lake.create_table("shop.bounds", SALES, properties=properties)
    upsert(table, sales(10, 100))
    (found,) = deletes_of(table)
    assert found["equality_ids"] == [1]
    assert dict(found["lower_bounds"])[1] == (100).to_bytes(8, "little")
    assert dict(found["upper_bounds"])[1] == (109).to_bytes(8, "little")
    assert dict(found["null_value_counts"])[1] == 0

    plain = lake.create_table("shop.pruned", SALES, properties={"format-version": version})
    for first in (0, 1000, 2000):
        plain.append(sales(50, first))
    upsert(plain, changed(sales(5, 1000), "new"))
    plan = plan_files(plain.handle.view(), None, Storage({}))
    counts = [plan.deletes.applied_to(files, 0).counts.tolist() for files in plan.data.values()]
    assert sorted(counts[0]) == [0, 0, 0, 1]
    assert plain.arrow().num_rows == 150


def test_delete_files_are_sorted_and_roll(lake):
    table = lake.create_table(
        "shop.rolls", SALES, properties={"write.delete.target-file-size-bytes": "20000"}
    )
    ids = np.random.default_rng(5).choice(1 << 60, 20_000, replace=False)
    source = sales(20_000).set_column(0, SALES.field("id"), pa.array(ids))
    upsert(table, source)
    found = deletes_of(table)
    assert len(found) > 1
    reached = -1
    for file in sorted(found, key=lambda each: each["file_path"]):
        ids = pq.read_table(file["file_path"])["id"].to_pylist()
        assert ids == sorted(ids)
        assert ids[0] > reached
        reached = ids[-1]
        assert file["file_path"].endswith("-deletes.parquet")
    metadata = pq.read_metadata(found[0]["file_path"]).metadata
    assert metadata[b"delete-type"] == b"equality"
    assert metadata[b"delete-field-ids"] == b"1"


def test_a_branch_and_properties(lake, version):
    table = lake.create_table("shop.branch", SALES, properties={"format-version": version})
    table.append(sales(5))
    table.create_branch("dev")
    upsert(table, changed(sales(5), "dev"), branch="dev", properties={"who": "me"})
    assert rows_of(table.arrow()) == rows_of(sales(5))
    assert rows_of(table.arrow(ref="dev")) == rows_of(changed(sales(5), "dev"))
    assert table.snapshots()[-1].summary["who"] == "me"


def test_racing_upserts_land_one_after_the_other(table):
    table.append(sales(10))
    stale = table.handle
    upsert(table, changed(sales(10), "first"))
    options = WriteOptions()
    second = changed(sales(10, 5), "second")
    blind_upsert(stale, table._engine, second, ["id"], options)
    assert rows_of(table.arrow()) == merged(changed(sales(10), "first"), second)


def test_a_spec_that_comes_meanwhile_is_a_conflict(lake):
    table = lake.create_table("shop.race", SALES, partition_by=["bucket(2, id)"])
    table.append(sales(10))
    stale = table.handle
    with changing(table, "spec") as update:
        update.add_field("store", "identity", "store")
    table.append(sales(10, 10))
    before = files_in(table.location)
    with pytest.raises(CommitConflictError, match="partition spec was changed"):
        blind_upsert(stale, table._engine, sales(20), ["id"], WriteOptions())
    assert files_in(table.location) == before
    upsert(table, changed(sales(20), "new"))
    assert rows_of(table.arrow()) == rows_of(changed(sales(20), "new"))


def test_two_writers_that_add_the_spec_of_global_deletes_both_land(lake):
    table = lake.create_table("shop.both", SALES, partition_by=["store"])
    table.append(sales(10))
    stale = table.handle
    upsert(table, changed(sales(10), "first"))
    blind_upsert(stale, table._engine, changed(sales(10), "second"), ["id"], WriteOptions())
    assert rows_of(table.arrow()) == rows_of(changed(sales(10), "second"))
    assert len(table.handle.view().specs) == 2


@pytest.mark.parametrize("call", ["add", "close"])
def test_a_failure_leaves_no_file(table, monkeypatch, call):
    table.append(sales(10))
    before = files_in(table.location)

    def fail(*_):
        raise RowlakeError("no room")

    monkeypatch.setattr(blind_kernel.EqualityDeleteWriter, call, fail)
    with pytest.raises(RowlakeError, match="no room"):
        upsert(table, sales(10))
    assert files_in(table.location) == before
    assert len(table.snapshots()) == 1


def test_a_small_parquet_file_needs_no_spark(table, tmp_path):
    table.append(sales(10))
    source = changed(sales(10, 5), "new")
    pq.write_table(source, tmp_path / "source.parquet")
    upsert(table, tmp_path / "source.parquet")
    assert rows_of(table.arrow()) == merged(sales(10), source)
    (tmp_path / "folder").mkdir()
    newer = changed(sales(20), "newer")
    pq.write_table(newer.slice(0, 8), tmp_path / "folder" / "a.parquet")
    pq.write_table(newer.slice(8), tmp_path / "folder" / "b.parquet")
    (tmp_path / "folder" / "_SUCCESS").touch()
    upsert(table, str(tmp_path / "folder"))
    assert rows_of(table.arrow()) == rows_of(newer)
    assert not table._engine.has_session


def test_rows_can_be_deleted_and_rewritten_after_upserts(table):
    table.append(sales(30))
    source = changed(sales(20, 20), "new")
    upsert(table, source)
    for mode in ("merge-on-read", "copy-on-write", "auto"):
        first = {"merge-on-read": 0, "copy-on-write": 25, "auto": 33}[mode]
        table.delete(f"id >= {first} AND id < {first + 3}", mode=mode)
    left = [
        row for row in merged(sales(30), source) if row[0] not in {0, 1, 2, 25, 26, 27, 33, 34, 35}
    ]
    assert rows_of(table.arrow()) == left
    upsert(table, sales(40))
    assert rows_of(table.arrow()) == rows_of(sales(40))


def test_the_kernel_loads_in_workers_without_catalogs_or_spark():
    script = (
        "import sys, rowlake.rowlevel.equality_writes_kernel; "
        "wrong = {'pyiceberg', 'pyspark', 'datafusion', 'sqlglot', 'pandas'} & set(sys.modules); "
        "assert not wrong, wrong"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_spec_of_void_fields_serves_global_deletes(lake):
    table = lake.create_table(
        "shop.void", SALES, partition_by=["store"], properties={"format-version": "1"}
    )
    table.append(sales(20))
    with changing(table, "spec") as update:
        update.remove_field("store")
    table.append(sales(20, 20))
    table.set_properties({"format-version": "2"})
    source = changed(sales(40), "new")
    result = upsert(table, source)
    assert (result.delete_files_added, deletes_of(table)[0]["spec_id"]) == (1, 1)
    assert len(table.handle.view().specs) == 2
    assert rows_of(table.arrow()) == rows_of(source)
