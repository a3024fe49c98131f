"""Splitting and packing of files into tasks."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlake.errors import InvalidStatementError
from rowlake.model.files import Content
from rowlake.model.predicate import TRUE
from rowlake.plan import tasks
from rowlake.plan.delete_index import DeleteIndex
from rowlake.plan.files import FilePlan
from rowlake.plan.tasks import MEGABYTE, pack, scan_tasks, split_starts, task_count
from tests.plan_kit import column, entries_of, schema_of, spec_of

SCHEMA = schema_of(column("a", pa.int32(), 1))
SPECS = {0: spec_of(), 1: spec_of((1, "identity"), spec_id=1)}
CONTEXT = SimpleNamespace()


def plan_of(files, spec_id=0, deletes=(), properties=None, **columns):
    table = entries_of([[{"a": value}] for value in files], SCHEMA, SPECS[spec_id], **columns)
    if not files:
        table = table.slice(0, 0)
    held = {}
    if deletes:
        held[spec_id] = entries_of(
            [[{"a": value}] for value in deletes],
            SCHEMA,
            SPECS[spec_id],
            content=[Content.POSITION_DELETES] * len(deletes),
            location=[f"delete-{number}" for number in range(len(deletes))],
        )
    view = SimpleNamespace(properties=properties or {})
    return FilePlan(view, TRUE, {spec_id: table}, DeleteIndex(held, SPECS, SCHEMA))


def ranges_of(found):
    return sorted(
        (file.location[-13:], file.start, file.length) for task in found for file in task.files
    )


def test_small_files_are_packed_into_few_tasks():
    plan = plan_of(range(100), file_size_in_bytes=[MEGABYTE] * 100)
    found = scan_tasks(plan, CONTEXT, slots=2)
    assert [len(task.files) for task in found] == [25] * 4
    assert len(scan_tasks(plan, CONTEXT, slots=100)) == 12
    assert len(ranges_of(found)) == len(set(ranges_of(found))) == 100


def test_no_files_make_no_tasks():
    assert scan_tasks(plan_of([]), CONTEXT, slots=4) == []


def test_big_files_are_split_at_row_groups():
    plan = plan_of(
        [1, 2],
        file_size_in_bytes=[300 * MEGABYTE, 10],
        split_offsets=[[4, 100 * MEGABYTE, 200 * MEGABYTE], None],
    )
    found = scan_tasks(plan, CONTEXT, slots=8)
    assert ranges_of(found) == [
        ("00000.parquet", 0, 100 * MEGABYTE),
        ("00000.parquet", 100 * MEGABYTE, 100 * MEGABYTE),
        ("00000.parquet", 200 * MEGABYTE, 100 * MEGABYTE),
        ("00001.parquet", 0, 10),
    ]


@given(
    st.integers(1, 10_000),
    st.none() | st.lists(st.integers(-5, 11_000), max_size=20),
    st.integers(1, 3_000),
)
def test_splits_cover_a_file_without_gaps(size, offsets, split_bytes):
    starts = split_starts(size, offsets, split_bytes)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert starts[-1] < size


@pytest.mark.parametrize("size", [2**40, 2**63 - 1])
def test_a_size_that_cannot_be_true_makes_no_flood_of_splits(size):
    plan = plan_of([1] * 3, file_size_in_bytes=[size] * 3, split_offsets=[None] * 3)
    ranges = ranges_of(scan_tasks(plan, CONTEXT, slots=4))
    assert len(ranges) <= 3 * tasks.MOST_SPLITS_PER_FILE
    assert sum(length for _, _, length in ranges) == 3 * size


def test_small_splits_of_many_files_are_bounded_in_number(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_SPLITS", 50)
    plan = plan_of([1] * 20, file_size_in_bytes=[300 * MEGABYTE] * 20, split_offsets=[None] * 20)
    assert len(ranges_of(scan_tasks(plan, CONTEXT, slots=4))) <= 70


@given(st.lists(st.floats(1, 1e9), max_size=40), st.integers(1, 8), st.booleans())
def test_packing_loses_nothing(weights, count, neighbours):
    few = tasks.FEW_PIECES
    try:
        tasks.FEW_PIECES = 0 if neighbours else few
        bins = pack(np.array(weights), count)
    finally:
        tasks.FEW_PIECES = few
    assert sorted(np.concatenate([np.zeros(0, int), *bins]).tolist()) == list(range(len(weights)))
    assert len(bins) <= count
    assert all(len(held) for held in bins)


def test_packing_balances():
    weights = np.array([5.0, 4.0, 3.0, 3.0, 3.0])
    assert sorted(weights[held].sum() for held in pack(weights, 2)) == [8.0, 10.0]


@pytest.mark.parametrize(
    ("megabytes", "slots", "count"),
    [(1, 8, 1), (64, 8, 2), (1024, 8, 8), (1025, 8, 16), (100_000, 8, 24)],
)
def test_tasks_are_few_and_fat(megabytes, slots, count):
    assert task_count(megabytes * MEGABYTE, 128 * MEGABYTE, slots) == count


def test_tasks_carry_partitions_and_deletes():
    plan = plan_of([1, 2], 1, deletes=[2, 2], data_sequence_number=[1, 1], first_row_id=[5, None])
    (task,) = scan_tasks(plan, CONTEXT, slots=4)
    first, second = sorted(task.files, key=lambda file: file.location)
    assert first.partition == {1000: 1}
    assert (first.spec_id, first.first_row_id, first.data_sequence_number) == (1, 5, 1)
    assert first.deletes == ()
    assert [each.location for each in second.deletes] == ["delete-0", "delete-1"]
    assert plan.clean(1).tolist() == [True, False]
    assert not plan.is_clean


def test_tasks_by_partition_mix_no_partitions():
    plan = plan_of([1, 2, 1, 3, 2], 1)
    found = scan_tasks(plan, CONTEXT, slots=4, by_partition=True)
    held = sorted([file.partition[1000] for file in task.files] for task in found)
    assert held == [[1, 1], [2, 2], [3]]


def test_split_size_comes_from_the_table():
    plan = plan_of([1], properties={"read.split.target-size": "10"}, file_size_in_bytes=[25])
    found = scan_tasks(plan, CONTEXT, slots=1)
    assert [each[1:] for each in ranges_of(found)] == [(0, 8), (8, 8), (16, 9)]
    bad = plan_of([1], properties={"read.split.target-size": "many"})
    with pytest.raises(InvalidStatementError, match="target-size=many: expected a whole number"):
        scan_tasks(bad, CONTEXT, slots=1)
