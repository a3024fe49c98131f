"""Mirrors follow their tables: every kind of commit, in both directions, by our own readers."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.maintain.cleanup import orphan_candidates
from rowlake.mirror import sync
from rowlake.mirror.referenced import files_of
from rowlake.model.mirror import MIRROR, SOURCE_SNAPSHOT
from tests.delta_writing import WrittenTable
from tests.lakes import files_in
from tests.mirrors import (
    MAPPED,
    OTHER,
    V3,
    VECTORS,
    alter,
    check_equal,
    log_of,
    mirror_of,
    rows,
    versions,
)

KINDS = {
    "iceberg-v3": ("iceberg", V3),
    "delta-mapped": ("delta", MAPPED),
    "delta-plain": ("delta", VECTORS),
}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        found.create_namespace("ns")
        yield found


def people(first, last):
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([None if i % 5 == 4 else f"c{i % 3}" for i in ids]),
            "score": pa.array([i / 4 for i in ids], pa.float64()),
        }
    )


@pytest.fixture(params=KINDS)
def table(request, lake):
    """A table with rows; its mirror follows."""
    kind, properties = KINDS[request.param]
    found = lake.create_table(
        "ns.t",
        people(0, 1).schema,
        partition_by="city",
        properties={**properties, MIRROR: OTHER[kind]},
        format=kind,
    )
    found.append(people(0, 20))
    return found


def test_a_mirror_follows_every_commit(table):
    assert len(check_equal(table)) == 20
    table.append(people(20, 40))
    table.delete("id = 3")
    check_equal(table)
    table.delete("id in (4, 5, 25)")
    assert len(check_equal(table)) == 36
    table.upsert(people(39, 42), keys=["id"])
    check_equal(table)
    table.overwrite(people(100, 101), where="city = 'c1'")
    check_equal(table)
    table.truncate()
    assert check_equal(table) == []


def test_data_files_and_vectors_are_shared(table):
    def own_files():
        return {
            one for one in files_in(table.location) if one.endswith(("parquet", "bin", "puffin"))
        }

    table.delete("id = 3")
    before = own_files()
    table.mirror(OTHER[table.format])
    assert own_files() == before
    twin = mirror_of(table)
    assert twin.location == table.location
    ours = table.inspect("files")
    assert set(ours["file_path"].to_pylist()) >= set(twin.inspect("files")["file_path"].to_pylist())
    check_equal(table)


def test_one_commit_makes_one_commit(table):
    before = versions(mirror_of(table))
    table.append(people(50, 51))
    table.delete("id = 50")
    twin = mirror_of(table)
    assert versions(twin) == before + 2
    told = twin.snapshots()[-1].summary[SOURCE_SNAPSHOT]
    assert told == str(table.handle.current_snapshot_id)
    assert table.mirror(OTHER[table.format]).commits == 0


def test_a_compaction_changes_no_rows_of_the_mirror(table):
    for number in range(3):
        table.append(people(50 + number, 51 + number))
    table.rewrite_data_files(options={"rewrite-all": "true"})
    twin = mirror_of(table)
    assert twin.snapshots()[-1].operation == "replace"
    if twin.format == "delta":
        files = [one for line in log_of(twin, versions(twin) - 1) for one in line.items()]
        assert {body["dataChange"] for kind, body in files if kind in ("add", "remove")} == {False}
    check_equal(table)


def test_columns_are_added(table):
    alter(table, ("add_column", "note", "string"))
    assert mirror_of(table).arrow().schema.names == ["id", "city", "score", "note"]
    table.append(people(30, 32).append_column("note", pa.array(["a", None])))
    check_equal(table)


@pytest.mark.parametrize("table", ["iceberg-v3", "delta-mapped"], indirect=True)
def test_columns_are_renamed_dropped_and_their_names_taken(lake, table):
    alter(table, ("rename_column", "score", "points"))
    check_equal(table)
    alter(table, ("add_column", "score", "int"))
    table = lake.table("ns.t")
    new = people(30, 32).rename_columns(["id", "city", "points"])
    table.append(new.append_column("score", pa.array([7, None], pa.int32())))
    check_equal(table)
    alter(table, ("delete_column", "points"))
    assert mirror_of(table).arrow().schema.names == ["id", "city", "score"]
    check_equal(table)


class Crash(BaseException):
    """The process dies."""


def crash(_handle):
    raise Crash


def test_a_crash_between_the_two_leaves_the_mirror_behind(table):
    twin, before = mirror_of(table), rows(table)
    with pytest.raises(Crash), at_phase(Phase.SWAPPED, crash):
        table.append(people(60, 61))
    assert len(rows(table)) == 21
    assert rows(twin) == before
    count = versions(twin)
    table.delete("id = 1")
    assert len(check_equal(table)) == 20
    assert versions(mirror_of(table)) == count + 2


def test_a_failing_mirror_does_not_fail_the_commit(table, caplog, monkeypatch):
    def fails(*_):
        raise OSError("the disk is full")

    twin, before = mirror_of(table), rows(table)
    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "rowlake"):
        patched.setattr(sync._Run, "go", fails)
        table.append(people(60, 61))
    assert "stayed behind" in caplog.text
    assert "the disk is full" in caplog.text
    assert (len(rows(table)), rows(twin)) == (21, before)
    assert table.mirror(OTHER[table.format]).commits == 1
    check_equal(table)


def test_two_who_bring_it_forward_do_it_once(table):
    table.unset_properties([MIRROR])
    count = versions(mirror_of(table))
    table.append(people(60, 61))
    told = []

    def other(handle):
        if handle.format.name != table.format and not told:
            told.append(handle)
            table.mirror(OTHER[table.format])

    with at_phase(Phase.PRODUCED, other):
        assert table.mirror(OTHER[table.format]).commits in (0, 1)
    assert told
    # A change of properties is a version of a Delta log, but no snapshot.
    extra = 1 if table.format == "delta" else 0
    assert versions(mirror_of(table)) == count + 1 + extra
    check_equal(table)


def test_a_transaction_is_followed(lake):
    table = lake.create_table(
        "ns.x", people(0, 1).schema, properties={**V3, MIRROR: "delta"}, format="iceberg"
    )
    with lake.transaction() as tx:
        tx.table("ns.x").append(people(0, 5))
        tx.table("ns.x").delete("id = 2")
    assert len(check_equal(table)) == 4


def test_a_rollback_is_followed_and_so_is_what_comes_after(lake):
    table = lake.create_table("ns.x", people(0, 1).schema, properties={**V3, MIRROR: "delta"})
    table.append(people(0, 5))
    first = table.handle.current_snapshot_id
    table.delete("id = 2")
    table.append(people(5, 9))
    table.rollback_to(snapshot_id=first)
    assert len(check_equal(table)) == 5
    table.append(people(20, 21))
    assert len(check_equal(table)) == 6


def test_expired_history_is_no_obstacle(lake):
    table = lake.create_table("ns.x", people(0, 1).schema, properties=V3)
    table.append(people(0, 5))
    table.mirror("delta")
    for number in range(4):
        table.append(people(5 + number, 6 + number))
        table.delete(f"id = {number}")
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.expire_snapshots(older_than="2999-01-01", retain_last=1)
    assert table.mirror("delta").commits == 1
    assert len(check_equal(table)) == 5


def test_other_partitions_leave_the_mirror_unpartitioned(lake):
    table = lake.create_table(
        "ns.x", people(0, 1).schema, partition_by="bucket(4, id)", properties=V3
    )
    table.append(people(0, 20))
    (note,) = table.mirror("delta").notes
    assert note == "the mirror is not partitioned: bucket[4] of id has no counterpart"
    check_equal(table)


def test_a_mirror_stays_right_when_partitions_change(lake):
    table = lake.create_table(
        "ns.x", people(0, 1).schema, partition_by="city", properties={**V3, MIRROR: "delta"}
    )
    table.append(people(0, 20))
    table.delete("id = 3")
    table.unset_properties([MIRROR])
    table.delete("id = 4")
    lake.sql("ALTER TABLE ns.x ADD PARTITION FIELD bucket(2, id)")
    table.append(people(20, 30))
    table.mirror("delta")
    twin = mirror_of(table)
    assert twin.handle.view().spec.fields == ()
    assert len(check_equal(table)) == 28
    table.set_properties({MIRROR: "delta"})
    table.delete("id in (5, 6, 22)")
    assert len(check_equal(table)) == 25


def test_widened_types_are_said(lake):
    schema = pa.schema([("id", pa.int32()), ("x", pa.float32())])
    table = lake.create_table("ns.x", schema, properties={**V3, MIRROR: "delta"})
    table.append(pa.table({"id": pa.array([1], pa.int32()), "x": pa.array([0.5], pa.float32())}))
    lake.sql("ALTER TABLE ns.x ALTER COLUMN id TYPE bigint")
    table.append(pa.table({"id": [2**40], "x": pa.array([1.5], pa.float32())}))
    check_equal(table)
    twin = mirror_of(table)
    assert "typeWidening" in twin.handle.details["tableFeatures"]


def test_a_table_of_version_2_is_mirrored_as_long_as_it_has_no_deletes(lake):
    table = lake.create_table("ns.x", people(0, 1).schema, properties={"format-version": "2"})
    table.append(people(0, 10))
    table.delete("id = 2", mode="copy-on-write")
    table.mirror("delta")
    before = check_equal(table)
    table.delete("id = 3", mode="merge-on-read")
    with pytest.raises(UnsupportedFeatureError, match="position delete files"):
        table.mirror("delta")
    assert rows(mirror_of(table)) == before


def test_equality_deletes_are_refused(lake):
    table = lake.create_table("ns.x", people(0, 1).schema, properties=V3)
    table.append(people(0, 10))
    table.upsert(people(3, 4), keys=["id"], deletes="equality")
    with pytest.raises(UnsupportedFeatureError, match="equality deletes"):
        table.mirror("delta")


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.binary(7), pa.timestamp("ns")])
def test_types_without_a_counterpart_are_refused(lake, kind):
    table = lake.create_table("ns.x", pa.schema([("id", kind)]), properties=V3)
    with pytest.raises(UnsupportedFeatureError, match="Delta has no type"):
        table.mirror("delta")
    assert not Path(table.location, "_delta_log").exists()


def test_files_of_other_kinds_are_refused(lake):
    table = lake.create_table(
        "ns.x", people(0, 1).schema, properties={**V3, "write.format.default": "orc"}
    )
    table.append(people(0, 3))
    with pytest.raises(UnsupportedFeatureError, match="ORC files"):
        table.mirror("delta")


def test_arrays_of_mapped_delta_tables_are_refused(lake):
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))])
    table = lake.create_table("ns.x", schema, properties=MAPPED, format="delta")
    with pytest.raises(UnsupportedFeatureError, match="no ids to elements"):
        table.mirror("iceberg")


def test_nested_columns_are_mirrored(lake):
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
            ("m", pa.map_(pa.string(), pa.float64())),
        ]
    )
    some = [{"id": i, "s": {"a": i, "b": ["x", None]}, "m": [("k", 0.5)]} for i in range(5)]
    for kind, properties in (("iceberg", V3), ("delta", VECTORS)):
        wanted = {**properties, MIRROR: OTHER[kind]}
        table = lake.create_table(f"ns.{kind}", schema, properties=wanted, format=kind)
        table.append(pa.Table.from_pylist([*some, {"id": 9}], schema))
        table.delete("id = 2")
        assert len(check_equal(table)) == 5


def test_a_mirror_is_not_written(table):
    twin = mirror_of(table)
    with pytest.raises(UnsupportedFeatureError, match="mirror of a table of another format"):
        twin.append(people(0, 1))
    with pytest.raises(UnsupportedFeatureError, match="is a mirror of another table"):
        twin.mirror(table.format)


def test_what_is_no_mirror_is_left_alone(lake, tmp_path):
    table = lake.create_table("ns.x", people(0, 1).schema, properties=V3)
    log = Path(table.location) / "_delta_log"
    lake.create_table(("delta", str(tmp_path / "d")), people(0, 1).schema)
    Path(tmp_path / "d" / "_delta_log").rename(log)
    with pytest.raises(UnsupportedFeatureError, match="is no mirror of"):
        table.mirror("delta")


def test_a_format_is_not_its_own_mirror(table):
    with pytest.raises(InvalidStatementError, match="it is one already"):
        table.mirror(table.format)
    with pytest.raises(UnsupportedFeatureError, match="Unknown table format hudi"):
        table.mirror("hudi")


def test_files_that_a_log_states_again_are_not_added_twice(lake, tmp_path):
    written = WrittenTable(tmp_path / "d").create([("id", "long")])
    written.rows(pa.table({"id": [1, 2, 3]}))
    table = lake.table(written.name)
    table.mirror("iceberg")
    (line,) = [one for one in log_of(table, 1) if "add" in one]
    again = {"add": {**line["add"], "dataChange": False}}
    written.commit("COMPUTE STATS", again)
    assert table.mirror("iceberg").commits == 1
    assert len(check_equal(lake.table(written.name))) == 3


def test_paths_with_and_without_a_scheme_are_the_same_files(lake):
    location = f"file://{lake.catalog.properties['warehouse']}/elsewhere"
    table = lake.create_table(
        "ns.x", people(0, 1).schema, properties={**V3, MIRROR: "delta"}, location=location
    )
    table.append(people(0, 5))
    table.delete("id = 1")
    table.delete("id = 2")
    twin = mirror_of(table)
    assert [one.operation for one in twin.snapshots()] == ["append", "delete", "delete"]
    assert len(check_equal(table)) == 3


def test_files_of_a_mirror_are_no_orphans(lake, monkeypatch):
    table = lake.create_table("ns.x", people(0, 1).schema, properties=V3)
    table.append(people(0, 5))
    table.delete("id = 1")
    table.mirror("delta")
    stray = Path(table.location, "data", "stray.parquet")
    stray.write_bytes(b"x")
    for one in files_in(table.location):
        os.utime(one, (0, 0))
    found = table.remove_orphan_files(dry_run=True)
    assert found.orphan_file_location == (str(stray),)
    # A file that the table has forgotten, and its mirror has not.
    twin = mirror_of(table).handle
    monkeypatch.setattr(orphan_candidates, "files_of", lambda _: [*files_of(twin), str(stray)])
    found = table.remove_orphan_files(dry_run=True)
    assert found.orphan_file_location == ()
