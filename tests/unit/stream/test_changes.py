"""What `changes` says of single commits, on every kind of table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.predicate import Leaf, Op
from tests.any_format import changing
from tests.lakes import SALES, make_lake, sales

MODES = ("copy-on-write", "merge-on-read")

pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as found:
        found.create_namespace("ns")
        yield found


def table_of(lake, version="2", **layout):
    properties = {"format-version": version}
    return lake.create_table("ns.t", SALES, properties=properties, **layout)


def rows(*ids, note="new"):
    """Return whole rows of these ids."""
    table = sales(max(ids) + 1).take(pa.array(ids))
    return table.set_column(4, "note", pa.array([note] * len(ids)))


def told(found, *more):
    """Return (type, id, note) of each change, and further columns, in order."""
    names = ("_change_type", "id", "note", *more)
    return [tuple(row[name] for name in names) for row in found.to_pylist()]


def since(table, start, **asked):
    """Return the changes after a commit; one commit has its rows by id."""
    found = table.changes_arrow(start=start.snapshot_id, **asked)
    ordinals = found["_change_ordinal"].to_pylist()
    by_id = sorted(zip(ordinals, told(found), strict=True), key=lambda row: (row[0], row[1][1]))
    return [change for _, change in by_id]


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", MODES)
def test_an_update_is_two_images_of_one_key(lake, version, mode):
    table = table_of(lake, version)
    first = table.append(sales(6))
    table.upsert(rows(3), ["id"], mode=mode)
    assert since(table, first, keys=["id"]) == [
        ("update_preimage", 3, "note 3"),
        ("update_postimage", 3, "new"),
    ]


@pytest.mark.not_delta("row ids by default")
@pytest.mark.parametrize(("version", "types"), [("2", ("delete", "insert")), ("3", None)])
@pytest.mark.parametrize("mode", MODES)
def test_without_keys_row_ids_pair_updates_where_there_are_any(lake, version, types, mode):
    table = table_of(lake, version)
    first = table.append(sales(6))
    table.upsert(rows(3), ["id"], mode=mode)
    old, new = types or ("update_preimage", "update_postimage")
    assert since(table, first) == [(old, 3, "note 3"), (new, 3, "new")]


@pytest.mark.not_delta("identifier fields")
def test_identifier_fields_are_the_default_keys(lake):
    table = table_of(lake)
    with changing(table, "schema") as schema:
        schema.set_identifier_fields("id")
    first = table.append(sales(4))
    table.upsert(rows(2), mode="merge-on-read")
    assert [kind for kind, *_ in since(table, first)] == ["update_preimage", "update_postimage"]


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", MODES)
def test_a_delete_shows_the_rows_that_are_gone(lake, version, mode):
    table = table_of(lake, version)
    first = table.append(sales(6))
    table.delete("id in (1, 4)", mode=mode)
    assert since(table, first) == [("delete", 1, "note 1"), ("delete", 4, "note 4")]


def test_rows_that_a_rewrite_carries_over_are_no_changes(lake):
    table = table_of(lake)
    table.append(pa.concat_tables([sales(5), sales(5)]))  # rows that are there twice
    first = table.append(sales(3, first=10))
    table.delete("id = 4", mode="copy-on-write")
    assert since(table, first) == [("delete", 4, "note 4")] * 2


@pytest.mark.not_delta("equality deletes")
@pytest.mark.parametrize("version", ["2", "3"])
def test_equality_deletes_are_the_rows_that_they_hit(lake, version):
    table = table_of(lake, version, partition_by=["store"])
    table.append(sales(8))
    first = table.delete("id = 2", mode="merge-on-read")
    table.upsert(rows(2, 3, 90), ["id", "store"], deletes="equality")
    assert since(table, first, keys=["id"]) == [
        ("insert", 2, "new"),  # it was deleted before
        ("update_preimage", 3, "note 3"),
        ("update_postimage", 3, "new"),
        ("insert", 90, "new"),
    ]


@pytest.mark.not_delta("equality deletes")
def test_deletes_of_the_same_commit_do_not_show_rows_that_never_were(lake):
    table = table_of(lake)
    first = table.append(sales(4))
    table.upsert(rows(1), ["id"], deletes="equality")
    second = table.upsert(rows(1, note="newer"), ["id"], deletes="equality")
    assert since(table, first, end=second.snapshot_id, net=True, keys=["id"]) == [
        ("update_preimage", 1, "note 1"),
        ("update_postimage", 1, "newer"),
    ]


def test_compaction_and_manifests_have_no_changes(lake):
    table = table_of(lake, "3")
    table.append(sales(6))
    table.append(sales(6, first=6))
    first = table.delete("id = 3", mode="merge-on-read")
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert since(table, first) == []
    table.append(sales(1, first=40))
    found = table.changes_arrow(start=first.snapshot_id)
    assert told(found, "_change_ordinal") == [("insert", 40, "note 40", 0)]


@pytest.mark.not_delta("snapshots that expire")
def test_history_begins_with_the_rows_of_the_oldest_snapshot(lake):
    table = table_of(lake)
    table.append(sales(2))
    table.delete("id = 0")
    last = table.append(sales(1, first=7))
    table.expire_snapshots(older_than=last_moment(), retain_last=1)
    found = told(table.changes_arrow(), "_change_ordinal", "_commit_snapshot_id")
    head = last.snapshot_id
    assert sorted(found) == [("insert", 1, "note 1", 0, head), ("insert", 7, None, 0, head)]


def last_moment() -> int:
    return 1 << 42


@pytest.mark.not_delta("snapshots that expire")
def test_an_expired_start_names_the_oldest_snapshot(lake):
    table = table_of(lake)
    first = table.append(sales(2))
    last = table.append(sales(1, first=7))
    table.expire_snapshots(older_than=last_moment(), retain_last=1)
    with pytest.raises(
        InvalidStatementError, match=f"has expired.*available is {last.snapshot_id}"
    ):
        table.changes_arrow(start=first.snapshot_id)
    with pytest.raises(InvalidStatementError, match=f"{last.snapshot_id}, the oldest that is kept"):
        table.changes_arrow(start_as_of=1)


@pytest.mark.not_delta("rollbacks")
def test_what_was_rolled_back_is_not_in_the_feed(lake):
    table = table_of(lake)
    first = table.append(sales(2))
    undone = table.append(sales(1, first=7))
    table.rollback_to(first.snapshot_id)
    table.append(sales(1, first=9))
    assert since(table, first) == [("insert", 9, "note 9")]
    with pytest.raises(InvalidStatementError, match="is not an ancestor of snapshot"):
        table.changes_arrow(start=undone.snapshot_id)
    assert since(table, first, end=undone.snapshot_id) == [("insert", 7, None)]


@pytest.mark.not_delta("branches")
def test_a_branch_has_its_own_changes(lake):
    table = table_of(lake)
    first = table.append(sales(2))
    table.create_branch("b")
    table.append(sales(1, first=5), branch="b")
    table.append(sales(1, first=9))
    assert since(table, first, branch="b") == [("insert", 5, "note 5")]
    assert since(table, first) == [("insert", 9, "note 9")]


def test_times_stand_for_snapshots(lake):
    table = table_of(lake)
    first, second = table.append(sales(1)), table.append(sales(1, first=1))
    table.append(sales(1, first=2))
    at = {each.snapshot_id: each.timestamp_ms for each in table.snapshots()}
    if len(set(at.values())) < 3:
        pytest.skip("commits of one millisecond")
    begin, end = at[first.snapshot_id], at[second.snapshot_id]
    assert told(table.changes_arrow(start_as_of=begin, end_as_of=end)) == [("insert", 1, "note 1")]
    assert len(told(table.changes_arrow(start_as_of=begin - 1))) == 3
    assert told(table.changes_arrow(end_as_of=begin - 1)) == []


@pytest.mark.not_delta("columns that are dropped without column mapping")
def test_rows_come_in_the_schema_of_the_end(lake):
    table = table_of(lake)
    table.append(sales(2))
    first = table.delete("id = 0", mode="merge-on-read")
    with changing(table, "schema") as schema:
        schema.delete_column("note")
        schema.rename_column("store", "shop")
    table.delete("id = 1", mode="copy-on-write")
    found = table.changes_arrow(start=first.snapshot_id)
    assert found.column_names[:4] == ["id", "shop", "sold_on", "amount"]
    assert [(row["_change_type"], row["id"], row["shop"]) for row in found.to_pylist()] == [
        ("delete", 1, 1)
    ]
    old = table.changes_arrow(end=first.snapshot_id)
    assert "note" in old.column_names


def test_net_leaves_what_is_different_in_the_end(lake):
    table = table_of(lake)
    first = table.append(sales(4))
    table.upsert(rows(1), ["id"])
    table.append(sales(1, first=8))
    table.delete("id in (2, 8)")
    table.upsert(rows(1, note="newest"), ["id"])
    found = table.changes_arrow(start=first.snapshot_id, net=True, keys=["id"])
    assert told(found, "_change_ordinal") == [
        ("delete", 2, "note 2", 2),
        ("update_preimage", 1, "note 1", 3),
        ("update_postimage", 1, "newest", 3),
    ]
    assert since(table, first, net=True) == [
        ("delete", 1, "note 1"),
        ("delete", 2, "note 2"),
        ("insert", 1, "newest"),
    ]


def test_a_row_that_comes_back_as_it_was_is_no_net_change(lake):
    table = table_of(lake, "3")
    first = table.append(sales(3))
    table.delete("id = 1")
    table.append(sales(1, first=1))
    assert since(table, first, net=True, keys=["id"]) == []


@pytest.mark.parametrize("mode", MODES)
def test_columns_and_conditions_do_not_change_what_a_change_is(lake, mode):
    table = table_of(lake)
    first = table.append(sales(6))
    table.upsert(rows(3, 4), ["id"], mode=mode)
    asked = {"start": first.snapshot_id, "keys": ["id"], "columns": ["id"]}
    found = table.changes_arrow(**asked)
    assert found.column_names == [
        *("id", "_change_type", "_change_ordinal", "_commit_snapshot_id", "_commit_timestamp")
    ]
    assert found["_change_type"].to_pylist() == ["update_preimage", "update_postimage"] * 2
    new = table.changes_arrow(**asked, where=Leaf(("note",), Op.EQ, ("new",)))
    assert new["_change_type"].to_pylist() == ["update_postimage"] * 2
    one = table.changes_arrow(**asked, where=Leaf(("id",), Op.EQ, (4,)))
    assert one["id"].to_pylist() == [4, 4]


def test_wrong_arguments_are_refused(lake):
    table = table_of(lake)
    first = table.append(sales(2))
    with pytest.raises(InvalidStatementError, match="Give one of start and start_as_of"):
        table.changes_arrow(start=first.snapshot_id, start_as_of=3)
    with pytest.raises(InvalidStatementError, match="Give one of end and end_as_of"):
        table.changes_arrow(end=first.snapshot_id, end_as_of=3)
    with pytest.raises(InvalidStatementError, match="nope"):
        table.changes_arrow(keys=["nope"])
    with pytest.raises(InvalidStatementError, match="asked for twice"):
        table.changes_arrow(columns=["id", "ID"])
    with pytest.raises(InvalidStatementError, match=r"snapshot 7 \(end\) is unknown"):
        table.changes_arrow(end=7)


@pytest.mark.iceberg
def test_a_column_of_the_name_of_a_change_column_is_refused(lake):
    # Other engines may create such a column; rowlake does not.
    lake.catalog.create_table("ns.odd", pa.schema([pa.field("_change_type", pa.string())]))
    table = lake.table("ns.odd")
    with pytest.raises(UnsupportedFeatureError, match="_change_type have the names"):
        table.changes_arrow()


@pytest.mark.not_delta("tables without a first version")
def test_a_table_without_snapshots_has_no_changes(lake):
    table = table_of(lake)
    assert table.changes_arrow().num_rows == 0
    with pytest.raises(InvalidStatementError, match="It has no snapshots"):
        table.changes_arrow(start=1)


@pytest.mark.not_delta("equality deletes")
def test_an_end_from_before_a_promotion_reads_partitions_as_they_were(lake):
    schema = pa.schema([("id", pa.int32()), ("note", pa.string())])
    table = lake.create_table("ns.p", schema, partition_by=["truncate(2, id)"])
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "note": ["a", "b"]}, schema)
    first = table.append(rows)
    second = table.upsert(rows.slice(0, 1), ["id"], deletes="equality")
    with changing(table, "schema") as change:
        change.update_column("id", LongType())
    assert since(table, first, end=second.snapshot_id) == [("delete", 1, "a"), ("insert", 1, "a")]
