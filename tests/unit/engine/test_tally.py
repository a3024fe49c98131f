from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest

from rowlake.engine.spark import Engine
from rowlake.engine.tally import is_tallied, note, says_where_it_ran, tallied, untallied
from rowlake.model.report import Report
from rowlake.model.work import DRIVER, DRIVER_AND_SPARK, SPARK, Work

OUTPUT = pa.schema([("n", pa.int64())])


def ones(task):
    yield pa.RecordBatch.from_pydict({"n": [task]}, OUTPUT)


@dataclass(frozen=True)
class Counted(Report):
    files: int = 0


@pytest.mark.parametrize(
    ("work", "ran_on"),
    [
        (Work(), DRIVER),
        (Work(driver_tasks=2), DRIVER),
        (Work(spark_jobs=1, spark_tasks=4), SPARK),
        (Work(driver_tasks=1, spark_jobs=1, spark_tasks=4), DRIVER_AND_SPARK),
    ],
)
def test_work_is_named_after_where_its_tasks_ran(work, ran_on):
    assert work.ran_on == ran_on


def test_tasks_in_the_driver_are_counted():
    with tallied() as tally:
        Engine().run(ones, [1, 2, 3], OUTPUT, size_in_bytes=1)
    assert tally.work == Work(driver_tasks=3)


def test_tallies_nest():
    with tallied() as outer:
        note(Work(spark_jobs=1, spark_tasks=2))
        with tallied() as inner:
            note(Work(driver_tasks=1))
    note(Work(driver_tasks=100))
    assert inner.work == Work(driver_tasks=1)
    assert outer.work == Work(1, 1, 2)
    assert not is_tallied()


def test_work_beside_an_operation_is_not_the_operations():
    with tallied() as tally, untallied():
        assert not is_tallied()
        note(Work(driver_tasks=1))
    assert tally.work == Work()


def test_operations_in_threads_do_not_see_each_others_work():
    meeting = threading.Barrier(2, timeout=10)

    def operate(tasks: int) -> Work:
        with tallied() as tally:
            meeting.wait()
            note(Work(driver_tasks=tasks))
            meeting.wait()
        return tally.work

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(operate, [1, 2])) == [Work(driver_tasks=1), Work(driver_tasks=2)]


def test_threads_of_one_operation_add_to_one_tally():
    with tallied() as tally, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: tally.add(Work(driver_tasks=1)), range(500)))
    assert tally.work.driver_tasks == 500


def test_a_report_says_where_its_verb_ran():
    @says_where_it_ran
    def verb(files: int) -> Counted:
        note(Work(spark_jobs=2, spark_tasks=1_234))
        return Counted(files)

    report = verb(7)
    assert report == Counted(7, ran_on=SPARK, spark_jobs=2, spark_tasks=1_234)
    assert list(report.to_dict()) == ["files", "ran_on", "spark_jobs", "spark_tasks"]
    assert str(report).splitlines() == [
        "files        7",
        "ran on       spark",
        "spark jobs   2",
        "spark tasks  1,234",
    ]
    assert "<td>1,234</td>" in report._repr_html_()
