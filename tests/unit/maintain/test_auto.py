"""`rowlake.auto-optimize.*`: when a write is followed by `optimize`, which never fails it."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

from rowlake.maintain.autopilot import auto, optimize
from rowlake.maintain.autopilot.auto import PREFIX, Policy, is_due
from rowlake.model.change import Operation
from tests.lakes import SALES, make_lake, rows_of, sales
from tests.unit.sql.lake_without_spark import Frame, lake_without_spark

pytestmark = pytest.mark.delta

ON = {f"{PREFIX}enabled": "true", f"{PREFIX}min-interval-seconds": "0"}


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as made:
        made.create_namespace("ns")
        yield made


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(auto, "_looks", {})


@pytest.fixture
def runs(monkeypatch):
    """How often `optimize` was started, and with which budget; it does nothing."""
    found: list[int] = []

    def fake(handle, engine, *, max_bytes):
        found.append(max_bytes)
        return handle, optimize.OptimizeReport(handle.name)

    monkeypatch.setattr(optimize, "optimize", fake)
    return found


def every(count, **more):
    return ON | {f"{PREFIX}every-commits": str(count)} | more


def test_it_is_off_by_default(lake, runs) -> None:
    table = lake.create_table("ns.t", SALES, properties={f"{PREFIX}every-commits": "1"})
    table.append(sales(4))
    assert runs == []


def test_it_runs_after_every_so_many_commits(lake, runs) -> None:
    table = lake.create_table("ns.t", SALES, properties=every(3, **{f"{PREFIX}max-bytes": "77"}))
    counts = []
    for number in range(7):
        table.append(sales(4, number * 4))
        counts.append(len(runs))
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    assert set(runs) == {77}


def test_it_runs_at_most_so_often(lake, runs) -> None:
    often = every(1) | {f"{PREFIX}min-interval-seconds": "3600"}
    table = lake.create_table("ns.t", SALES, properties=often)
    for number in range(3):
        table.append(sales(4, number * 4))
    assert len(runs) == 1


def test_compactions_of_others_count(lake) -> None:
    table = lake.create_table("ns.t", SALES)
    for number in range(6):
        table.append(sales(4, number * 4))
    policy = Policy(every_commits=2, min_interval_seconds=0, max_bytes=1)
    assert is_due(table.handle, policy, None)
    table.rewrite_data_files()
    assert table.snapshots()[-1].operation == Operation.REPLACE.value
    assert not is_due(table.handle, policy, None)
    for number in range(2):
        table.append(sales(4, number * 4))
    assert is_due(table.handle, policy, None)
    assert not is_due(table.handle, Policy(2, 3_600, 1), None)


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.append(sales(4, 100)),
        lambda table: table.overwrite(sales(4, 100)),
        lambda table: table.truncate(),
        lambda table: table.delete("id = 1"),
        lambda table: table.upsert(sales(4, 6), keys=["id"]),
    ],
)
def test_every_write_of_a_table_may_start_it(lake, runs, write) -> None:
    check_it_starts(lake, runs, write)


@pytest.mark.not_delta("equality deletes")
def test_a_blind_delete_may_start_it(lake, runs) -> None:
    check_it_starts(lake, runs, lambda table: table.delete("id = 1", deletes="equality"))


def check_it_starts(lake, runs, write) -> None:
    table = lake.create_table("ns.t", SALES)
    table.append(sales(8))
    table.set_properties(every(1))
    write(table)
    assert len(runs) == 1


@pytest.mark.iceberg
@pytest.mark.parametrize(
    "statement", ["DELETE FROM ns.t WHERE id = 1", "UPDATE ns.t SET note = 'x' WHERE id = 1"]
)
def test_statements_start_it_too(tmp_path, runs, statement) -> None:
    lake = lake_without_spark(tmp_path / "lake")
    lake.spark.answer = Frame(pa.table({"note": ["x"]}))
    lake.engine.case_sensitive = False
    lake.engine.is_one_machine = True
    lake.engine.progress = False
    lake.create_namespace("ns")
    table = lake.create_table("ns.t", SALES)
    table.append(sales(8))
    table.set_properties(every(1))
    lake.sql(statement)
    assert len(runs) == 1


@pytest.mark.not_delta("branches")
def test_writes_that_change_nothing_of_main_do_not_start_it(lake, runs) -> None:
    table = lake.create_table("ns.t", SALES)
    table.append(sales(8))
    table.create_branch("b")
    table.set_properties(every(1))
    table.append(sales(4, 8), branch="b")
    table.delete("id = 1000")
    assert runs == []


@pytest.mark.iceberg
def test_a_transaction_starts_it_once_it_has_landed(lake, runs) -> None:
    for name in ("ns.t", "ns.u", "ns.quiet"):
        lake.create_table(name, SALES, properties={} if "quiet" in name else every(1))
    with lake.transaction() as tx:
        for name in ("ns.t", "ns.u", "ns.quiet"):
            tx.table(name).append(sales(4))
            tx.table(name).append(sales(4, 4))
        assert runs == []
    assert len(runs) == 2
    with pytest.raises(ZeroDivisionError), lake.transaction() as tx:
        tx.table("ns.t").append(sales(4))
        raise ZeroDivisionError
    assert len(runs) == 2


def test_its_failure_never_fails_the_write(lake, monkeypatch, caplog) -> None:
    def broken(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(optimize, "optimize", broken)
    table = lake.create_table("ns.t", SALES, properties=every(1))
    with caplog.at_level(logging.WARNING, "rowlake"):
        assert table.append(sales(4)).rows_inserted == 4
    assert "auto-optimize of ns.t failed; the write has landed: disk full" in caplog.text
    assert table.arrow().num_rows == 4


def test_a_property_that_is_wrong_is_only_a_warning(lake, runs, caplog) -> None:
    table = lake.create_table("ns.t", SALES, properties=every("often"))
    with caplog.at_level(logging.WARNING, "rowlake"):
        table.append(sales(4))
    assert "every-commits=often" in caplog.text
    assert runs == []


def test_files_stay_few_under_many_small_writes(lake) -> None:
    table = lake.create_table("ns.t", SALES, properties=every(6))
    most = 0
    for number in range(20):
        table.append(sales(4, number * 4))
        most = max(most, table.health().data_files)
    assert most <= 7
    assert rows_of(table.arrow()) == rows_of(sales(80))
    assert {each.operation for each in table.snapshots()} == {"append", "replace"}
