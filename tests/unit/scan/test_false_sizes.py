"""Sizes, offsets and counts of manifests that are not those of the file: no row lost or doubled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlake.model.task import ScanTask
from rowlake.plan import tasks
from rowlake.plan.tasks import MOST_SPLITS_PER_FILE, scan_tasks, split_starts
from rowlake.scan import scan_kernel
from rowlake.scan.source import Unit, in_split
from tests.scanning import context, field, file_task, schema, table_of, write_orc, write_parquet
from tests.unit.plan.test_tasks import plan_of

if TYPE_CHECKING:
    from pathlib import Path

TABLE = schema(field("k", pa.int64(), 1))
ROWS = [{"k": index} for index in range(3000)]
HUGE = 1 << 60


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("sizes") / "data.parquet"
    return write_parquet(path, table_of(TABLE, ROWS), row_group_size=300, compression="none")


def keys(*files) -> list[int]:
    batches = scan_kernel(ScanTask(context(TABLE), files))
    return [key for batch in batches for key in batch.column(0).to_pylist()]


@pytest.mark.parametrize("size", [-HUGE, -5, 0, 1, 700, HUGE])
@pytest.mark.parametrize("write", [write_parquet, write_orc])
def test_a_whole_file_is_read_whatever_the_manifest_says_of_its_size(
    tmp_path: Path, write, size: int
) -> None:
    path = write(tmp_path / "data", table_of(TABLE, ROWS))
    kind = "PARQUET" if write is write_parquet else "ORC"
    task = file_task(path, kind, file_size_in_bytes=size, start=0, length=size)
    assert keys(task) == list(range(3000))


@pytest.mark.parametrize("size", [-5, 0, 1, 100, 10_000, 60_000, HUGE])
@pytest.mark.parametrize(
    "offsets", [None, [], [4], [4, 50], [-7, 90], [50, 4], [4, 4], [4, HUGE], [HUGE], [9000, 20000]]
)
def test_splits_of_a_file_of_another_size_hold_each_row_once(
    data: str, size: int, offsets: list[int] | None
) -> None:
    plan = plan_of(
        [1],
        properties={"read.split.target-size": "5000"},
        file_size_in_bytes=[size],
        split_offsets=[offsets],
        location=[data],
    )
    made = scan_tasks(plan, SimpleNamespace(), slots=3)
    files = [file for task in made for file in task.files]
    assert sorted(keys(*files)) == list(range(3000))


UNITS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=10)


@given(
    UNITS,
    st.integers(-5, 20_000) | st.just(HUGE),
    st.lists(st.integers(-9, 30_000)),
    st.integers(1, 9_000),
)
def test_every_unit_is_in_one_split(
    offsets: list[int], size: int, known: list[int], split: int
) -> None:
    units = [Unit(index, offset, 0, 1) for index, offset in enumerate(offsets)]
    starts = split_starts(size, known, split) if size > split else [0]
    ends = [*starts[1:], size]
    found = [
        unit.index
        for start, end in zip(starts, ends, strict=True)
        for unit in in_split(
            units, file_task("", file_size_in_bytes=size, start=start, length=end - start)
        )
    ]
    assert sorted(found) == list(range(len(units)))


def test_a_false_size_does_not_make_millions_of_splits() -> None:
    assert len(split_starts(HUGE, None, 1)) <= MOST_SPLITS_PER_FILE
    plan = plan_of(
        range(50), properties={"read.split.target-size": "1"}, file_size_in_bytes=[HUGE] * 50
    )
    made = scan_tasks(plan, SimpleNamespace(), slots=2)
    assert sum(len(task.files) for task in made) <= 50 * MOST_SPLITS_PER_FILE


def test_many_honest_large_files_are_still_split() -> None:
    sizes = np.full(200_000, 1 << 30)
    table = pa.table({"split_offsets": pa.nulls(len(sizes), pa.list_(pa.int64()))})
    rows, _, lengths = tasks._split(table, sizes, 128 * tasks.MEGABYTE)
    assert len(rows) == 8 * len(sizes)
    assert lengths.sum() == sizes.sum()
