"""`rowlake.attach`: Spark's own API on lake tables; the checks of a classic session.

`tests/attach_checks.py` has those that run in Connect sessions too.
"""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import rowlake
from rowlake.attached.session import AttachedLake
from rowlake.engine.attachments import registry
from tests import attach_checks


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    attached = rowlake.attach(spark, str(tmp_path_factory.mktemp("attached")))
    yield attached
    attached.close()


@pytest.mark.parametrize("check", attach_checks.CHECKS, ids=lambda check: check.__name__)
def test_in_a_classic_session(spark, lake, tmp_path, check):
    check(spark, lake, tmp_path)


def test_a_session_without_a_lake_is_sparks(spark, lake):
    apart = spark.newSession()
    with pytest.raises(AnalysisException):
        apart.sql("SELECT * FROM attached.nowhere")
    assert type(apart.read).__name__ == "DataFrameReader"
    same = SparkSession(spark.sparkContext, spark._jsparkSession)
    assert same is not spark
    assert type(same.read).__name__ == "LakeDataFrameReader"


def test_statements_on_sparks_own_tables_raise_sparks_errors(spark, lake):
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM neither.here")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("neither.here")
    with pytest.raises((ParseException, rowlake.InvalidStatementError)):
        spark.sql("SELECT * FROM (SELECT 1")


def test_tables_of_another_catalog_stay_that_catalogs(spark, lake, java_catalog):
    name = f"{java_catalog}.beside.t"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {java_catalog}.beside")
    spark.sql(f"CREATE TABLE {name} (id bigint) USING iceberg")
    spark.sql(f"INSERT INTO {name} VALUES (1), (2), (3)")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    spark.range(7, 8).writeTo(name).append()
    source = spark.range(1, 2)
    source.mergeInto(name, F.expr("t.id") == source.id).whenMatched().delete().merge()
    assert [row.id for row in spark.table(name).orderBy("id").collect()] == [3, 7]
    spark.range(9).write.mode("overwrite").saveAsTable(name)
    assert spark.catalog.tableExists(name)
    assert not lake.exists((java_catalog, "beside", "t"))
    spark.sql(f"DROP TABLE {name}")
    assert not spark.catalog.tableExists(name)


def test_detaching_puts_spark_back(spark, lake, tmp_path):
    wrapped = {name: vars(SparkSession)[name] for name in ("sql", "table", "read", "catalog")}
    lake.detach()
    try:
        for name, each in wrapped.items():
            assert vars(SparkSession)[name] is not each
        assert SparkSession.sql.__module__ == "pyspark.sql.session"
        assert type(spark.read).__name__ == "DataFrameReader"
        assert type(spark.catalog).__name__ == "Catalog"
        lake.detach()  # nothing to do any more
        assert lake.tables() is not None
        first = rowlake.attach(spark, str(tmp_path / "first"))
        second = rowlake.attach(spark, str(tmp_path / "second"))
        second.create_namespace("only_here")
        first.close()  # its place was taken: the second lake stays attached
        assert spark.catalog.databaseExists("only_here")
        second.close()
        assert type(spark.read).__name__ == "DataFrameReader"
    finally:
        attachment = registry.attach(spark, AttachedLake(lake))
        lake.on_detach(lambda: registry.detach(attachment))
