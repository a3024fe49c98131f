from __future__ import annotations

import uuid

import pytest
from pyspark.errors import AnalysisException

from rowlake.engine.spark import Engine
from tests import source_planner
from tests.spark_session import having


@pytest.fixture
def reader(spark):
    assert Engine(spark, source_planner=source_planner.plan).spark is spark
    return spark.read.format("rowlake")


def test_rows_come_in_spark_types(reader):
    frame = reader.option("tasks", 3).load()
    assert frame.count() == 30
    assert frame.where("n = 17").first().u == str(uuid.UUID(int=17))


def test_queries_of_one_frame_do_not_prune_each_other(reader, spark):
    with having(spark, {"spark.sql.python.filterPushdown.enabled": "true"}):
        frame = reader.option("tasks", 5).load()
        assert [row.n for row in frame.where("n = 17").collect()] == [17]
        assert frame.count() == 50
        assert frame.where("n = 17").union(frame).count() == 51
        assert frame.where("n = 17").union(frame.where("n = 18")).count() == 2


def test_no_task_is_no_row(reader):
    assert reader.option("tasks", 0).load().count() == 0


def test_the_planners_error_reaches_the_user(reader):
    with pytest.raises(AnalysisException, match=r"There is no table ns\.t"):
        reader.load()
