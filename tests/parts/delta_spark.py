"""Delta Lake on Spark: the reference writer and reader, in a session of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.parts.jars import fetch_jar
from tests.plain_values import in_order

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DELTA_JARS = (
    ("io.delta", "delta-spark_4.1_2.13", "4.4.0"),
    ("io.delta", "delta-storage", "4.4.0"),
)
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def delta_session() -> Any:
    """Return a new session with Delta's catalog and extensions; times are UTC."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["TZ"] = "UTC"
    builder = SparkSession.builder.master("local[2]").appName("delta")
    builder = builder.config("spark.jars", ",".join(str(fetch_jar(*one)) for one in DELTA_JARS))
    for key, value in DELTA_SETTINGS.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def read_by_spark(folders: Sequence[Path]) -> list[list[dict[str, Any]]]:
    """Return the rows that Delta on Spark reads of some tables, in plain values and in order."""
    return run_by_spark([f"SELECT * FROM delta.`{folder}`" for folder in folders])


def run_by_spark(statements: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Run statements with Delta on Spark; return the rows of each, in plain values and in order.

    They run in a process of its own, since a process has one JVM.
    """
    command = [sys.executable, "-m", "tests.parts.delta_spark", *statements]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[list[dict[str, Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run the statements of the command line and print their rows."""
    spark = delta_session()
    found = [
        [one.asDict(recursive=True) for one in spark.sql(text).collect()] for text in sys.argv[1:]
    ]
    print(json.dumps([in_order(some) for some in found]))
    spark.stop()


if __name__ == "__main__":
    main()
