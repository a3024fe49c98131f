"""The one Spark session of a test run: rowlake's own settings, beside Iceberg's Java runtime.

Tests of Spark and of interop share it, since a process has one JVM. Where the runtime's jar is at
hand, the catalog `java` is Iceberg's own HadoopCatalog on a folder of this run (`java_warehouse`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.parts.jars import SPARK_RUNTIME, fetch_jar
from tests.parts.require import skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
# A handful of rows does not pay for plans that are compiled.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false"}
# Nor for shuffles into several tasks.
QUICK = {
    **INTERPRETED,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def worker_environment() -> dict[str, str]:
    """Return the environment in which Python workers find rowlake's tests."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def iceberg_settings(warehouse: Path) -> dict[str, str]:
    """Return the settings of Iceberg's Java runtime; none where its jar cannot be had."""
    import pyspark

    if not pyspark.__version__.startswith("4.1."):
        return {}
    try:
        jar = fetch_jar(*SPARK_RUNTIME)
    except pytest.skip.Exception:
        return {}
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    return {
        "spark.jars": str(jar),
        "spark.sql.extensions": extensions,
        "spark.sql.catalog.java": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.java.type": "hadoop",
        "spark.sql.catalog.java.warehouse": str(warehouse),
        # Both libraries write the same tables, so Java must look at them anew for each statement.
        "spark.sql.catalog.java.cache-enabled": "false",
        # As Spark's own catalog has it.
        "spark.sql.catalog.java.default-namespace": "default",
    }


@contextmanager
def having(spark: Any, wanted: dict[str, str]) -> Iterator[None]:
    """Have settings in the session for the block."""
    before = {key: spark.conf.get(key, None) for key in wanted}
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


@pytest.fixture(scope="session")
def java_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog `java`."""
    return tmp_path_factory.mktemp("java-warehouse")


@pytest.fixture(scope="session")
def spark(java_warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session; a task may fail twice before its job does."""
    from rowlake.engine.session import make_session

    os.environ.update(worker_environment())
    settings = {
        "spark.master": "local[2, 3]",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        **INTERPRETED,
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark-warehouse")),
        **iceberg_settings(java_warehouse),
    }
    session, _ = make_session(settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def java_catalog(spark: Any) -> str:
    """The name of the catalog that Iceberg's Java runtime serves; skips where it is not there."""
    if not spark.conf.get("spark.sql.catalog.java", ""):
        skip_or_fail("Iceberg's Java runtime for this Spark is not there")
    return "java"
