from __future__ import annotations

import datetime
import uuid

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import datasource as api

from rowlake.engine.datasource import as_predicate
from rowlake.engine.spark import Engine
from rowlake.model.predicate import Leaf, Op
from tests import source_planner

ZONED = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        pa.field("u", pa.binary(16), metadata={"rowlake:type": "uuid"}),
        ("tz", pa.timestamp("us", "UTC")),
        ("ts", pa.timestamp("us")),
        ("ns", pa.timestamp("ns")),
        ("text", pa.string()),
    ]
)


@pytest.fixture
def reader(spark):
    assert Engine(spark, source_planner=source_planner.plan).spark is spark
    return spark.read.format("rowlake")


def test_rows_come_in_spark_types(reader):
    frame = reader.option("tasks", 3).load()
    assert frame.count() == 30
    assert frame.where("n = 17").first().u == str(uuid.UUID(int=17))


def test_filters_prune_tasks(reader):
    frame = reader.option("tasks", 5).load().where("n = 17")
    assert [row.n for row in frame.collect()] == [17]
    assert frame.rdd.getNumPartitions() == 1


def test_no_task_is_no_row(reader):
    assert reader.option("tasks", 5).load().where("n = 99").count() == 0


def test_the_planners_error_reaches_the_user(reader):
    with pytest.raises(AnalysisException, match=r"There is no table ns\.t"):
        reader.load()


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (api.EqualTo(("n",), 1), Leaf(("n",), Op.EQ, (1,))),
        (api.Not(api.EqualTo(("n",), 1)), Leaf(("n",), Op.NE, (1,))),
        (api.In(("n",), (1, 2)), Leaf(("n",), Op.IN, (1, 2))),
        (api.IsNull(("u",)), Leaf(("u",), Op.IS_NULL)),
        (api.IsNotNull(("u",)), Leaf(("u",), Op.NOT_NULL)),
        (api.LessThanOrEqual(("n",), 5), Leaf(("n",), Op.LE, (5,))),
        (api.StringStartsWith(("text",), "a"), Leaf(("text",), Op.STARTS_WITH, ("a",))),
        (api.EqualTo(("tz",), ZONED), Leaf(("tz",), Op.EQ, (ZONED,))),
        (api.EqualTo(("ts",), ZONED), None),
        (api.EqualTo(("ns",), ZONED.replace(tzinfo=None)), None),
        (api.EqualTo(("u",), "text"), None),
        (api.In(("n",), (1, None)), None),
        (api.EqualNullSafe(("n",), 1), None),
        (api.StringContains(("text",), "a"), None),
        (api.Not(api.StringContains(("text",), "a")), None),
        (api.EqualTo(("s", "x"), 1), None),
    ],
    ids=repr,
)
def test_only_faithful_filters_are_pushed(pushed, expected):
    assert as_predicate(pushed, SCHEMA) == expected
