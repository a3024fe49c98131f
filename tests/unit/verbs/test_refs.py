"""History without Spark: branches, tags, rollback, cherry-pick, publish, time travel."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.model.predicate import Leaf, Op
from rowlake.verbs import cherry_pick
from tests.lakes import SALES, make_lake, rows_of, sales


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def table(lake, request):
    """A table of three snapshots, of 4, 8 and 12 rows."""
    made = lake.create_table(
        "shop.sales",
        SALES,
        partition_by=["store"],
        properties={"format-version": request.param},
    )
    for number in range(3):
        made.append(sales(4, number * 4))
    return made


def ids(table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def head(table, ref="main") -> int | None:
    found = table.handle.metadata.refs.get(ref)
    return found.snapshot_id if found else None


def refused(table, call, match):
    before = table.handle.metadata_location
    with pytest.raises(InvalidStatementError, match=match):
        call()
    assert table.handle.metadata_location == before


# ---------------------------------------------------------------------- branches and tags


def test_branches_are_created_written_and_dropped(table):
    table.create_branch("audit", ids(table)[1])
    table.append(sales(2, 100), branch="audit")
    assert table.arrow(ref="audit").num_rows == 10
    assert table.arrow().num_rows == 12
    refs = {row["name"]: row for row in table.refs().to_pylist()}
    assert (refs["audit"]["type"], refs["main"]["type"]) == ("BRANCH", "BRANCH")
    table.drop_ref("audit")
    refused(table, lambda: table.arrow(ref="audit"), "no branch or tag audit")
    refused(table, lambda: table.append(sales(1), branch="audit"), "no branch audit")
    refused(table, lambda: table.drop_ref("audit"), "no branch or tag audit")
    table.drop_ref("audit", if_exists=True)
    refused(table, lambda: table.drop_ref("main"), "cannot be dropped")


def test_tags_stay_where_they_are_and_cannot_be_written(table):
    table.create_tag("v1", ids(table)[0], max_ref_age_ms=86_400_000)
    refused(table, lambda: table.append(sales(1), branch="v1"), "tag")
    refused(table, lambda: table.overwrite(sales(1), branch="v1"), "tag")
    refused(table, lambda: table.set_current_snapshot(ids(table)[1], branch="v1"), "tags do not")
    refused(table, lambda: table.fast_forward("v1", "main"), "tags do not")
    table.append(sales(1, 50))
    assert table.arrow(ref="v1").num_rows == 4
    assert table.handle.metadata.refs["v1"].max_ref_age_ms == 86_400_000


def test_refs_that_are_there_are_replaced_only_when_told(table):
    first, second, _ = ids(table)
    table.create_branch("b", first)
    table.create_tag("t", first)
    refused(table, lambda: table.create_branch("b"), "already")
    refused(table, lambda: table.create_tag("b", replace=True), "is a branch")
    table.create_branch("b", if_not_exists=True)
    assert head(table, "b") == first
    table.create_branch("b", second, replace=True)
    table.create_tag("t", second, replace=True)
    assert (head(table, "b"), head(table, "t")) == (second, second)
    refused(table, lambda: table.create_branch("c", 17), "no snapshot 17")


def test_retention_is_kept_when_a_branch_is_written_moved_or_replaced(table):
    kept = {"max_ref_age_ms": 9_000, "max_snapshot_age_ms": 8_000, "min_snapshots_to_keep": 7}
    table.create_branch("b", ids(table)[0], **kept)
    table.append(sales(1, 50), branch="b")
    table.set_current_snapshot(ids(table)[0], branch="b")
    table.fast_forward("b", "main")
    table.create_branch("b", ids(table)[1], replace=True, max_snapshot_age_ms=5)
    found = table.handle.metadata.refs["b"]
    assert (found.max_ref_age_ms, found.max_snapshot_age_ms, found.min_snapshots_to_keep) == (
        9_000,
        5,
        7,
    )
    refused(table, lambda: table.create_tag("t", min_snapshots_to_keep=1), "max_ref_age_ms")
    refused(table, lambda: table.create_branch("c", max_ref_age_ms=0), "more than 0")


def test_a_table_without_snapshots_has_nothing_to_point_to(lake):
    empty = lake.create_table("shop.empty", SALES)
    refused(empty, lambda: empty.create_tag("b"), "no snapshot yet")
    refused(empty, lambda: empty.rollback_to(snapshot_id=1), "no snapshot 1")
    refused(empty, lambda: empty.arrow(as_of=datetime.datetime.now()), "no snapshot as old")


def test_fast_forward_moves_to_a_descendant_only(table):
    first, second, third = ids(table)
    table.create_branch("b", first)
    table.fast_forward("b", "main")
    assert head(table, "b") == third
    table.append(sales(1, 60), branch="b")
    table.fast_forward("main", "b")
    assert head(table) == head(table, "b")
    table.append(sales(1, 70))
    table.append(sales(1, 80), branch="b")
    refused(table, lambda: table.fast_forward("main", "b"), "commits that")
    refused(table, lambda: table.fast_forward("main", "nope"), "no branch or tag nope")
    table.fast_forward("fresh", "b")
    assert head(table, "fresh") == head(table, "b")
    assert second in ids(table)


# ---------------------------------------------------------------------- rollback


def test_rollback_by_id_and_by_time(table):
    first, second, third = table.snapshots()
    table.rollback_to(snapshot_id=second.snapshot_id)
    assert (head(table), table.arrow().num_rows) == (second.snapshot_id, 8)
    refused(table, lambda: table.rollback_to(snapshot_id=third.snapshot_id), "no ancestor")
    refused(table, lambda: table.rollback_to(snapshot_id=5), "no snapshot 5")
    refused(table, lambda: table.rollback_to(as_of=first.timestamp_ms), "older than")
    refused(table, lambda: table.rollback_to(snapshot_id=first.snapshot_id, branch="x"), "branch")
    table.set_current_snapshot(third.snapshot_id)
    table.rollback_to(as_of=third.timestamp_ms)
    assert head(table) == second.snapshot_id
    table.append(sales(1, 90))
    assert len(table.snapshots()) == 4
    assert (table.snapshots()[-1].snapshot_id, table.snapshots()[-1].parent_id) == (
        head(table),
        second.snapshot_id,
    )


def test_set_current_snapshot_jumps_anywhere(table):
    first, _, third = ids(table)
    table.set_current_snapshot(first)
    table.set_current_snapshot(third)
    assert table.arrow().num_rows == 12
    refused(table, lambda: table.set_current_snapshot(99), "no snapshot 99")


# ---------------------------------------------------------------------- cherry-pick


def test_cherry_picking_an_append_onto_a_moved_head_appends_its_files_again(table):
    table.create_branch("b")
    picked = table.append(sales(3, 200), branch="b").snapshot_id
    table.append(sales(1, 300))
    result = table.cherry_pick(picked)
    assert (result.rows_inserted, result.snapshot_id) == (3, head(table))
    last = table.snapshots()[-1]
    assert last.summary["source-snapshot-id"] == str(picked)
    expected = pa.concat_tables([sales(12), sales(1, 300), sales(3, 200)])
    assert rows_of(table.arrow()) == rows_of(expected)
    refused(table, lambda: table.cherry_pick(picked), "published already")
    refused(table, lambda: table.cherry_pick(ids(table)[0]), "in the history")
    refused(table, lambda: table.cherry_pick(4711), "no snapshot 4711")


def test_cherry_picking_a_child_of_the_head_only_moves_the_branch(table):
    staged = table.append(sales(2, 200), stage_only=True).snapshot_id
    assert table.cherry_pick(staged).snapshot_id == staged
    assert head(table) == staged
    assert len(ids(table)) == 4


def test_a_commit_that_comes_between_is_not_lost_by_a_cherry_pick(table, lake, monkeypatch):
    staged = table.append(sales(2, 200), stage_only=True).snapshot_id
    forward, raced = cherry_pick._forward, []

    def racing(newest, snapshot, branch):
        made = forward(newest, snapshot, branch)
        if not raced:
            raced.append(lake.table("shop.sales").append(sales(1, 300)).snapshot_id)
        return made

    monkeypatch.setattr(cherry_pick, "_forward", racing)
    table.cherry_pick(staged)
    expected = pa.concat_tables([sales(12), sales(1, 300), sales(2, 200)])
    assert rows_of(table.arrow()) == rows_of(expected)


def test_an_overwrite_is_picked_only_onto_its_own_parent(table):
    staged = table.overwrite(sales(2, 200), stage_only=True).snapshot_id
    table.append(sales(1, 300))
    refused(table, lambda: table.cherry_pick(staged), "only appends")


def test_staged_snapshots_are_published_once_by_their_wap_id(table):
    table.append(sales(2, 200), stage_only=True, properties={"wap.id": "job-1"})
    assert table.arrow().num_rows == 12
    table.append(sales(1, 300))
    table.publish("job-1")
    assert table.snapshots()[-1].summary["published-wap-id"] == "job-1"
    assert table.arrow().num_rows == 15
    refused(table, lambda: table.publish("job-1"), "published already")
    refused(table, lambda: table.publish("job-2"), "no snapshot staged as job-2")
    for _ in range(2):
        table.append(sales(1, 400), stage_only=True, properties={"wap.id": "twice"})
    refused(table, lambda: table.publish("twice"), "2 snapshots")


class Settings:
    """A session that only has settings."""

    def __init__(self, **given: str) -> None:
        self.conf = {f"spark.wap.{key}": value for key, value in given.items()}


def test_the_session_stages_writes_or_sends_them_to_its_branch(table):
    table.set_properties({"write.wap.enabled": "true"})
    engine = table._engine
    engine._given = Settings(id="audit-7")
    table.append(sales(2, 200))
    assert table.arrow().num_rows == 12
    assert table.snapshots()[-1].summary["wap.id"] == "audit-7"
    engine._given = Settings(branch="etl")
    table.append(sales(2, 300))
    table.append(sales(1, 400))
    assert (table.arrow(ref="main").num_rows, table.arrow(ref="etl").num_rows) == (12, 15)
    table.create_branch("named")
    table.append(sales(1, 500), branch="named")
    assert table.arrow(ref="named").num_rows == 13
    engine._given = Settings(id="x", branch="y")
    refused(table, lambda: table.append(sales(1)), "not both")
    table.unset_properties(["write.wap.enabled"])
    table.append(sales(1, 600))
    engine._given = None
    assert table.arrow().num_rows == 13


def test_the_session_reads_its_branch_unless_a_read_names_another_state(table):
    before = table.snapshots()[-1].snapshot_id
    table.set_properties({"write.wap.enabled": "true"})
    engine = table._engine
    engine._given = Settings(branch="etl")
    assert table.arrow().num_rows == 12  # the branch is not there yet
    table.append(sales(3, 200))
    assert table.arrow().num_rows == 15
    assert table.arrow(where=Leaf(("id",), Op.GE, (200,))).num_rows == 3
    assert table.arrow(ref="main").num_rows == 12
    assert table.arrow(snapshot_id=before).num_rows == 12
    engine._given = Settings(branch="other")
    assert table.arrow().num_rows == 12
    table.unset_properties(["write.wap.enabled"])
    engine._given = Settings(branch="etl")
    assert table.arrow().num_rows == 12
    engine._given = None


@pytest.mark.parametrize("kept", [{}, {"min_snapshots_to_keep": 3}, {"if_not_exists": True}])
def test_a_branch_of_an_empty_table_begins_at_an_empty_snapshot(lake, kept):
    empty = lake.create_table("shop.fresh", SALES)
    empty.create_branch("b", **kept)
    (begun,) = empty.snapshots()
    assert (begun.operation, begun.parent_id) == ("append", None)
    assert begun.summary["total-records"] == "0"
    metadata = empty.handle.metadata
    assert (metadata.current_snapshot_id, list(metadata.refs)) == (None, ["b"])
    assert metadata.refs["b"].min_snapshots_to_keep == kept.get("min_snapshots_to_keep")
    empty.append(sales(2), branch="b")
    assert (empty.arrow().num_rows, empty.arrow(ref="b").num_rows) == (0, 2)
    empty.append(sales(3))
    assert (empty.arrow().num_rows, empty.arrow(ref="b").num_rows) == (3, 2)
    refused(empty, lambda: empty.create_branch("b"), "already")


def test_a_tag_needs_a_snapshot(lake):
    empty = lake.create_table("shop.fresh", SALES)
    refused(empty, lambda: empty.create_tag("t"), "no snapshot yet")


def test_the_first_write_to_an_empty_table_may_go_to_the_sessions_branch(lake):
    empty = lake.create_table("shop.empty", SALES, properties={"write.wap.enabled": "true"})
    empty._engine._given = Settings(branch="etl")
    empty.append(sales(3))
    empty._engine._given = None
    assert (empty.arrow().num_rows, empty.arrow(ref="etl").num_rows) == (0, 3)


# ---------------------------------------------------------------------- time travel


def test_time_travel_by_every_way(table):
    first, second, third = table.snapshots()
    table.create_tag("one", first.snapshot_id)
    table.create_branch("two", second.snapshot_id)
    assert table.arrow(snapshot_id=first.snapshot_id).num_rows == 4
    assert table.arrow(ref="one").num_rows == 4
    assert table.arrow(ref="two").num_rows == 8
    assert table.arrow(ref="main").num_rows == 12
    assert table.arrow(as_of=third.timestamp_ms).num_rows == 12
    moment = datetime.datetime.fromtimestamp(third.timestamp_ms / 1000 + 60, datetime.timezone.utc)
    assert table.arrow(as_of=moment).num_rows == 12
    assert table.arrow(as_of=moment.isoformat()).num_rows == 12


def test_wrong_times_and_refs_are_refused(table):
    first = table.snapshots()[0]
    refused(table, lambda: table.arrow(snapshot_id=42), "no snapshot 42")
    refused(table, lambda: table.arrow(ref="nowhere"), "no branch or tag nowhere")
    refused(table, lambda: table.arrow(as_of=first.timestamp_ms - 1), "no snapshot as old")
    refused(table, lambda: table.arrow(as_of="tomorrow"), "not a time")
    refused(
        table, lambda: table.arrow(snapshot_id=first.snapshot_id, ref="main"), "one of snapshot_id"
    )


def test_snapshots_are_read_with_their_own_schema_and_branches_with_the_newest(table):
    table.create_tag("before")
    table.create_branch("side")
    with table.evolve().update_schema() as update:
        update.add_column("colour", StringType())
        update.rename_column("note", "remark")
    assert "note" in table.arrow(ref="before").column_names
    assert {"remark", "colour"} <= set(table.arrow(ref="side").column_names)
    assert table.arrow(ref="side")["remark"].to_pylist() == table.arrow()["remark"].to_pylist()


def test_the_history_shows_what_was_current_when(table):
    first, second, third = ids(table)
    table.rollback_to(snapshot_id=first)
    table.append(sales(1, 500))
    rows = table.history().to_pylist()
    assert [row["snapshot_id"] for row in rows] == [first, second, third, first, ids(table)[-1]]
    ancestors = [row["is_current_ancestor"] for row in rows]
    assert ancestors == [True, False, False, True, True]


def test_odd_column_names_partition_and_sort(lake):
    from rowlake.model.partition import OrderBy

    names = ["a.b", "with space", "tick`s", "ünï", "(x)"]
    schema = pa.schema([pa.field(name, pa.int64()) for name in names])
    table = lake.create_table(
        "shop.odd",
        schema,
        partition_by=["`a.b`", "bucket(4, `with space`)", "truncate(`tick``s`, 10)", "`(x)`"],
        sort_by=[OrderBy(("a.b",)), OrderBy(("ünï",), ascending=False)],
    )
    rows = pa.table([pa.array([1, 2, 3])] * len(names), schema=schema)
    table.append(rows)
    assert [field.name for field in table.spec.fields] == [
        "a.b",
        "with space_bucket",
        "tick`s_trunc",
        "(x)",
    ]
    assert rows_of(table.arrow()) == rows_of(rows)
    with pytest.raises(RowlakeError, match="no column"):
        lake.create_table("shop.bad", schema, partition_by=["`a.c`"])
