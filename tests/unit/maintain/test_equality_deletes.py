"""convert_equality_deletes without Spark: exactly the rows that readers do not see are marked."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from rowlake.commit.outcome import commit_or_raise
from rowlake.commit.phases import Phase
from rowlake.errors import InvalidStatementError, StorageError, UnsupportedFeatureError
from rowlake.maintain.deletes import equality_kernel
from rowlake.model.change import Change, Operation, Requirements
from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.storage.files import Storage
from rowlake.verbs.write import WriteOptions, write_rows
from rowlake.write import position_deletes as marks
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.parts.failing import stray_files
from tests.parts.loose_deletes import add_equality_deletes, delete_files, places_of
from tests.parts.marking import files_of
from tests.parts.rows import plain
from tests.parts.stopping import stopped_at

NAME = "shop.sales"
SPECS = {
    "whole": (),
    "by key": ("bucket(2, id)",),
    "by other": ("store",),
    "by both": ("store", "bucket(2, id)"),
}


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def version(request):
    return request.param


def make(lake, version="2", partition_by=(), schema=SALES, **properties):
    given = {
        "format-version": version,
        "write.delete.mode": "merge-on-read",
        "commit.retry.min-wait-ms": "1",
        **properties,
    }
    return lake.create_table(NAME, schema, partition_by=partition_by, properties=given)


def upsert(table, rows, keys=("id",)):
    table._handle, _ = blind_upsert(table.handle, table._engine, rows, keys, WriteOptions())


def shown(table):
    found = table.arrow().to_pylist()
    return sorted((tuple(plain(value) for value in row.values()) for row in found), key=repr)


def equality_files(table):
    return [row for row in delete_files(table) if row["content"] == 2]


def convert(table, *, left=0, **given):
    """Convert, check that no row changes and that the dry run said so; return the report."""
    rows, before = shown(table), files_in(table.location)
    dry = table.convert_equality_deletes(**given, dry_run=True)
    assert (dry.dry_run, dry.snapshot_id, files_in(table.location)) == (True, None, before)
    report = table.convert_equality_deletes(**given)
    assert shown(table) == rows
    ignored = {"snapshot_id", "dry_run"}
    told = [
        {name: value for name, value in one.to_dict().items() if name not in ignored}
        for one in (dry, report)
    ]
    assert told[0] == told[1]
    assert len(equality_files(table)) == left
    if report.snapshot_id is not None:
        head, parent = table.snapshots()[-1], table.snapshots()[-2]
        assert (head.snapshot_id, head.operation) == (report.snapshot_id, "replace")
        assert head.summary["total-records"] == parent.summary["total-records"]
    return report


@pytest.mark.parametrize("kind", SPECS)
def test_upserts_become_marks(lake, version, tmp_path, kind):
    table = make(lake, version, SPECS[kind])
    table.append(sales(100))
    for first in (80, 20, 95):
        upsert(table, sales(30, first))
    files = len(equality_files(table))
    report = convert(table)
    assert report.converted_equality_delete_files_count <= files
    assert report.removed_equality_delete_files_count == files
    # Of 190 rows written 125 are left: an id of every row from 0 to 124.
    assert report.rows_deleted == 190 - 125
    found = delete_files(table)
    assert len(found) == report.added_position_delete_files_count
    assert {row["file_format"] for row in found} == {"PUFFIN" if version == "3" else "PARQUET"}
    assert sum(row["record_count"] for row in found) == 190 - 125
    assert stray_files(tmp_path, None, NAME) == set()
    again = convert(table)
    assert (again.snapshot_id, again.data_files_read) == (None, 0)


def test_delete_granularity(lake):
    table = make(lake, "2", ("store",))
    for first in (0, 50):
        table.append(sales(50, first))
    upsert(table, sales(20, 40))
    by_file = table.convert_equality_deletes(dry_run=True)
    report = convert(table, options={"delete-granularity": "partition"})
    assert by_file.added_position_delete_files_count == 8
    assert report.added_position_delete_files_count == 4
    assert {row["referenced_data_file"] for row in delete_files(table)} == {None}
    with pytest.raises(InvalidStatementError, match="delete-granularity"):
        table.convert_equality_deletes(options={"delete-granularity": "row"})
    with pytest.raises(InvalidStatementError, match="no option x"):
        table.convert_equality_deletes(options={"x": "1"})


VALUES = pa.schema(
    [
        pa.field("n", pa.int32()),
        pa.field("x", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("v", pa.int32()),
    ]
)
NAN = math.nan
ROWS = [
    (1, 0.0, "a"),
    (1, -0.0, "a"),
    (2, NAN, None),
    (None, NAN, "b"),
    (None, None, None),
    (3, 1.5, "c"),
    (None, 1.5, "a"),
]


def values(rows, v=0):
    columns = [*zip(*rows, strict=True), [v] * len(rows)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, VALUES, strict=True)], VALUES)


@pytest.mark.parametrize("partitioned", [(), ("s",), ("bucket(2, n)",)])
def test_nulls_and_several_sets_of_keys(lake, version, partitioned):
    table = make(lake, version, partitioned, VALUES)
    table.append(values(ROWS))
    table.delete("n IS NULL AND s = 'a'", deletes="equality")
    table.append(values(ROWS, 1))
    table.delete("n IS NULL OR s = 'c'", deletes="equality")
    table.append(values(ROWS, 2))
    assert convert(table).rows_deleted == 4 + 4
    assert sorted(table.arrow(["v"])["v"].to_pylist()) == [0] * 3 + [1] * 3 + [2] * 7


def test_nans_and_zeros(lake, version):
    table = make(lake, version, (), VALUES)
    table.append(values(ROWS))
    add_equality_deletes(table, pa.table({"x": pa.array([NAN, -0.0])}))
    add_equality_deletes(table, pa.table({"x": pa.array([1.5]), "n": pa.array([None], pa.int32())}))
    table.append(values(ROWS, 1))
    assert convert(table).rows_deleted == 2 + 1 + 1
    left = [row for row in shown(table) if row[-1] == 0]
    assert {row[1] for row in left} == {"0.0", None, "1.5"}


def test_deletes_of_one_partition_only(lake, version):
    table = make(lake, version, ("store",))
    table.append(sales(8))
    place = places_of(table)[files_of(table)[0]]
    add_equality_deletes(table, pa.table({"id": pa.array([0, 1, 4], pa.int64())}), place)
    assert convert(table).rows_deleted == 2
    assert ids(table) == [1, 2, 3, 5, 6, 7]


def test_columns_that_were_promoted_renamed_and_dropped(lake, version):
    table = make(lake, version, (), VALUES)
    table.append(values(ROWS))
    table.delete("n = 1 OR s IS NULL", deletes="equality")
    table.append(values(ROWS, 1))
    with changing(table, "schema") as update:
        update.update_column("n", "long")
        update.rename_column("n", "number")
        update.delete_column("s")
    upsert(
        table,
        pa.table({"number": pa.array([3, 1 << 40]), "x": [0.1, 0.2], "v": [2, 2]}),
        ["number"],
    )
    table.append(pa.table({"number": pa.array([1 << 40]), "x": [0.3], "v": [3]}))
    report = convert(table)
    # 1, 1 and the two without `s`; then the two 3s, one of each round.
    assert report.rows_deleted == 4 + 2
    upsert(table, pa.table({"number": pa.array([1 << 40]), "x": [0.5], "v": [4]}), ["number"])
    assert convert(table).rows_deleted == 2


def test_what_is_marked_already_is_kept(lake, version):
    table = make(lake, version)
    table.append(sales(100))
    table.delete("id < 10")
    upsert(table, sales(10, 5))
    table.delete("id IN (12, 50)")
    report = convert(table)
    assert report.rows_deleted == 5
    assert sorted(row["record_count"] for row in delete_files(table)) == [1, 16]
    assert report.added_position_delete_files_count == 1


@pytest.mark.spec("Scan Planning: equality deletes apply to strictly older data files")
def test_deletes_that_no_file_needs_go_unread(lake, version):
    table = make(lake, version, ("store",))
    table.append(sales(8))
    table.truncate()
    upsert(table, sales(8))
    assert len(equality_files(table)) == 1
    report = convert(table)
    assert (report.converted_equality_delete_files_count, report.data_files_read) == (0, 0)
    assert (report.removed_equality_delete_files_count, report.rows_deleted) == (1, 0)


def test_a_filter_keeps_what_others_need(lake, version):
    table = make(lake, version, ("store",))
    table.append(sales(100))
    upsert(table, sales(20))
    upsert(table, sales(4, 1))
    report = convert(table, where="store = 1", left=2)
    assert (report.removed_equality_delete_files_count, report.data_files_read) == (0, 2)
    assert report.converted_equality_delete_files_count == 2
    assert report.rows_deleted == 5 + 1
    again = convert(table, where="store = 1", left=2)
    assert (again.snapshot_id, again.rows_deleted) == (None, 0)
    assert convert(table, where="store <> 1", left=2).rows_deleted == 15 + 3
    last = convert(table)
    assert (last.removed_equality_delete_files_count, last.rows_deleted) == (2, 0)
    with pytest.raises(InvalidStatementError, match="nowhere"):
        table.convert_equality_deletes("nowhere = 1")


def test_a_filter_lets_go_what_nobody_else_needs(lake, version):
    table = make(lake, version, ("bucket(4, id)",))
    table.append(sales(40))
    upsert(table, sales(40))
    files = len(equality_files(table))
    report = convert(table, where="id = 7", left=files - 1)
    assert (files, report.removed_equality_delete_files_count) == (4, 1)


def test_specs_that_changed(lake, version):
    table = make(lake, version, ("store",))
    table.append(sales(40))
    with changing(table, "spec") as update:
        update.remove_field("store")
    table.append(sales(40, 40))
    upsert(table, sales(20, 30))
    with changing(table, "spec") as update:
        update.add_field("id", "bucket[2]")
    upsert(table, sales(20, 70))
    assert convert(table).rows_deleted == 30
    assert table.arrow().num_rows == 90


def test_tables_without_equality_deletes(lake):
    table = make(lake, "1")
    assert convert(table).snapshot_id is None
    table.append(sales(3))
    assert convert(table).snapshot_id is None


@pytest.mark.iceberg
def test_not_inside_a_transaction(lake):
    make(lake, "1").append(sales(3))
    with pytest.raises(UnsupportedFeatureError), lake.transaction() as tx:
        tx.table(NAME).convert_equality_deletes()


def test_a_branch(lake, version):
    table = make(lake, version)
    table.append(sales(10))
    upsert(table, sales(5))
    table.create_branch("dev")
    assert table.convert_equality_deletes(branch="dev").rows_deleted == 5
    assert len(equality_files(table)) == 1
    assert rows_of(table.arrow(ref="dev")) == rows_of(table.arrow())


# --- others commit meanwhile


def ids(table):
    return sorted(table.arrow(["id"])["id"].to_pylist())


@pytest.mark.parametrize("phase", [Phase.WRITTEN, Phase.PRODUCED])
def test_rows_deleted_meanwhile_stay_deleted(lake, version, tmp_path, monkeypatch, phase):
    table = make(lake, version)
    table.append(sales(100))
    table.delete("id = 99")
    upsert(table, sales(10, 5))
    expected = [number for number in ids(table) if number not in (7, 50)]
    other = lake.table(NAME)
    with stopped_at(phase, lambda: other.delete("id IN (7, 50)")):
        report = table.convert_equality_deletes()
    assert report.rows_deleted == 10
    assert ids(table) == expected
    assert sorted(row["record_count"] for row in delete_files(table)) == [1, 12]
    assert stray_files(tmp_path, None, NAME) == set()


def test_keys_deleted_meanwhile_stay_for_the_next_run(lake, version, monkeypatch):
    table = make(lake, version)
    table.append(sales(100))
    upsert(table, sales(10, 5))
    other = lake.table(NAME)
    with stopped_at(Phase.WRITTEN, lambda: upsert(other, sales(10, 10))):
        report = table.convert_equality_deletes()
    assert report.removed_equality_delete_files_count == 1
    assert ids(table) == list(range(100))
    assert len(equality_files(table)) == 1
    assert convert(table).rows_deleted == 10


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_writer_does_not_fail_because_of_a_conversion(lake, version, tmp_path, monkeypatch, mode):
    table = make(lake, version)
    table.append(sales(100))
    upsert(table, sales(10, 5))
    expected = [number for number in ids(table) if number not in (7, 50)]
    other = lake.table(NAME)
    with stopped_at(Phase.WRITTEN, other.convert_equality_deletes):
        assert table.delete("id IN (7, 50)", mode=mode).rows_deleted == 2
    assert ids(table) == expected
    assert equality_files(table) == []
    assert stray_files(tmp_path, None, NAME) == set()


def test_a_compaction_of_data_files_that_a_conversion_overtakes(lake, version, monkeypatch):
    table = make(lake, version)
    table.append(sales(100))
    upsert(table, sales(10, 5))
    other = lake.table(NAME)

    def go_on():
        upsert(other, sales(10, 10))
        other.convert_equality_deletes()

    with stopped_at(Phase.WRITTEN, go_on):
        table.rewrite_data_files(options={"rewrite-all": "true"})
    assert ids(table) == list(range(100))
    convert(table)


def test_a_conversion_that_a_compaction_of_data_files_overtakes(lake, version, monkeypatch):
    table = make(lake, version)
    table.append(sales(100))
    upsert(table, sales(10, 5))
    other = lake.table(NAME)

    def go_on():
        other.rewrite_data_files(options={"rewrite-all": "true"})
        upsert(other, sales(10, 10))

    with stopped_at(Phase.WRITTEN, go_on):
        table.convert_equality_deletes()
    assert ids(table) == list(range(100))
    convert(table)


def test_two_conversions_at_once(lake, version, monkeypatch, tmp_path):
    table = make(lake, version)
    table.append(sales(100))
    upsert(table, sales(10, 5))
    with stopped_at(Phase.WRITTEN, lake.table(NAME).convert_equality_deletes):
        table.convert_equality_deletes()
    assert ids(table) == list(range(100))
    assert [row["record_count"] for row in delete_files(table)] == [10]
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.spec("Manifests: a compaction may keep the sequence number that it started from")
def test_a_compaction_that_lands_meanwhile_with_an_old_sequence_number(lake, version, monkeypatch):
    """Its output is older than the equality deletes: they still apply to it."""
    table = make(lake, version)
    table.append(sales(100))
    before = table.handle.view()
    upsert(table, sales(10, 5))
    table.append(sales(5, 200))
    other = lake.table(NAME)

    def compact():
        files = other.inspect("data_files").to_pylist()
        old = next(row["file_path"] for row in files if row["record_count"] == 100)
        written = write_rows(before, other._engine, sales(100), WriteOptions()).files
        change = Change(
            Operation.REPLACE,
            added_data=written,
            removed_data=frozenset({old}),
            data_sequence_number=1,
            requirements=Requirements(starting_snapshot_id=before.snapshot_id),
        )
        commit_or_raise(other.handle, change, Storage({}), "rewrite")

    with stopped_at(Phase.WRITTEN, compact):
        report = table.convert_equality_deletes()
    assert ids(table) == [*range(100), *range(200, 205)]
    assert (report.rows_deleted, equality_files(table)) == (10, [])


def test_a_compaction_of_other_files_with_an_old_sequence_number(lake, version, monkeypatch):
    """No file that was read goes, but a file comes that a removed delete applies to."""
    table = make(lake, version)
    table.append(sales(100))
    late = write_rows(table.handle.view(), table._engine, sales(3, 6), WriteOptions()).files
    upsert(table, sales(10, 5))
    other = lake.table(NAME)

    def compact():
        change = Change(Operation.REPLACE, added_data=late, data_sequence_number=1)
        commit_or_raise(other.handle, change, Storage({}), "rewrite")

    with stopped_at(Phase.WRITTEN, compact):
        report = table.convert_equality_deletes()
    assert ids(table) == list(range(100))
    assert (report.rows_deleted, equality_files(table)) == (13, [])


def test_a_failure_leaves_nothing(lake, tmp_path, monkeypatch, version):
    table = make(lake, version, ("store",))
    table.append(sales(40))
    upsert(table, sales(40))
    head, before = table.snapshots()[-1], files_in(table.location)

    def fails(*args, **kwargs):
        raise StorageError("somewhere", "the disk is full")

    for place, name in (
        (marks, "write_puffin"),
        (marks, "write_positions"),
        (equality_kernel, "positions_in"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fails)
            if (name == "write_puffin") == (version == "2") and place is marks:
                continue
            with pytest.raises(StorageError, match="disk is full"):
                table.convert_equality_deletes()
    assert (files_in(table.location), table.snapshots()[-1]) == (before, head)
    convert(table)


@pytest.mark.parametrize("seed", range(6))
def test_random_histories(lake, seed):
    """Whatever happened before, neither rewrite nor conversion changes a row."""
    chance = random.Random(seed)
    table = make(lake, chance.choice("23"), chance.choice(list(SPECS.values())))
    expected = {}
    for number in range(14):
        first, count = chance.randrange(60), chance.randrange(1, 30)
        rows = sales(count, first)
        kind = chance.choice(["upsert", "upsert", "equality", "delete", "rewrite", "convert"])
        if kind == "upsert":
            upsert(table, rows)
            expected |= {row["id"]: number for row in rows.to_pylist()}
        elif kind == "rewrite":
            table.rewrite_position_delete_files({"rewrite-all": "true"})
        elif kind == "convert":
            where = chance.choice([None, "store = 1", "id < 30"])
            convert_some(table, where)
        else:
            gone = {first, first + 7} if kind == "equality" else set(range(first, first + 5))
            text = f"id IN ({', '.join(map(str, gone))})"
            table.delete(text, **({"deletes": "equality"} if kind == "equality" else {}))
            expected = {key: value for key, value in expected.items() if key not in gone}
        assert ids(table) == sorted(expected), (number, kind)
    convert_some(table, None)
    assert ids(table) == sorted(expected)
    assert equality_files(table) == []


def convert_some(table, where):
    before = shown(table)
    table.convert_equality_deletes(where)
    assert shown(table) == before


@pytest.mark.iceberg
def test_the_procedure(lake):
    from rowlake.sql.procedures.call import PROCEDURES

    table = make(lake)
    table.append(sales(10))
    upsert(table, sales(5))
    found = PROCEDURES["convert_equality_deletes"].run(lake, table=NAME, where=None, options=None)
    assert found.to_pylist() == [
        {
            "converted_equality_delete_files_count": 1,
            "removed_equality_delete_files_count": 1,
            "added_position_delete_files_count": 1,
            "rows_deleted": 5,
            "data_files_read": 1,
        }
    ]
