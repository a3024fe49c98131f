"""Rows of the driver as a DataFrame: answers as from Java, which is asked only when needed."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rowlake.engine.local_frame import LocalFrame
from rowlake.engine.spark import Engine

PLAIN = pa.table(
    {
        "n": pa.array([1, None, 2**40]),
        "i": pa.array([1, 2, None], pa.int32()),
        "a b": ["x", None, "ä"],
        "ok": [True, False, None],
    }
)
OTHER = pa.table(
    {
        "at": pa.array([dt.datetime(2024, 1, 2, 3, 4, 5)], pa.timestamp("us")),
        "who": pa.array([{"a": 1, "b": [1, 2]}]),
    }
)


@pytest.fixture
def engine(spark):
    return Engine(spark)


def in_java(frame: DataFrame) -> bool:
    return "_jdf" in vars(frame)


@pytest.mark.parametrize("rows", [PLAIN, PLAIN.slice(0, 0), OTHER], ids=["plain", "none", "other"])
def test_rows_are_those_that_java_gives(engine, rows):
    frame = engine.from_arrow(rows)
    assert isinstance(frame, DataFrame)
    ours, javas = frame.collect(), frame.select("*").collect()
    assert ours == javas
    assert [row.asDict(recursive=True) for row in ours] == [
        row.asDict(recursive=True) for row in javas
    ]
    assert [type(value) for row in ours for value in row] == [
        type(value) for row in javas for value in row
    ]


def test_java_hears_nothing_of_rows_that_are_only_collected(engine):
    frame = engine.from_arrow(PLAIN)
    assert isinstance(frame, LocalFrame)
    assert frame.collect()[2]["a b"] == "ä"
    assert not in_java(frame)
    assert frame.count() == 3
    assert not in_java(frame)
    assert frame.filter("i IS NOT NULL").count() < 4
    assert in_java(frame)


@pytest.mark.parametrize("truncate", [True, False, 2, 5])
@pytest.mark.parametrize("most", [1, 20])
def test_rows_are_shown_as_java_shows_them(engine, most, truncate):
    frame = engine.from_arrow(PLAIN)
    shown = frame._show_string(most, truncate)
    assert not in_java(frame)
    assert shown == frame.select("*")._show_string(most, truncate)


def test_it_does_what_a_frame_does(engine, spark, capsys):
    frame = engine.from_arrow(PLAIN)
    assert frame.columns == PLAIN.column_names
    assert frame.first() == frame.collect()[0]
    assert frame.toArrow().to_pylist() == PLAIN.to_pylist()
    assert frame.filter(frame.n == 1).union(frame.where(F.col("i") == 2)).count() == 2
    assert frame.join(frame.withColumnRenamed("a b", "c"), "n").count() == 2
    frame.createOrReplaceTempView("local_rows")
    assert spark.sql("SELECT max(n) AS most FROM local_rows").first().most == 2**40
    spark.catalog.dropTempView("local_rows")
    assert "DataFrame[n: bigint, i: int, a b: string, ok: boolean]" in repr(frame)
    frame.show()
    assert "1099511627776" in capsys.readouterr().out
    with pytest.raises(AttributeError):
        _ = frame.nothing
    assert frame.cache().count() == frame.unpersist().count() == 3
