"""Compaction of files whose manifests are wrong about them: the rows stay, or it is refused."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError
from rowlake.maintain.compact.rewrite_kernel import _as_they_come
from rowlake.maintain.compact.rewrite_tasks import neighbours
from tests.in_time import failure_in_time
from tests.lakes import SALES, rows_of, sales
from tests.manifests import change_entries

pytestmark = pytest.mark.iceberg

ALL = {"rewrite-all": "true"}


@pytest.fixture(params=["clean", "with deletes"])
def table(tmp_path, request):
    with connect(str(tmp_path)) as lake:
        lake.create_namespace("shop")
        modes = {"write.delete.mode": "merge-on-read"}
        made = lake.create_table("shop.sales", SALES, properties=modes)
        made.append(sales(50))
        made.append(sales(50, 50))
        if request.param == "with deletes":
            made.delete("id = 3")
        yield made


def only_data(**changed):
    return lambda file: file.update(changed) if file["content"] == 0 else None


@pytest.mark.parametrize("count", [-1, 0, 10, 51, 1 << 60])
def test_a_false_record_count_ends_compaction_with_the_file_named(table, count) -> None:
    before = rows_of(table.arrow())
    change_entries(table, only_data(record_count=count))
    with pytest.raises(CorruptTableError, match="its manifest says") as raised:
        table.rewrite_data_files(options=ALL)
    assert raised.value.location in table.files()["file_path"].to_pylist()
    assert rows_of(table.arrow()) == before


@pytest.mark.parametrize("size", [-5, 0, 1])
def test_a_false_size_keeps_all_rows(table, size) -> None:
    before = rows_of(table.arrow())
    change_entries(table, only_data(file_size_in_bytes=size))
    table.rewrite_data_files(options=ALL)
    assert rows_of(table.arrow()) == before


@pytest.mark.parametrize("sizes", [[1 << 60] * 3, [1, 1 << 60, -5], [0, 0, 0]])
def test_files_of_absurd_sizes_are_put_into_runs_at_once(sizes) -> None:
    files = [SimpleNamespace(file_size_in_bytes=size) for size in sizes]
    runs: list[list[int]] = []
    group = SimpleNamespace(files=files)
    assert failure_in_time(lambda: runs.extend(neighbours(group, 1 << 31))) is None
    assert sorted(place for run in runs for place in run) == [0, 1, 2]


def test_a_task_of_absurdly_many_files_writes_the_rows_that_there_are() -> None:
    task = SimpleNamespace(rows=10, parts=1 << 40)
    batches = [pa.RecordBatch.from_pydict({"k": range(start, start + 5)}) for start in (0, 5)]
    found: list[int] = []

    def take() -> None:
        for part in _as_they_come(task, iter(batches)):
            for batch in part:
                found.extend(batch["k"].to_pylist())

    assert failure_in_time(take) is None
    assert found == list(range(10))
