"""The same job files on Iceberg's Java runtime and on an attached lake leave the same rows."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

import rowlake
from tests.spark_session import ROOT

JOBS = sorted(path.stem for path in (ROOT / "tests" / "jobs").glob("[a-z]*.py"))
pytestmark = pytest.mark.timeout(300)


def run_job(spark: Any, name: str) -> dict[str, tuple[list, list]]:
    """Run a job; return the columns and rows of every table that it leaves, and drop them."""
    runpy.run_path(str(ROOT / "tests" / "jobs" / f"{name}.py"), run_name="__main__")
    space = f"job_{name}"
    names = [row.tableName for row in spark.sql(f"SHOW TABLES IN {space}").collect()]
    left = {}
    for table in sorted(names):
        found = spark.table(f"{space}.{table}")
        fields = [(field.name, field.dataType.simpleString()) for field in found.schema.fields]
        left[table] = fields, sorted(map(repr, found.collect()))
    for table in names:
        spark.sql(f"DROP TABLE {space}.{table}")
    return left


@pytest.mark.parametrize("name", JOBS)
def test_a_job_leaves_the_same_rows(spark, java_catalog, tmp_path, name):
    spark.catalog.setCurrentCatalog(java_catalog)
    # Sessions of foreachBatch do not inherit the current catalog, but they do this.
    spark.conf.set("spark.sql.defaultCatalog", java_catalog)
    try:
        expected = run_job(spark, name)
    finally:
        spark.conf.unset("spark.sql.defaultCatalog")
        spark.catalog.setCurrentCatalog("spark_catalog")
    lake = rowlake.attach(spark, str(tmp_path / "lake"))
    try:
        assert run_job(spark, name) == expected
    finally:
        lake.close()
    assert expected
    assert all(rows for _, rows in expected.values())
