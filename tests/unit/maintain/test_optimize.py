"""`optimize`: which steps it picks, in which order, within which budget, and what it leaves."""

from __future__ import annotations

import json
from random import Random

import pytest

from rowlake.errors import (
    CommitConflictError,
    InvalidStatementError,
    StorageError,
    UnsupportedFeatureError,
)
from rowlake.maintain.autopilot import costs, optimize_steps
from rowlake.maintain.autopilot import optimize as optimizing
from rowlake.maintain.autopilot.costs import Step, propose
from rowlake.maintain.autopilot.optimize import DONE, GAVE_WAY, PLANNED, SKIPPED, optimize
from rowlake.maintain.autopilot.optimize_steps import Limits, Outcome, rewrite_options
from rowlake.maintain.autopilot.survey import survey
from rowlake.model.files import Content
from rowlake.model.partition import OrderBy
from rowlake.model.report import Report
from tests.any_format import changing
from tests.lakes import SALES, make_lake, rows_of, sales
from tests.metadata_files import MB, add_files, numbers
from tests.unit.sql.lake_without_spark import lake_without_spark

pytestmark = pytest.mark.delta

VERBS = list(optimize_steps.RUNNERS)


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as made:
        made.create_namespace("ns")
        yield made


@pytest.fixture
def ran(monkeypatch):
    """Steps that do nothing but say that they ran: (verb, limits)."""
    found: list[tuple[str, Limits]] = []

    def fake(handle, engine, step, limits):
        found.append((step.verb, limits))
        return Outcome(handle, Report(), f"{step.verb} ran", step.rewrites)

    monkeypatch.setattr(optimize_steps, "RUNNERS", dict.fromkeys(VERBS, fake))
    return found


def steps_of(table, **limits):
    _, report = optimize(table.handle, table._engine, **limits)
    return report


def states(report):
    return {each.verb: each.state for each in report.steps}


def crowded(lake, name="t"):
    """A table with small files, equality deletes and position deletes piled up elsewhere."""
    table = numbers(lake, name, partition_by=["store"])
    add_files(table, [MB] * 8, stores=[1] * 8)
    add_files(table, [512 * MB], stores=[2])
    add_files(table, [1_000] * 8, stores=[2] * 8, rows=1, content=Content.POSITION_DELETES)
    return table


# --- which steps


def test_a_table_that_is_well_is_left_alone(lake, ran) -> None:
    table = lake.create_table("ns.t", SALES)
    assert set(states(steps_of(table)).values()) == {SKIPPED}
    table.append(sales(4))
    report = steps_of(table)
    assert set(states(report).values()) == {SKIPPED}
    assert (ran, report.verdict_before, report.verdict_after) == ([], "ok", None)
    assert report.summary() == "ns.t: nothing to do"
    assert all(each.why for each in report.steps)


@pytest.mark.not_delta("position delete files")
def test_every_verb_is_either_run_or_left_out_with_a_reason(lake, ran) -> None:
    report = steps_of(crowded(lake))
    assert sorted(states(report)) == sorted(VERBS)
    assert [verb for verb, _ in ran] == [each.verb for each in report.done]
    assert set(states(report)) - {each.verb for each in report.done} == {
        "convert_equality_deletes",
        "rewrite_manifests",
        "expire_snapshots",
    }


@pytest.mark.not_delta("position delete files")
def test_steps_come_by_what_they_save_for_what_they_cost(lake) -> None:
    chosen, _ = propose(survey(crowded(lake).handle))
    assert [step.verb for step in chosen] == ["rewrite_position_delete_files", "rewrite_data_files"]
    assert chosen[0].ratio > chosen[1].ratio


@pytest.mark.not_delta("position delete files")
def test_a_step_that_does_not_pay_is_left_out(lake, monkeypatch) -> None:
    monkeypatch.setattr(costs, "READS", 0)
    chosen, left = propose(survey(crowded(lake).handle))
    assert chosen == []
    assert any(each.why.startswith("it would not pay: saves about") for each in left)


@pytest.mark.not_delta("position delete files")
def test_deletes_of_files_that_are_rewritten_anyway_need_no_step(lake) -> None:
    table = numbers(lake, partition_by=["store"])
    add_files(table, [MB] * 8, stores=[1] * 8)
    add_files(table, [1_000] * 3, stores=[1] * 3, rows=1, content=Content.POSITION_DELETES)
    chosen, left = propose(survey(table.handle))
    assert [step.verb for step in chosen] == ["rewrite_data_files"]
    reasons = {each.verb: each.why for each in left}
    assert reasons["rewrite_position_delete_files"] == "no data file that stays has more than one"


@pytest.mark.not_delta("sort orders")
def test_a_table_out_of_its_order_is_sorted(lake) -> None:
    table = numbers(lake, sort_by=[OrderBy(("id",))])
    add_files(table, [512 * MB] * 12, lows=[0] * 12, width=1_000)
    (step,) = [s for s in propose(survey(table.handle))[0] if s.verb == "rewrite_data_files"]
    assert step.arguments == {"strategy": "sort"}
    assert step.options == {"rewrite-all": "true"}
    assert "--strategy sort" in step.advice("ns.t").command


@pytest.mark.not_delta("equality deletes")
def test_equality_deletes_are_converted(lake, ran) -> None:
    table = lake.create_table("ns.e", SALES)
    table.append(sales(20))
    table.delete("id = 3", deletes="equality")
    assert states(steps_of(table))["convert_equality_deletes"] == DONE


@pytest.mark.iceberg
def test_expiry_follows_the_tables_retention(lake, ran) -> None:
    table = numbers(lake, properties={"history.expire.max-snapshot-age-ms": "1"})
    for number in range(3):
        add_files(table, [MB], lows=[number * 100])
    report = steps_of(table)
    assert states(report)["expire_snapshots"] == SKIPPED
    table.set_properties({"note": "x" * 1_000_000})  # now the metadata file is large
    assert states(steps_of(table))["expire_snapshots"] == DONE
    table.set_properties({"gc.enabled": "false"})
    (left,) = [s for s in steps_of(table).steps if s.verb == "expire_snapshots"]
    assert (left.state, "gc.enabled" in left.why) == (SKIPPED, True)


@pytest.mark.iceberg
def test_manifests_that_are_many_are_rewritten(lake, ran) -> None:
    table = numbers(lake, properties={"commit.manifest-merge.enabled": "false"})
    for number in range(20):
        add_files(table, [512 * MB], lows=[number * 100])
    assert states(steps_of(table))["rewrite_manifests"] == DONE


# --- dry run, budgets, filters


@pytest.mark.not_delta("position delete files")
def test_a_dry_run_shows_exactly_what_a_run_does(lake, ran) -> None:
    table = crowded(lake)
    dry = steps_of(table, dry_run=True)
    assert (ran, dry.dry_run, dry.verdict_after) == ([], True, None)
    real = steps_of(table)
    assert [each.verb for each in dry.planned] == [each.verb for each in real.done]
    assert [(e.sql, e.command, e.why) for e in dry.planned] == [
        (e.sql, e.command, e.why) for e in real.done
    ]


@pytest.mark.not_delta("position delete files")
def test_bytes_that_are_left_bound_what_is_run(lake, ran) -> None:
    table = crowded(lake)
    report = steps_of(table, max_bytes=8_000)
    assert states(report)["rewrite_position_delete_files"] == DONE  # 8 × 1,000 bytes
    assert states(report)["rewrite_data_files"] == SKIPPED
    assert "over the budget: 0 of 8,000 bytes are left" in str(report)
    assert states(steps_of(table, max_bytes=8_000, dry_run=True)) == {
        verb: PLANNED if state == DONE else state for verb, state in states(report).items()
    }
    ran.clear()
    steps_of(table, max_bytes=2 * MB)
    assert [verb for verb, _ in ran] == ["rewrite_position_delete_files", "rewrite_data_files"]
    assert ran[1][1].max_bytes == 2 * MB - 8_000


@pytest.mark.not_delta("sort orders")
def test_a_sort_runs_whole_or_not_at_all(lake, ran) -> None:
    table = numbers(lake, sort_by=[OrderBy(("id",))])
    add_files(table, [512 * MB] * 12, lows=[0] * 12, width=1_000)
    assert states(steps_of(table, max_bytes=MB))["rewrite_data_files"] == SKIPPED
    (done,) = steps_of(table, max_bytes=1 << 40).done
    assert "--strategy sort" in done.command


@pytest.mark.not_delta("sort orders")
def test_where_there_is_no_room_for_a_sort_small_files_are_merged(lake, ran) -> None:
    table = numbers(lake, sort_by=[OrderBy(("id",))])
    add_files(table, [512 * MB] * 6 + [MB] * 6, lows=[0] * 12, width=1_000)
    (done,) = steps_of(table, max_bytes=100 * MB).done
    assert done.command == "rowlake rewrite-data-files ns.t"
    (done,) = steps_of(table).done
    assert "--strategy sort" in done.command


def test_orders_that_bounds_do_not_tell_are_not_sorted_again_and_again(lake) -> None:
    for number, transform in enumerate(("bucket[4]", "truncate[10000]")):
        table = numbers(lake, f"t{number}", sort_by=[OrderBy(("id",), transform)])
        add_files(table, [512 * MB] * 12, lows=[0] * 12, width=1_000)
        assert "rewrite_data_files" not in [s.verb for s in propose(survey(table.handle))[0]]


def test_a_sort_takes_each_partition_whole() -> None:
    step = Step("rewrite_data_files", "", 0, 0, 50 << 30, {}, {"rewrite-all": "true"})
    options = rewrite_options(step, Limits())
    assert int(options["max-file-group-size-bytes"]) > 50 << 30


@pytest.mark.not_delta("position delete files")
def test_what_a_table_cannot_do_is_left_out(lake, ran, monkeypatch) -> None:
    def refuses(*_):
        raise UnsupportedFeatureError("not on version 1")

    runners = {**optimize_steps.RUNNERS, "rewrite_data_files": refuses}
    monkeypatch.setattr(optimize_steps, "RUNNERS", runners)
    report = steps_of(crowded(lake))
    (left,) = [each for each in report.steps if each.verb == "rewrite_data_files"]
    assert (left.state, left.why) == (SKIPPED, "not on version 1")
    assert states(report)["rewrite_position_delete_files"] == DONE


@pytest.mark.not_delta("position delete files")
def test_seconds_bound_which_steps_start(lake, ran, monkeypatch) -> None:
    table = crowded(lake)
    monkeypatch.setattr(optimizing, "_SPEEDS", {"rewrite_position_delete_files": 1.0})
    report = steps_of(table, max_seconds=60)
    assert states(report)["rewrite_position_delete_files"] == SKIPPED
    assert states(report)["rewrite_data_files"] == DONE  # stops by itself
    assert 0 < ran[0][1].max_seconds <= 60


def test_speeds_are_measured(monkeypatch) -> None:
    monkeypatch.setattr(optimizing, "_SPEEDS", {})
    step = Step("rewrite_data_files", "", 0, 1_000, 0)
    assert optimizing.estimated_seconds(step) == 1_000 / optimizing.BYTES_PER_SECOND
    optimizing.measure(step, 0.1)
    assert optimizing._SPEEDS == {}
    optimizing.measure(step, 10)
    optimizing.measure(step, 5)
    assert optimizing.estimated_seconds(step) == 1_000 / 150


@pytest.mark.parametrize("limits", [{"max_bytes": 0}, {"max_seconds": -1}, {"max_bytes": True}])
def test_budgets_must_be_above_zero(lake, limits) -> None:
    table = lake.create_table("ns.t", SALES)
    with pytest.raises(InvalidStatementError, match="must be above 0"):
        table.optimize(**limits)


@pytest.mark.iceberg
def test_a_filter_keeps_to_its_files_and_off_metadata(lake, ran) -> None:
    table = crowded(lake)
    table.set_properties({"history.expire.max-snapshot-age-ms": "1", "note": "x" * 1_000_000})
    report = table.optimize(where="store = 1")
    assert [verb for verb, _ in ran] == ["rewrite_data_files"]
    assert ran[0][1].where is not None
    reasons = {each.verb: each.why for each in report.steps if each.state == SKIPPED}
    assert reasons["expire_snapshots"] == "it is of the whole table"
    with pytest.raises(InvalidStatementError, match="nope"):
        table.optimize(where="nope = 1")


def test_compaction_lands_in_parts_within_the_budget() -> None:
    step = Step("rewrite_data_files", "", 0, 0, 4 << 30, {}, {"delete-file-threshold": "1"})
    options = rewrite_options(step, Limits(max_bytes=77))
    assert options["max-file-group-size-bytes"] == "77"
    assert options["partial-progress.enabled"] == "false"  # one commit is no part
    assert options["delete-file-threshold"] == "1"
    options = rewrite_options(step, Limits())
    assert options["max-file-group-size-bytes"] == str(10 << 30)
    assert options["partial-progress.enabled"] == "true"
    assert options["partial-progress.max-commits"] == "4"


# --- what goes wrong


@pytest.mark.not_delta("position delete files")
def test_a_step_that_loses_against_a_writer_gives_way_and_the_next_runs(lake, ran, monkeypatch):
    def lost(handle, engine, step, limits):
        raise CommitConflictError(step.verb, handle.name, "another was faster")

    runners = {**optimize_steps.RUNNERS, "rewrite_position_delete_files": lost}
    monkeypatch.setattr(optimize_steps, "RUNNERS", runners)
    report = steps_of(crowded(lake))
    assert states(report)["rewrite_position_delete_files"] == GAVE_WAY
    assert states(report)["rewrite_data_files"] == DONE
    assert "another was faster" in str(report)


@pytest.mark.not_delta("position delete files")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StorageError("s3://b", "gone")])
def test_what_is_done_stays_done_and_a_second_run_goes_on(lake, ran, monkeypatch, error) -> None:
    table = crowded(lake)
    first, second = (s.verb for s in propose(survey(table.handle))[0])
    stopped = iter([error, None])

    def sometimes(handle, engine, step, limits):
        raised = next(stopped)
        if raised is not None:
            raise raised
        return Outcome(handle, Report(), "ran at last")

    def for_good(handle, engine, step, limits):
        # What a real step leaves: a commit of its own.
        ran.append((step.verb, limits))
        table.set_properties({"landed": step.verb})
        return Outcome(table.handle, Report(), "ran")

    runners = {**optimize_steps.RUNNERS, first: for_good, second: sometimes}
    monkeypatch.setattr(optimize_steps, "RUNNERS", runners)
    with pytest.raises(type(error)):
        table.optimize()
    assert table.properties["landed"] == first
    assert [s.outcome for s in table.optimize().done if s.verb == second] == ["ran at last"]


@pytest.mark.iceberg
def test_not_inside_a_transaction(lake) -> None:
    lake.create_table("ns.t", SALES)
    with lake.transaction() as tx, pytest.raises(UnsupportedFeatureError, match="optimize"):
        tx.table("ns.t").optimize()


# --- for real


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_table_is_well_after_it_and_has_the_same_rows(lake, version) -> None:
    table = lake.create_table(
        "ns.r", SALES, partition_by=["store"], properties={"format-version": version}
    )
    for number in range(6):
        table.append(sales(20, number * 20))
    table.delete("id IN (3, 7, 50)", mode="merge-on-read")
    if table.handle.can.equality_deletes:
        table.delete("id = 8", deletes="equality")
    before = rows_of(table.arrow())
    dry = table.optimize(dry_run=True)
    report = table.optimize()
    assert [each.verb for each in dry.planned] == [each.verb for each in report.done]
    assert report.done and (report.verdict_before, report.verdict_after) == ("act", "ok")
    assert rows_of(table.arrow()) == before
    assert table.health().data_files == 4
    assert table.health().delete_files == 0
    again = table.optimize()
    assert again.done == ()
    assert table.snapshots()[-1].operation == "replace"


@pytest.mark.parametrize("seed", range(4))
def test_whatever_was_done_another_run_finds_nothing(lake, seed) -> None:
    random = Random(seed)
    table = lake.create_table(
        "ns.x",
        SALES,
        partition_by=random.choice([[], ["store"], ["bucket(3, id)"]]),
        sort_by=random.choice([[], [OrderBy(("id",))]]),
        properties={"format-version": random.choice(["2", "3"])},
    )
    more = ["by value", "evolve"] if table.handle.can.equality_deletes else []
    for number in range(14):
        table.append(sales(12, number * 12))
        doing = random.choice(["append", "mark", *more])
        one = random.randrange((number + 1) * 12)
        if doing == "mark":
            table.delete(f"id >= {one - 3} AND id <= {one}", mode="merge-on-read")
        elif doing == "by value":
            table.delete(f"id = {one}", deletes="equality")
        elif doing == "evolve":
            with changing(table, "spec") as update:
                update.add_field("store", f"bucket[{number + 2}]", f"bucket_{number}")
    before = rows_of(table.arrow())
    dry = table.optimize(dry_run=True)
    report = table.optimize()
    assert [each.verb for each in dry.planned] == [each.verb for each in report.done]
    if len(table.handle.view().specs) > 1:
        table.optimize()  # files of older specs came to the partitions of the current one
    assert table.optimize().done == ()
    assert rows_of(table.arrow()) == before


def test_it_prints_for_people_and_programs(lake) -> None:
    table = lake.create_table("ns.p", SALES)
    for number in range(6):
        table.append(sales(4, number * 4))
    dry = table.optimize(dry_run=True)
    assert "planned" in str(dry) and "rowlake rewrite-data-files ns.p" in str(dry)
    report = table.optimize()
    assert "6 data files" in str(report) and "became 1" in str(report)
    told = json.loads(json.dumps(report.to_dict(), default=str))
    (done,) = [each for each in told["steps"] if each["state"] == DONE]
    assert done["report"]["rewritten_data_files_count"] == 6
    assert "<table" in report._repr_html_()


@pytest.mark.iceberg
def test_call_health_and_call_optimize(tmp_path) -> None:
    lake = lake_without_spark(tmp_path / "lake")
    lake.create_namespace("ns")
    table = lake.create_table("ns.c", SALES)
    for number in range(6):
        table.append(sales(4, number * 4))
    found = lake.sql("CALL system.health('ns.c')")
    assert found.schema.names[:4] == ["name", "value", "shown", "verdict"]
    assert found["name"].to_pylist()[0] == "small files"
    steps = lake.sql("CALL system.optimize(table => 'ns.c', dry_run => true, max_bytes => 1000000)")
    assert steps["state"].to_pylist()[0] == PLANNED
    with pytest.raises(InvalidStatementError, match="max_bytes of optimize must be a whole number"):
        lake.sql("CALL system.optimize(table => 'ns.c', max_bytes => 'much')")
