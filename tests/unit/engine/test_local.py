from __future__ import annotations

import threading
from dataclasses import dataclass

import pyarrow as pa
import pytest

from rowlake.engine.local import MAX_BYTES, MAX_FILES, is_tiny
from rowlake.engine.spark import Engine
from rowlake.errors import StorageError

OUTPUT = pa.schema([("n", pa.int64())])


@dataclass(frozen=True)
class Files:
    files: tuple[str, ...]


def ones(task):
    yield pa.RecordBatch.from_pydict({"n": [task]}, OUTPUT)
    yield pa.RecordBatch.from_pydict({"n": []}, OUTPUT)


def refused(task):
    raise StorageError("file:/x", "no")
    yield


def test_tiny_work_starts_no_session_and_keeps_the_order_of_tasks():
    engine = Engine()
    table = engine.run(ones, list(range(8)), OUTPUT, size_in_bytes=1000)
    assert table["n"].to_pylist() == list(range(8))
    assert table.schema == OUTPUT
    assert not engine.has_session


def test_no_tasks_are_no_work():
    engine = Engine()
    assert engine.run(ones, [], OUTPUT).num_rows == 0
    assert not engine.has_session


def test_a_narrower_type_from_a_kernel_is_widened_to_the_output():
    def narrow(task):
        yield pa.RecordBatch.from_pydict({"n": pa.array([task], pa.int32())})

    assert Engine().run(narrow, [1], OUTPUT, size_in_bytes=1).schema == OUTPUT


@pytest.mark.parametrize("count", [1, 4])
def test_the_error_of_a_task_is_raised_as_it_is(count):
    with pytest.raises(StorageError):
        Engine().run(refused, [1] * count, OUTPUT, size_in_bytes=1)


def test_progress_is_told_to_a_function():
    heard = []
    Engine().run(ones, [1, 2, 3], OUTPUT, size_in_bytes=1, label="x", progress=heard.append)
    assert [(p.label, p.done, p.total) for p in heard] == [("x", 1, 3), ("x", 2, 3), ("x", 3, 3)]


def test_threads_run_side_by_side():
    meeting = threading.Barrier(2, timeout=10)

    def meet(task):
        meeting.wait()
        yield from ones(task)

    assert Engine().run(meet, [1, 2], OUTPUT, size_in_bytes=1).num_rows == 2


def test_what_counts_as_tiny():
    assert is_tiny([1] * MAX_FILES, 1000)
    assert not is_tiny([1] * (MAX_FILES + 1), 1000)
    assert not is_tiny([1], MAX_BYTES + 1)
    assert not is_tiny([1], None)
    assert not is_tiny([Files(("f",) * (MAX_FILES + 1))], 1000)
