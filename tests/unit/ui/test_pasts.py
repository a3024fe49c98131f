"""Histories: what made snapshots, lost attempts, schemas and what changed in them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyiceberg.types import LongType, StringType

from rowlake.model.view import SnapshotInfo
from rowlake.ui.looks import Looks
from rowlake.ui.pasts import (
    BUCKETS,
    activity_of,
    conflicts_of,
    lost_attempts,
    pasts_of,
    schemas_of,
)
from tests.lakes import SALES, sales


def snapshot(**changes: object) -> SnapshotInfo:
    made = SnapshotInfo(5, None, 1, 1_000, "/t/metadata/snap-5-2-ab.avro", "append", {})
    return replace(made, **changes)


def test_snapshots_come_newest_first_with_what_made_them(lake) -> None:
    lake.table("ns.t").delete("id < 5")
    look = Looks(lake).look("ns.t")
    newest, *_, oldest = pasts_of(look)
    assert (newest.statement, newest.condition, newest.deleted) == ("DELETE", "id < 5", 5)
    assert (newest.total, newest.refs, newest.lost) == (45, ("main",), 0)
    assert (oldest.statement, oldest.inserted, oldest.parent_id) == ("APPEND", 40, None)
    assert [each.snapshot_id for each in pasts_of(look, 1, 1)] == [newest.parent_id]


@pytest.mark.parametrize(
    ("location", "summary", "expected"),
    [
        ("/t/metadata/snap-5-2-ab.avro", {"rowlake.operation": "MERGE"}, 2),
        ("/t/metadata/snap-5-2-ab.avro", {}, 1),  # Iceberg Java counts attempts from 1
        ("/t/metadata/snap-5-1-ab.avro", {}, 0),
        ("/t/metadata/snap-5-0-ab.avro", {}, 0),
        ("/t/metadata/other.avro", {}, 0),
        (None, {}, 0),
    ],
)
def test_lost_attempts_are_told_by_the_manifest_list(location, summary, expected) -> None:
    assert lost_attempts(snapshot(manifest_list=location, summary=summary)) == expected


def test_conflicts_are_those_of_the_last_day(lake, monkeypatch) -> None:
    monkeypatch.setattr("rowlake.ui.pasts.lost_attempts", lambda each: each.parent_id is not None)
    look = Looks(lake).look("ns.t")
    last = look.handle.snapshots[-1]
    assert [each.snapshot_id for each in conflicts_of(look)] == [last.snapshot_id]
    assert conflicts_of(look, last.timestamp_ms + 25 * 3600 * 1000) == []


def test_activity_counts_every_commit_once() -> None:
    found = activity_of(
        [
            snapshot(timestamp_ms=0),
            snapshot(timestamp_ms=500, operation="delete"),
            snapshot(timestamp_ms=1_000, operation="odd"),
        ]
    )
    assert len(found.columns) == BUCKETS
    assert found.columns[0] == (1, 0, 0, 0)
    assert found.columns[-1] == (0, 0, 0, 1)
    assert sum(map(sum, found.columns)) == 3
    assert activity_of([]) is None
    assert sum(map(sum, activity_of([snapshot()]).columns)) == 1


def test_the_schema_history_tells_what_each_schema_changed(lake) -> None:
    table = lake.table("ns.t")
    with table.to_pyiceberg().update_schema() as schema:
        schema.add_column("tier", StringType())
        schema.rename_column("note", "remark")
    with table.to_pyiceberg().update_schema() as schema:
        schema.delete_column("tier")
        schema.update_column("store", LongType())
    with table.to_pyiceberg().update_schema() as schema:
        schema.set_identifier_fields("id")
    found = schemas_of(Looks(lake).look("ns.t"))
    assert [each.changes for each in found] == [
        ("rows are identified by id",),
        ("dropped tier", "changed store from int to long"),
        ("added tier string", "renamed note to remark"),
        (),
    ]
    assert [each.is_current for each in found] == [True, False, False, False]
    assert found[-1].since_ms == lake.table("ns.t").snapshots()[0].timestamp_ms
    assert found[0].since_ms is None


def test_schemas_of_delta_tables_are_those_of_versions_without_files(lake) -> None:
    table = lake.create_table("ns.d", SALES, format="delta")
    table.append(sales(3))
    table.set_properties({"delta.appendOnly": "false"})
    (found,) = schemas_of(Looks(lake).look("ns.d"))
    assert (found.label, found.changes, found.is_current) == ("version 0", (), True)
