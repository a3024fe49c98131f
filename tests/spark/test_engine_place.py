"""Small work runs in the driver, everything else as Spark tasks; results say which."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest

import rowlake
from rowlake.engine.local import MAX_BYTES, MAX_FILES
from rowlake.model.work import DRIVER, DRIVER_AND_SPARK, SPARK

ROWS = 400
PARTS = 4


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE place")
    yield found
    found.close()


def rows(count: int, size_in_bytes: int) -> pa.Table:
    """Return rows whose bytes cannot be compressed."""
    made = random.Random(count)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "part": pa.array([number % PARTS for number in range(count)], pa.int32()),
            "data": [made.randbytes(size_in_bytes // count) for _ in range(count)],
        }
    )


def filled(lake: Any, name: str, given: pa.Table) -> Any:
    lake.sql(f"CREATE TABLE {name} (id bigint, part int, data binary) PARTITIONED BY (part)")
    table = lake.table(name)
    table.append(given)
    return table


@pytest.fixture(scope="module")
def large(lake):
    return filled(lake, "place.large", rows(ROWS, MAX_BYTES + (1 << 20)))


@pytest.fixture(scope="module")
def small(lake):
    return filled(lake, "place.small", rows(ROWS, 1 << 20))


def merged(table: Any) -> Any:
    """Return a MERGE that touches every part."""
    given = [{"id": number, "part": number, "data": b"new"} for number in range(PARTS)]
    return table.merge(given, on=["id", "part"]).when_matched_update({"data": "s.data"})


def counted(spark: Any) -> tuple[int, int]:
    """Return the jobs and tasks that the session has run, by Spark's own count."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(False)
    tasks = sum(executors.apply(number).totalTasks() for number in range(executors.size()))
    return context.statusStore().jobsList(None).size(), tasks


def test_a_merge_over_more_than_the_limit_runs_as_spark_tasks(spark, large):
    assert spark.sparkContext.master.startswith("local[")
    before = counted(spark)
    result = merged(large).execute()
    jobs, tasks = (now - then for now, then in zip(counted(spark), before, strict=True))
    assert result.rows_updated == PARTS
    assert (result.ran_on, result.spark_jobs, result.spark_tasks) == (SPARK, jobs, tasks)
    assert jobs == 1
    assert tasks > 1
    assert re.search(rf"^spark tasks +{tasks}$", str(result), re.MULTILINE)


def test_a_small_merge_runs_no_spark_job(spark, small):
    before = counted(spark)
    result = merged(small).execute()
    assert result.rows_updated == PARTS
    assert (result.ran_on, result.spark_jobs, result.spark_tasks) == (DRIVER, 0, 0)
    assert counted(spark) == before


def test_more_files_than_the_driver_takes_run_as_spark_tasks(lake):
    lake.sql("CREATE TABLE place.many (id bigint, part int) PARTITIONED BY (id)")
    table = lake.table("place.many")
    table.append([{"id": number, "part": 0} for number in range(MAX_FILES + 1)])
    few = table.update({"part": "1"}, where=f"id < {MAX_FILES}")
    many = table.update({"part": "2"}, where="part < 3")
    assert (few.ran_on, many.ran_on) == (DRIVER, SPARK)
    assert many.spark_tasks < MAX_FILES


def test_a_plan_says_where_and_why(large, small):
    here, there = merged(small).explain(), merged(large).explain()
    assert (here.ran_on, here.spark_jobs, here.spark_tasks) == (DRIVER, 0, 0)
    assert (there.ran_on, there.spark_jobs) == (SPARK, 1)
    assert there.spark_tasks > 1
    limit = f"(the driver takes up to {MAX_FILES} of 33.6 MB)"
    assert re.search(rf"runs on driver: \d data files of 1\.\d MB {re.escape(limit)}", str(here))
    counts = f"{there.spark_tasks} tasks in 1 job, {len(there.files)} data files of 3"
    assert f"runs on spark: {counts}" in str(there)
    assert limit in str(there)


def test_a_source_that_spark_reads_is_part_of_the_result(spark, small):
    source = spark.range(PARTS).selectExpr("id", "cast(id AS int) AS part")
    before = counted(spark)
    merge = small.merge(source, on=["id"]).when_matched_update({"part": "s.part"})
    result = merge.execute()
    jobs, tasks = (now - then for now, then in zip(counted(spark), before, strict=True))
    found = (result.ran_on, result.spark_jobs, result.spark_tasks)
    assert found == (DRIVER_AND_SPARK, jobs, tasks)


def test_writes_and_maintenance_say_where_they_ran(spark, lake, large, small):
    frame = spark.range(3).selectExpr("id + 1000 AS id", "0 AS part", "binary('x') AS data")
    assert small.append(frame).ran_on == SPARK
    assert small.append(rows(3, 30)).ran_on == DRIVER
    assert small.delete("id >= 1000").ran_on == DRIVER
    options = {"rewrite-all": "true"}
    assert small.rewrite_data_files(options=options).ran_on == DRIVER
    before = counted(spark)
    report = large.rewrite_data_files(options=options)
    jobs, tasks = (now - then for now, then in zip(counted(spark), before, strict=True))
    assert (report.ran_on, report.spark_jobs, report.spark_tasks) == (SPARK, jobs, tasks)
    assert large.compute_table_stats(columns=["id"]).ran_on == SPARK


def test_shuffles_are_counted_as_spark_counts_them(spark, lake):
    lake.sql("CREATE TABLE place.spread (id bigint, part int) PARTITIONED BY (part)")
    frame = spark.range(0, 1000, 1, 3).selectExpr("id", f"cast(id % {PARTS} AS int) AS part")
    before = counted(spark)
    result = lake.table("place.spread").append(frame)
    jobs, tasks = (now - then for now, then in zip(counted(spark), before, strict=True))
    assert (result.ran_on, result.spark_jobs, result.spark_tasks) == (SPARK, jobs, tasks)
    assert jobs > 1
