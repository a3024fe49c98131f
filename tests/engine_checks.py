"""What the engine promises in any session: checks that take an engine and assert.

`tests/spark/test_engine.py` runs them in the session of the test run, `other_session_suite.py`
in sessions of other kinds and versions.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from rowlake.engine.jobs import is_remote
from rowlake.engine.progress import POLL_SECONDS
from rowlake.errors import CardinalityError, InternalError
from tests import engine_kernels as kernels
from tests.engine_kernels import EMPTY_ROW, FULL_ROW, NUMBERS, PIDS, TYPES, UUID


def check_results_come_home(engine: Any) -> None:
    table = engine.run(kernels.count_up, list(range(5)), NUMBERS)
    assert table.schema == NUMBERS
    assert sorted(table["n"].to_pylist()) == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]


def check_results_keep_types_that_spark_lacks(engine: Any) -> None:
    table = engine.run(kernels.all_types, [1, 2], TYPES)
    assert table.schema == TYPES
    assert table["u"].to_pylist() == [UUID.bytes, None] * 2


def check_tasks_without_rows_give_an_empty_table(engine: Any) -> None:
    assert engine.run(kernels.nothing, [1, 2], NUMBERS).equals(NUMBERS.empty_table())
    assert engine.dataframe(kernels.nothing, [1, 2], NUMBERS).count() == 0


def check_every_task_gets_a_spark_task(engine: Any) -> None:
    frame = engine.dataframe(kernels.which_process, list(range(6)), PIDS)
    assert frame.toArrow()["task"].to_pylist() == list(range(6))


def check_large_payloads_arrive_whole(engine: Any) -> None:
    tasks = [_noise(200_000 + number) for number in range(12)]
    table = engine.run(kernels.size_of, tasks, NUMBERS)
    assert sorted(table["n"].to_pylist()) == [200_000 + number for number in range(12)]


def _noise(size: int) -> bytes:
    import random

    return random.Random(size).randbytes(size)


def check_frames_show_every_type(engine: Any) -> None:
    frame = engine.dataframe(kernels.all_types, [1], TYPES)
    full, empty = (row.asDict(recursive=True) for row in frame.drop("tstz").collect())
    expected = {**dict.fromkeys(TYPES.names), **FULL_ROW}
    del expected["tstz"]
    text = {"u": str(UUID), "s": {"u": str(UUID)}, "m": {"k": 1.5}}
    if not engine.has_time:
        text["t"] = "01:02:03.000004"
    expected |= text
    assert full.pop("dec") == expected.pop("dec")
    assert {k: bytes(v) if isinstance(v, bytearray) else v for k, v in full.items()} == expected
    assert {key for key, value in empty.items() if value is not None} == set(EMPTY_ROW)
    instant = frame.selectExpr("unix_micros(tstz) AS micros").first()["micros"]
    assert instant == int(FULL_ROW["tstz"].timestamp()) * 1_000_000 + 10


def check_frames_tell_nullability_and_comments(engine: Any) -> None:
    column = engine.dataframe(kernels.all_types, [1], TYPES).schema["i"]
    assert not column.nullable
    assert column.metadata.get("comment") == "a number"


def check_frames_can_be_queried(engine: Any) -> None:
    frame = engine.dataframe(kernels.count_up, list(range(4)), NUMBERS)
    assert frame.where("n >= 100").count() == 4
    assert frame.selectExpr("sum(n)").first()[0] == 2 * (0 + 1 + 2 + 3) + 400
    assert frame.unionByName(frame).distinct().count() == 8


def check_consuming_sees_every_row(engine: Any) -> None:
    frame = engine.spark.range(0, 1000, 1, 3)
    table = engine.consume(frame, kernels.count_rows, NUMBERS)
    assert table.num_rows == 3
    assert sum(table["n"].to_pylist()) == 1000


def check_arrow_goes_in_and_comes_back(engine: Any) -> None:
    table = pa.Table.from_pylist([FULL_ROW, EMPTY_ROW], TYPES)
    frame = engine.from_arrow(table)
    assert frame.count() == 2
    assert frame.first()["u"] == str(UUID)
    assert [field.name for field in frame.schema.fields] == TYPES.names


def check_errors_come_home_as_they_were_raised(engine: Any) -> None:
    with pytest.raises(CardinalityError, match=r"Two rows match in task \d\.") as caught:
        engine.run(kernels.ambiguous, [1, 2], NUMBERS)
    assert caught.value.keys == ((17, "a"),)
    with pytest.raises(CardinalityError, match="Two rows match") as caught:
        engine.consume(engine.spark.range(3), kernels.ambiguous_rows, NUMBERS)
    assert caught.value.keys == ((17, "a"),)


def check_faults_are_internal_errors(engine: Any) -> None:
    with pytest.raises(InternalError, match="ZeroDivisionError") as caught:
        engine.run(kernels.broken, [1, 2], NUMBERS)
    assert "\tat " not in str(caught.value)


def check_errors_of_the_query_stay_spark_errors(engine: Any) -> None:
    from pyspark.errors import PySparkException

    frame = engine.spark.range(3).selectExpr("raise_error('mine') AS x")
    with pytest.raises(PySparkException, match="mine"):
        engine.consume(frame, kernels.count_rows, NUMBERS)


def check_partial_kernels_travel(engine: Any) -> None:
    table = engine.run(partial(kernels.size_of), ["abc", "de"], NUMBERS)
    assert sorted(table["n"].to_pylist()) == [2, 3]


def check_progress_is_heard(engine: Any) -> None:
    heard: list[Any] = []
    # Longer than a classic session's progress is polled; a Connect server tells it too rarely.
    tasks = [POLL_SECONDS * 2] * 4
    engine.run(kernels.pause, tasks, NUMBERS, label="x", progress=heard.append)
    assert heard or is_remote(engine.spark)
    assert {one.label for one in heard} <= {"x"}
    assert {one.total for one in heard} <= {0, 4}
    assert [one for one in heard if not 0 <= one.done <= 4] == []
    assert [one.done for one in heard] == sorted(one.done for one in heard)


def check_rows_without_columns_are_counted(engine: Any) -> None:
    frame = engine.dataframe(kernels.bare_rows, [3, 4], pa.schema([]))
    assert frame.count() == 7


def check_slots_are_known(engine: Any) -> None:
    assert engine.slots >= 1


CHECKS = [found for name, found in sorted(globals().items()) if name.startswith("check_")]
