"""`Table.df()`: counting and collecting all of it gives what Spark gives, without its rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from rowlake.engine.spark import Engine
from rowlake.engine.table_frame import TableFrame
from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import Leaf, Op
from tests.lakes import make_lake

COLUMNS = (
    "id BIGINT, i INT, small DOUBLE, f FLOAT, ok BOOLEAN, d DECIMAL(9, 2), day DATE, "
    "at TIMESTAMP, local TIMESTAMP_NTZ, bytes BINARY, text STRING"
)


def row(number: int) -> dict[str, object]:
    if number % 7 == 3:
        return {"id": number}
    return {
        "id": number,
        "i": number,
        "small": number / 3,
        "f": float(number),
        "ok": number % 2 == 0,
        "d": Decimal(number) / 4,
        "day": dt.date(2024, 1, 1) + dt.timedelta(days=number),
        "at": dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.timezone.utc) + dt.timedelta(hours=number),
        "local": dt.datetime(2024, 3, 31, 0, 30) + dt.timedelta(hours=number),
        "bytes": bytes([number]),
        "text": f"ä {number}",
    }


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with make_lake(tmp_path_factory.mktemp("frames") / "lake", engine=Engine(spark)) as opened:
        opened.create_table("t", COLUMNS, properties={"format-version": "3"})
        opened.table("t").append([row(number) for number in range(40)])
        opened.table("t").delete("id IN (5, 6, 7)", mode="merge-on-read")
        opened.table("t").append([row(number) for number in range(40, 50)])
        opened.create_table("empty", COLUMNS)
        opened.create_table("nested", "id BIGINT, at STRUCT<x: TIMESTAMP>, tags ARRAY<STRING>")
        opened.table("nested").append([{"id": 1, "at": {"x": row(1)["at"]}, "tags": ["a"]}])
        yield opened


def sparks_own(frame):
    """Return the same rows as a plain DataFrame, which takes no shortcut."""
    plain = frame.select("*")
    assert not isinstance(plain, TableFrame)
    return plain


@pytest.mark.parametrize("name", ["t", "empty", "nested"])
def test_rows_come_as_spark_gives_them(lake, name):
    frame = lake.table(name).df()
    plain = sparks_own(frame)
    assert frame.count() == plain.count()
    order = "id"
    ours, theirs = frame.toArrow().sort_by(order), plain.toArrow().sort_by(order)
    assert ours.schema.equals(theirs.schema) and ours.equals(theirs)
    pd.testing.assert_frame_equal(
        frame.toPandas().sort_values(order, ignore_index=True),
        plain.toPandas().sort_values(order, ignore_index=True),
    )


def test_no_spark_job_counts_or_collects_a_small_table(lake, spark):
    frame = lake.table("t").df()
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))
    assert frame.count() == 47
    assert frame.toArrow().num_rows == 47
    assert len(frame.toPandas()) == 47
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup(None)) == before


def test_columns_filters_and_snapshots_are_kept(lake):
    table = lake.table("t")
    first = table.snapshots()[0].snapshot_id
    assert table.df(snapshot_id=first).count() == 40
    found = table.df(columns=["text", "id"], where=Leaf(("id",), Op.LT, (10,)))
    assert found.count() == 7
    assert found.toArrow().column_names == ["text", "id"]
    assert sorted(found.toPandas()["id"]) == [0, 1, 2, 3, 4, 8, 9]


def test_a_frame_keeps_its_snapshot(lake):
    lake.create_table("moving", "id BIGINT")
    table = lake.table("moving")
    table.append([{"id": 1}])
    frame = table.df()
    table.append([{"id": 2}])
    assert (frame.count(), frame.toArrow().num_rows, len(frame.collect())) == (1, 1, 1)


def test_errors_of_rows_are_told_as_rowlakes(lake):
    wrong = lake.sql("SELECT CAST(text AS INT) AS n FROM t")
    with pytest.raises(InvalidStatementError):
        wrong.toPandas()


def test_what_is_made_of_it_is_sparks(lake):
    frame = lake.table("t").df()
    assert frame.filter("id < 3").count() == 3
    assert frame.groupBy("ok").count().count() == 3
    assert isinstance(frame.toArrow(), pa.Table)
