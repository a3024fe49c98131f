"""expire_snapshots beside Iceberg Java's: two tables of the same history, one for each library.

Before Java runs, our dry run says what it will do: the files that go, their counts, and every part
of the metadata that stays. Then ours runs on the other table and must answer the same.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

import pytest
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import SetPartitionStatisticsUpdate, SetStatisticsUpdate
from pyiceberg.types import StringType

import rowlake
from rowlake.catalog.commit import commit_updates
from rowlake.commit.phases import Phase
from rowlake.errors import CommitStateUnknownError, InvalidStatementError
from rowlake.model.expiry import Asked
from rowlake.model.metadata_change import ExpireSnapshots
from rowlake.model.predicate import Leaf, Op
from tests.lakes import SALES, files_in, rows_of, sales
from tests.parts.rest import rest_catalog
from tests.parts.stopping import stopped_at

LATER = dt.datetime.now() + dt.timedelta(hours=1)
OLDER_THAN = f"older_than => TIMESTAMP '{LATER:%Y-%m-%d %H:%M:%S}'"


def build(lake: Any, name: str, version: int) -> Any:
    """Make a table with branches, tags, specs, schemas, deletes, statistics and lost snapshots."""
    table = lake.create_table(
        name,
        SALES,
        partition_by=["store"],
        properties={"format-version": str(version), "commit.manifest.min-count-to-merge": "3"},
    )
    table.append(sales(8))
    table.create_tag("first")
    table.append(sales(8, 8))
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    table.delete(Leaf(("id",), Op.LT, (6,)), mode=mode)
    table.create_branch("audit", min_snapshots_to_keep=2)
    table.create_tag("short", max_ref_age_ms=1)
    if version == 2:
        table.upsert(sales(2, 10), ["id"], deletes="equality", branch="audit")
    with table.evolve().update_spec() as update:
        update.remove_field("store")
    with table.evolve().update_schema() as update:
        update.add_column("more", StringType())
    table.append(sales(4, 20), branch="audit")
    table.append(sales(4, 30), branch="audit")
    table.append(sales(4, 40), stage_only=True)
    lost = table.append(sales(4, 50)).snapshot_id
    table.rollback_to(snapshot_id=snapshot(table, lost).parent_id)
    table.overwrite(sales(6, 60))
    table.append(sales(2, 70))
    for at in (0, -1):
        add_statistics(table, table.snapshots()[at].snapshot_id)
    time.sleep(0.01)
    return table


def snapshot(table: Any, snapshot_id: int) -> Any:
    return next(one for one in table.snapshots() if one.snapshot_id == snapshot_id)


def add_statistics(table: Any, snapshot_id: int) -> None:
    paths = [f"{table.location}/metadata/{snapshot_id}.{kind}" for kind in ("stats", "parquet")]
    for path in paths:
        table.handle.storage.write(path, b"x")
    of_table = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=paths[0],
        file_size_in_bytes=1,
        file_footer_size_in_bytes=1,
        blob_metadata=[],
    )
    parts = PartitionStatisticsFile(
        snapshot_id=snapshot_id, statistics_path=paths[1], file_size_in_bytes=1
    )
    updates = [
        SetStatisticsUpdate(statistics=of_table),
        SetPartitionStatisticsUpdate(partition_statistics=parts),
    ]
    commit_updates(table.handle, updates, ())


def kept_parts(metadata: Any) -> dict[str, Any]:
    """Return what expiry may change in metadata, in one order."""
    return {
        "snapshots": sorted(
            (one.snapshot_id, one.parent_snapshot_id) for one in metadata.snapshots
        ),
        "log": [(one.snapshot_id, one.timestamp_ms) for one in metadata.snapshot_log],
        "refs": {name: ref.model_dump() for name, ref in metadata.refs.items()},
        "schemas": sorted(one.schema_id for one in metadata.schemas),
        "specs": sorted(one.spec_id for one in metadata.partition_specs),
        "statistics": sorted(one.snapshot_id for one in metadata.statistics),
        "of partitions": sorted(one.snapshot_id for one in metadata.partition_statistics),
        "row ids": getattr(metadata, "next_row_id", None),
        "last": getattr(metadata, "last_sequence_number", None),
    }


def data_and_metadata(table: Any) -> set[str]:
    """Return the files of a table but its metadata files, hints and Hadoop's checksums."""
    return {
        name
        for name in files_in(table.location)
        if not name.endswith((".metadata.json", ".crc", "version-hint.text"))
    }


@pytest.mark.parametrize(
    ("version", "text", "asked"),
    [
        (1, f"{OLDER_THAN}, stream_results => true", {}),
        (2, f"{OLDER_THAN}, clean_expired_metadata => true", {"clean_metadata": True}),
        (3, f"{OLDER_THAN}, retain_last => 2, max_concurrent_deletes => 2", {"retain_last": 2}),
        (3, "snapshot_ids => array({})", {}),
    ],
    ids=["v1 stream", "v2 clean", "v3 retain", "v3 ids"],
)
def test_the_same_goes_and_the_same_stays(lake, java, name, version, text, asked):
    theirs = build(lake, f"{name}_java", version)
    ours = build(lake, f"{name}_ours", version)
    answers = []
    for table, run in ((theirs, java), (ours, lake.sql)):
        picked = table.snapshots()[1].snapshot_id
        prefix = "java." if table is theirs else ""
        given = dict(asked) | ({"snapshot_ids": frozenset({picked})} if "{}" in text else {})
        wanted = Asked(
            int(time.time() * 1000),
            None if "{}" in text else int(LATER.timestamp() * 1000),
            **given,
        )
        handle = table.handle
        change = ExpireSnapshots(handle.format.expiry(handle, wanted))
        planned = handle.format.altered(handle, handle.format.alter(handle, change)).metadata
        dry = table.expire_snapshots(
            None if wanted.older_than_ms is None else wanted.older_than_ms,
            wanted.retain_last,
            snapshot_ids=sorted(wanted.snapshot_ids),
            clean_expired_metadata=wanted.clean_metadata,
            dry_run=True,
        )
        before = data_and_metadata(table)
        called = f"CALL {prefix}system.expire_snapshots(table => '{table.name}', {text})"
        answer = run(called.format(picked))
        answers.append((answer.columns, [tuple(row) for row in answer.collect()]))
        assert before - data_and_metadata(table) == {
            location.removeprefix("file:") for location in dry.deleted_files
        }
        assert answers[-1][1] == [tuple(list(dry.to_dict().values())[:6])]
        assert kept_parts(table.handle.metadata) == kept_parts(planned)
    assert answers[0] == answers[1]
    assert sum(answers[0][1][0]) > 0
    for ref in theirs.handle.metadata.refs:
        assert rows_of(theirs.arrow(ref=ref)) == rows_of(ours.arrow(ref=ref))
    assert java(f"SELECT * FROM java.{ours.name}").count() == theirs.arrow().num_rows
    assert set(theirs.handle.metadata.refs) == set(ours.handle.metadata.refs)


def test_both_refuse_the_same(lake, java, name):
    table = build(lake, name, 2)
    head = table.handle.metadata.current_snapshot_id
    tagged = table.handle.metadata.refs["first"].snapshot_id
    for text in (f"snapshot_ids => array({head})", f"snapshot_ids => array({tagged})"):
        call = f"system.expire_snapshots(table => '{name}', {text})"
        with pytest.raises(Exception, match=r"Cannot expire .* Still referenced by refs"):
            java(f"CALL java.{call}").collect()
        with pytest.raises(InvalidStatementError, match=r"Cannot expire snapshot .* points? to it"):
            lake.sql(f"CALL {call}")
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(Exception, match="GC is disabled"):
        java(f"CALL java.system.expire_snapshots('{name}')").collect()
    with pytest.raises(InvalidStatementError, match=r"gc\.enabled is false"):
        lake.sql(f"CALL system.expire_snapshots('{name}')")


def test_a_rest_server_expires_what_we_tell_it(tmp_path):
    with (
        rest_catalog(tmp_path) as uri,
        rowlake.connect(catalog={"type": "rest", "uri": uri}) as lake,
    ):
        lake.create_namespace("db")
        table = build(lake, "db.t", 2)
        planned = table.expire_snapshots(LATER, clean_expired_metadata=True, dry_run=True)
        handle = table.handle
        report = table.expire_snapshots(LATER, clean_expired_metadata=True)
        assert report.to_dict() | {"seconds": 0, "dry_run": 0} == planned.to_dict() | {
            "seconds": 0,
            "dry_run": 0,
        }
        kept = {one.snapshot_id for one in table.snapshots()}
        assert kept == {one.snapshot_id for one in handle.metadata.snapshots} - set(
            report.expired_snapshot_ids
        )
        assert {one.snapshot_id for one in table.handle.metadata.partition_statistics} <= kept
        check_all_is_there(table)
        table.append(sales(3, 80))
        old = table.handle.metadata.refs["main"].snapshot_id
        table.append(sales(3, 90))
        before = data_and_metadata(table)
        other = lake.table("db.t")
        with (
            stopped_at(Phase.PRODUCED, lambda: other.create_tag("late", old)),
            pytest.raises(CommitStateUnknownError, match="late came to point to snapshots"),
        ):
            table.expire_snapshots(LATER)
        assert data_and_metadata(table) == before


def check_all_is_there(table: Any) -> None:
    history = table.handle.format.file_history(table.handle)
    reached = {at for part in history.reachable() for at in part["location"].to_pylist()}
    there = files_in(table.location)
    assert {name for name in reached - there if not name.endswith("version-hint.text")} == set()
    for ref in table.handle.metadata.refs:
        table.arrow(ref=ref)
