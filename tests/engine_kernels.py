"""Kernels for tests of the engine: workers import them by name."""

from __future__ import annotations

import datetime
import os
import time
import uuid
from pathlib import Path

import pyarrow as pa

from rowlake.errors import CardinalityError

NUMBERS = pa.schema([pa.field("n", pa.int64())])
PIDS = pa.schema([pa.field("task", pa.int64()), pa.field("pid", pa.int64())])

TYPES = pa.schema(
    [
        pa.field("flag", pa.bool_()),
        pa.field("i", pa.int32(), nullable=False, metadata={"rowlake:doc": "a number"}),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("dec", pa.decimal128(20, 3)),
        pa.field("day", pa.date32()),
        pa.field("t", pa.time64("us")),
        pa.field("ts", pa.timestamp("us")),
        pa.field("tstz", pa.timestamp("us", "UTC")),
        pa.field("ns", pa.timestamp("ns")),
        pa.field("text", pa.string()),
        pa.field("u", pa.binary(16), metadata={"rowlake:type": "uuid"}),
        pa.field("fixed", pa.binary(3)),
        pa.field("raw", pa.binary()),
        pa.field("nothing", pa.null(), metadata={"rowlake:type": "unknown"}),
        pa.field("s", pa.struct([pa.field("u", pa.binary(16), metadata={"rowlake:type": "uuid"})])),
        pa.field("ll", pa.list_(pa.field("element", pa.int32(), nullable=False))),
        pa.field("m", pa.map_(pa.string(), pa.float64())),
    ]
)
UUID = uuid.UUID("12345678-90ab-cdef-1234-567890abcdef")
FULL_ROW = {
    "flag": True,
    "i": 1,
    "l": 2**40,
    "f": 0.5,
    "d": -0.25,
    "dec": 1,
    "day": datetime.date(1500, 1, 1),
    "t": datetime.time(1, 2, 3, 4),
    "ts": datetime.datetime(1960, 1, 1, 0, 0, 0, 1),
    "tstz": datetime.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=datetime.timezone.utc),
    "ns": datetime.datetime(2024, 1, 1),
    "text": "grüße",
    "u": UUID.bytes,
    "fixed": b"abc",
    "raw": b"\x00\xff",
    "s": {"u": UUID.bytes},
    "ll": [1, 2],
    "m": [("k", 1.5)],
}
EMPTY_ROW = {"i": 2}


def count_up(task):
    yield pa.RecordBatch.from_pydict({"n": [task, task + 100]}, NUMBERS)


def pause(seconds):
    time.sleep(seconds)
    yield pa.RecordBatch.from_pydict({"n": [1]}, NUMBERS)


def size_of(task):
    yield pa.RecordBatch.from_pydict({"n": [len(task)]}, NUMBERS)


def which_process(task):
    yield pa.RecordBatch.from_pydict({"task": [task], "pid": [os.getpid()]}, PIDS)


def nothing(task):
    return iter(())


def all_types(task):
    yield pa.RecordBatch.from_pylist([FULL_ROW, EMPTY_ROW], TYPES)


def bare_rows(task):
    yield pa.RecordBatch.from_pydict({"n": list(range(task))}, NUMBERS).select([])


def count_rows(batches):
    yield pa.RecordBatch.from_pydict({"n": [sum(batch.num_rows for batch in batches)]}, NUMBERS)


def keep_types(batches):
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"n": [batch.num_columns]}, NUMBERS)


def ambiguous(task):
    raise CardinalityError(f"Two rows match in task {task}.\nMake keys unique.", keys=[(17, "a")])
    yield


def ambiguous_rows(batches):
    raise CardinalityError("Two rows match.", keys=[(17, "a")])
    yield


def broken(task):
    return 1 // (task - task)


def fail_once(folder, task):
    """Yield one row, then fail, where no earlier attempt of the task left its mark."""
    mark = Path(folder) / str(task)
    first = not mark.exists()
    mark.touch()
    yield pa.RecordBatch.from_pydict({"n": [task]}, NUMBERS)
    if first:
        raise RuntimeError("the first attempt always fails")


def sleepy(folder, task):
    (Path(folder) / f"begun-{task}").touch()
    time.sleep(60)
    yield pa.RecordBatch.from_pydict({"n": [task]}, NUMBERS)


DIGITS = pa.schema([pa.field("digit", pa.int32()), pa.field("number", pa.int32())])
SEEN = pa.schema([pa.field("digit", pa.int32()), pa.field("rows", pa.int64())])


def numbers_by_last_digit(batches):
    """Yield numbers with their last digits; nulls have the digit 0."""
    for batch in batches:
        digits = pa.array([abs(n or 0) % 10 for n in batch.column(0).to_pylist()], pa.int32())
        yield pa.RecordBatch.from_arrays([digits, batch.column(0)], schema=DIGITS)


def digits_seen(batches):
    """Yield how many rows of each digit came to this task."""
    digits = [digit for batch in batches for digit in batch.column(0).to_pylist()]
    rows = [{"digit": digit, "rows": digits.count(digit)} for digit in set(digits)]
    yield pa.RecordBatch.from_pylist(rows, schema=SEEN)


def rows_as_they_come(batches):
    return batches


def is_first(folder, what):
    """Tell whether this is the first attempt at something."""
    mark = Path(folder) / what
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def spoilt(how, folder, kernel, given):
    """Run a kernel to its end; then its answer is lost, once or always, in one of several ways."""
    answer = list(kernel(given))
    if how == "always":
        raise RuntimeError("no attempt succeeds")
    if how == "twice":
        # As a speculative copy of the task, whose answer is not wanted.
        answer = list(kernel(given)) if not hasattr(given, "__next__") else answer
    elif is_first(folder, uuid.uuid5(uuid.NAMESPACE_OID, task_name(given)).hex):
        if how == "dies":
            os._exit(1)
        raise RuntimeError("the first attempt always fails")
    return iter(answer)


def task_name(given):
    """Return what tells tasks apart: their files, or the number of the partition."""
    from pyspark import TaskContext

    return f"{TaskContext.get().partitionId()} {getattr(given, 'files', '')}"
