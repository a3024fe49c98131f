"""`expire_snapshots` without Spark: what goes, what stays, and what a race leaves."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table.statistics import PartitionStatisticsFile, StatisticsFile
from pyiceberg.table.update import SetPartitionStatisticsUpdate, SetStatisticsUpdate
from pyiceberg.types import StringType

from rowlake.catalog.commit import commit_updates
from rowlake.commit.phases import Phase
from rowlake.errors import (
    CommitStateUnknownError,
    CorruptTableError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from rowlake.iceberg.cache import default_cache
from rowlake.maintain.cleanup import expire as module
from rowlake.model.outcome import Unknown
from rowlake.model.predicate import Leaf, Op
from rowlake.storage.files import Storage
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.parts.odd_properties import set_unchecked
from tests.parts.stopping import stopped_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY_MS = 86_400_000
NOTHING = (0, 0, 0, 0, 0, 0)
every_version = pytest.mark.parametrize("table", ["1", "2", "3"], indirect=True)


@pytest.fixture
def lake(tmp_path: Path, table_format: str) -> Iterator[Any]:
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("db")
        yield opened


def make(lake: Any, version: str = "2", **properties: str) -> Any:
    given = {"format-version": version, **{k.replace("_", "."): v for k, v in properties.items()}}
    return lake.create_table("db.t", SALES, properties=given)


@pytest.fixture
def table(lake: Any, request: pytest.FixtureRequest) -> Any:
    """Three snapshots: 4 rows, 8 rows, then all of them written anew with 2 more."""
    made = make(lake, getattr(request, "param", "2"))
    made.append(sales(4))
    made.append(sales(4, 4))
    made.overwrite(sales(10))
    return made


def ids(table: Any) -> list[int]:
    return [one.snapshot_id for one in table.snapshots()]


def now() -> int:
    return int(time.time() * 1000) + 1000


def counts(report: Any) -> tuple[int, ...]:
    return tuple(getattr(report, name) for name in module._COUNTS)


def reached(table: Any) -> set[str]:
    parts = table.handle.format.file_history(table.handle).reachable()
    return {location for part in parts for location in part["location"].to_pylist()}


def check(table: Any) -> None:
    """Check that all that is reached is there, and data that are not reached are not."""
    there, known = files_in(table.location), reached(table)
    hint = f"{table.location}/metadata/version-hint.text"
    assert known - there <= {hint}
    assert {name for name in there - known if not name.endswith(".metadata.json")} == set()


# ---------------------------------------------------------------------- what expires


def test_by_default_nothing_young_expires(table):
    before = table.handle.version
    report = table.expire_snapshots()
    assert counts(report) == NOTHING
    assert (report.expired_snapshot_ids, len(ids(table))) == ((), 3)
    assert table.handle.version == before


@every_version
def test_old_snapshots_go_with_the_files_that_only_they_had(table):
    rows, head, gone = rows_of(table.arrow()), ids(table)[-1], ids(table)[:-1]
    planned = table.expire_snapshots(now(), dry_run=True)
    before = files_in(table.location)
    assert len(ids(table)) == 3
    report = table.expire_snapshots(now())
    assert report.expired_snapshot_ids == tuple(gone) == planned.expired_snapshot_ids
    assert (ids(table), report.snapshot_id) == ([head], head)
    assert counts(report) == counts(planned)
    assert counts(report)[:3] == (2, 0, 0)
    assert report.deleted_manifest_lists_count == (2 if table.handle.can.manifests else 0)
    assert sorted(report.deleted_files) == sorted(planned.deleted_files)
    assert before - files_in(table.location) == set(report.deleted_files)
    assert (report.failed_files, report.dry_run, planned.dry_run) == ((), False, True)
    assert rows_of(table.arrow()) == rows
    check(table)
    assert counts(table.expire_snapshots(now())) == NOTHING


def test_the_last_ones_are_kept(table):
    assert table.expire_snapshots(now(), retain_last=3).expired_snapshot_ids == ()
    first, second, third = ids(table)
    report = table.expire_snapshots(now(), retain_last=2)
    assert (report.expired_snapshot_ids, ids(table)) == ((first,), [second, third])
    assert report.deleted_data_files_count == 0
    check(table)


def test_properties_say_how_long_and_how_many(lake):
    table = make(lake)
    table.set_properties(
        {
            "history.expire.max-snapshot-age-ms": "0",
            "history.expire.min-snapshots-to-keep": "2",
        }
    )
    for number in range(4):
        table.append(sales(1, number))
    time.sleep(0.01)
    kept = ids(table)[2:]
    assert len(table.expire_snapshots(dry_run=True, retain_last=1).expired_snapshot_ids) == 3
    table.expire_snapshots()
    assert ids(table) == kept
    set_unchecked(table, {"history.expire.min-snapshots-to-keep": "many"})
    with pytest.raises(InvalidStatementError, match="min-snapshots-to-keep=many"):
        table.expire_snapshots()


@every_version
def test_snapshots_by_id(table):
    first, second, third = ids(table)
    report = table.expire_snapshots(snapshot_ids=[second])
    assert (report.expired_snapshot_ids, ids(table)) == ((second,), [first, third])
    # The time between the first and the third is no longer told: it was the second's.
    assert table.history()["snapshot_id"].to_pylist() == [third]
    assert table.handle.snapshot(third).parent_id == second
    assert table.arrow(snapshot_id=first).num_rows == 4
    check(table)


def test_what_is_asked_for_wrongly_is_refused(table):
    first, second, third = ids(table)
    table.create_tag("keep", first)
    for given, text in (
        ({"snapshot_ids": [third]}, f"Cannot expire snapshot {third} .* main points to it"),
        ({"snapshot_ids": [second, first]}, f"Cannot expire snapshot {first} .* keep points"),
        ({"snapshot_ids": [17]}, "Cannot expire 17: .* has no such snapshot"),
        ({"retain_last": 0}, "retain_last .* at least 1"),
        ({"max_concurrent_deletes": 0}, "max_concurrent_deletes .* at least 1"),
        ({"older_than": "yesterday"}, "is not a time"),
    ):
        with pytest.raises(InvalidStatementError, match=text):
            table.expire_snapshots(**given)
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidStatementError, match=r"gc\.enabled is false"):
        table.expire_snapshots(now())
    assert ids(table) == [first, second, third]


@pytest.mark.iceberg
def test_a_transaction_is_no_place_for_it(lake):
    make(lake).append(sales(1))
    with lake.transaction() as tx, pytest.raises(UnsupportedFeatureError, match="transaction"):
        tx.table("db.t").expire_snapshots(now())


def test_an_empty_table_has_nothing_to_expire(lake):
    table = make(lake)
    assert counts(table.expire_snapshots(now(), clean_expired_metadata=True)) == NOTHING


# ---------------------------------------------------------------------- refs


@every_version
def test_branches_and_tags_keep_what_they_need(table):
    first, second, third = ids(table)
    table.create_tag("v1", first)
    table.create_branch("audit", second, min_snapshots_to_keep=2)
    extra = table.append(sales(3, 100), branch="audit").snapshot_id
    table.append(sales(1, 200))
    head = ids(table)[-1]
    report = table.expire_snapshots(now())
    assert report.expired_snapshot_ids == (third,)
    assert set(ids(table)) == {first, second, extra, head}
    assert table.arrow(ref="v1").num_rows == 4
    assert table.arrow(ref="audit").num_rows == 11
    assert table.arrow().num_rows == 11
    check(table)


def test_old_refs_go_and_main_stays(table):
    first, second, _ = ids(table)
    table.create_tag("old", first, max_ref_age_ms=1)
    table.create_branch("gone", second, max_ref_age_ms=1)
    table.create_tag("kept", second)
    time.sleep(0.01)
    report = table.expire_snapshots(now())
    assert set(report.removed_refs) == {"old", "gone"}
    assert set(table.handle.refs) == {"main", "kept"}
    assert report.expired_snapshot_ids == (first,)
    table.set_properties({"history.expire.max-ref-age-ms": "1"})
    assert table.expire_snapshots(now()).removed_refs == ("kept",)
    assert set(table.handle.refs) == {"main"}
    check(table)


def test_a_branch_has_its_own_age(table):
    first, second, third = ids(table)
    table.create_branch("long", second, max_snapshot_age_ms=DAY_MS)
    assert table.expire_snapshots(now()).expired_snapshot_ids == ()
    table.create_branch("long", second, replace=True, max_snapshot_age_ms=1)
    time.sleep(0.01)
    assert table.expire_snapshots(0).expired_snapshot_ids == ()
    assert table.expire_snapshots(now()).expired_snapshot_ids == (first,)
    assert set(ids(table)) == {second, third}


@every_version
def test_what_no_ref_knows_goes_by_age(table):
    first, second, third = ids(table)
    table.rollback_to(snapshot_id=second)
    staged = table.append(sales(2, 300), stage_only=True).snapshot_id
    assert table.expire_snapshots(0).expired_snapshot_ids == ()
    report = table.expire_snapshots(now())
    assert (report.expired_snapshot_ids, ids(table)) == ((first, third, staged), [second])
    assert report.deleted_data_files_count == 2  # of the overwrite, and what was staged
    assert table.arrow().num_rows == 8
    check(table)


def test_a_picked_snapshot_shares_its_files(lake):
    table = make(lake)
    table.append(sales(4))
    staged = table.append(sales(2, 10), stage_only=True).snapshot_id
    table.append(sales(1, 20))
    table.cherry_pick(staged)
    report = table.expire_snapshots(now())
    assert staged in report.expired_snapshot_ids
    assert report.deleted_data_files_count == 0
    assert table.arrow().num_rows == 7
    check(table)


# ---------------------------------------------------------------------- deletes, statistics


def test_one_live_vector_keeps_the_puffin_file(lake):
    table = lake.create_table(
        "db.t",
        SALES,
        partition_by=["store"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    table.append(sales(16))
    table.delete(Leaf(("id",), Op.LT, (8,)), mode="merge-on-read")
    puffins = {name for name in files_in(table.location) if name.endswith(".puffin")}
    table.delete(Leaf(("store",), Op.LT, (3,)))
    report = table.expire_snapshots(now())
    assert report.deleted_position_delete_files_count == 0
    assert puffins <= files_in(table.location)
    table.delete(Leaf(("id",), Op.GE, (0,)))
    report = table.expire_snapshots(now())
    assert report.deleted_position_delete_files_count == len(puffins) == 1
    assert not puffins & files_in(table.location)
    check(table)


def test_position_and_equality_deletes_are_counted(lake):
    table = make(lake)
    table.append(sales(8))
    table.create_branch("tried")
    table.delete(Leaf(("id",), Op.EQ, (3,)), mode="merge-on-read", branch="tried")
    table.upsert(sales(2), ["id"], deletes="equality", branch="tried")
    table.drop_ref("tried")
    report = table.expire_snapshots(now())
    metadata_files = (3, 2, 0) if table.handle.can.manifests else (0, 0, 0)
    assert counts(report) == (1, 1, 1, *metadata_files)
    check(table)


@pytest.mark.iceberg
@every_version
def test_statistics_go_with_their_snapshots(table):
    first, _, third = ids(table)
    for number, snapshot_id in enumerate((first, third)):
        add_statistics(table, snapshot_id, f"{number}")
    report = table.expire_snapshots(now())
    assert report.deleted_statistics_files_count == 2
    metadata = table.handle.metadata
    assert [one.snapshot_id for one in metadata.statistics] == [third]
    assert [one.snapshot_id for one in metadata.partition_statistics] == [third]
    check(table)


def add_statistics(table: Any, snapshot_id: int, name: str) -> None:
    paths = [f"{table.location}/metadata/{name}.{kind}" for kind in ("stats", "parquet")]
    for path in paths:
        Storage({}).write(path, b"x")
    made = StatisticsFile(
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
        SetStatisticsUpdate(statistics=made),
        SetPartitionStatisticsUpdate(partition_statistics=parts),
    ]
    commit_updates(table.handle, updates, ())


# ---------------------------------------------------------------------- schemas and specs


def test_schemas_and_specs_that_nothing_uses_go_when_asked(lake):
    table = make(lake)
    table.append(sales(4))
    with changing(table, "spec") as update:
        update.add_identity("store")
    with changing(table, "schema") as update:
        update.add_column("more", StringType())
    table.overwrite(sales(4))
    with changing(table, "schema") as update:
        update.delete_column("note")
    table.append(sales(2, 10).drop_columns(["note"]))
    before = table.handle.view()
    assert (len(before.schemas), len(before.specs)) == (3, 2)
    plain = table.expire_snapshots(now(), retain_last=2)
    assert (plain.removed_schema_ids, plain.removed_spec_ids) == ((), ())
    planned = table.expire_snapshots(now(), clean_expired_metadata=True, dry_run=True)
    report = table.expire_snapshots(now(), clean_expired_metadata=True)
    assert report.removed_schema_ids == planned.removed_schema_ids == (0, 1)
    assert report.removed_spec_ids == planned.removed_spec_ids == (0,)
    after = table.handle.view()
    assert list(after.schemas) == [table.handle.schema_id] == [before.schema.schema_id]
    assert list(after.specs) == [before.default_spec_id]
    assert table.arrow().num_rows == 6
    check(table)


def test_a_schema_stays_while_an_equality_delete_needs_its_column(lake):
    table = make(lake)
    table.append(sales(6))
    table.upsert(sales(3, 1), ["id", "note"], deletes="equality")
    with changing(table, "schema") as update:
        update.delete_column("note")
    table.append(sales(1, 50).drop_columns(["note"]))
    rows = rows_of(table.arrow())
    report = table.expire_snapshots(now(), clean_expired_metadata=True)
    assert report.removed_schema_ids == ()
    assert rows_of(table.arrow()) == rows


# ---------------------------------------------------------------------- races and failures


def test_a_tag_made_meanwhile_keeps_its_snapshot(table, lake):
    first = ids(table)[0]
    with stopped_at(Phase.PRODUCED, lambda: lake.table("db.t").create_tag("new", first)):
        report = table.expire_snapshots(now())
    assert first not in report.expired_snapshot_ids
    assert len(report.expired_snapshot_ids) == 1
    assert table.arrow(ref="new").num_rows == 4
    check(table)


def test_a_branch_moved_meanwhile_keeps_its_snapshot(table, lake):
    second = ids(table)[1]
    with stopped_at(Phase.PRODUCED, lambda: lake.table("db.t").set_current_snapshot(second)):
        table.expire_snapshots(now())
    assert table.arrow().num_rows == 8
    check(table)


def test_an_append_meanwhile_is_not_lost(table, lake):
    with stopped_at(Phase.PRODUCED, lambda: lake.table("db.t").append(sales(5, 500))):
        table.expire_snapshots(now())
    assert table.arrow().num_rows == 15
    assert len(ids(table)) == 1
    check(table)


def test_a_snapshot_expired_meanwhile_by_another_is_no_error(table, lake):
    second = ids(table)[1]
    other = lake.table("db.t")
    with stopped_at(Phase.PRODUCED, lambda: other.expire_snapshots(snapshot_ids=[second])):
        report = table.expire_snapshots(snapshot_ids=[second])
    assert report.expired_snapshot_ids == ()
    assert counts(report) == NOTHING


def test_an_unknown_outcome_removes_nothing(table, monkeypatch):
    before = files_in(table.location)
    monkeypatch.setattr(type(table.handle.format), "swap", lambda *_, **__: Unknown("no answer"))
    with pytest.raises(CommitStateUnknownError, match="No file was removed"):
        table.expire_snapshots(now())
    assert files_in(table.location) == before


def test_what_cannot_be_deleted_is_told(table, monkeypatch):
    delete = Storage.delete
    stuck: list[str] = []

    def failing(self: Storage, locations: Any, **options: Any) -> list[str]:
        some = sorted(locations)
        if not stuck and some[0].endswith(".parquet"):
            stuck.append(some.pop(0))
            return [stuck[0], *delete(self, some, **options)]
        return delete(self, some, **options)

    monkeypatch.setattr(Storage, "delete", failing)
    report = table.expire_snapshots(now())
    assert report.failed_files == tuple(stuck)
    assert report.deleted_data_files_count == 1
    assert stuck[0] not in report.deleted_files
    assert stuck[0] in files_in(table.location)
    assert "failed files" in str(report)


@pytest.mark.iceberg
@every_version
def test_damage_in_what_expires_is_passed_over(table):
    first, second, _ = table.snapshots()
    lost = table.inspect("manifests", snapshot_id=second.snapshot_id)["path"].to_pylist()[-1]
    Storage({}).delete([first.manifest_list, lost])
    default_cache().clear()
    assert set(table.expire_snapshots(now(), dry_run=True).unread_files) == {
        first.manifest_list,
        lost,
    }
    report = table.expire_snapshots(now())
    assert set(report.unread_files) == {first.manifest_list, lost}
    assert (len(ids(table)), report.deleted_manifest_lists_count) == (1, 2)
    assert report.deleted_data_files_count == 1
    assert table.arrow().num_rows == 10


@pytest.mark.iceberg
def test_damage_in_what_stays_keeps_all_files(table):
    head = table.snapshots()[-1]
    before = files_in(table.location)
    Storage({}).delete([head.manifest_list])
    with pytest.raises(CorruptTableError):
        table.expire_snapshots(now())
    assert files_in(table.location) - {head.manifest_list} >= before - {head.manifest_list}


def test_results_that_stream_are_counted_only(table):
    report = table.expire_snapshots(now(), stream_results=True, max_concurrent_deletes=3)
    assert report.deleted_data_files_count == 2
    assert report.deleted_files == ()
    check(table)


def test_progress_is_told(table):
    seen: list[Any] = []
    table._engine.progress = seen.append
    report = table.expire_snapshots(now())
    assert (seen[-1].done, seen[-1].total) == (len(report.deleted_files),) * 2
    assert seen[-1].label == "deleting files of db.t"
