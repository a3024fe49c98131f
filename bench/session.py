"""The one Spark session of a run, with the peers' jars and their documented best settings.

All Spark systems share it, and with it a warm JVM, its memory and its cores.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.parquet import SESSION_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = Path(__file__).resolve().parent / ".cache" / "ivy"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
PACKAGES = [ICEBERG, DELTA]
STAMP = "resolved.txt"
CATALOG = "ice"
# Two cores, as threads of the driver's JVM or as two executors of their own.
LOCAL, CLUSTER = "local[2]", "local-cluster[2,1,3072]"

ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "8g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.enabled": "true",
    **SESSION_SETTINGS,
    # Without the checksum file that Hadoop's local file system keeps beside each file.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # Listings of orphan removal; by default up to 10 000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.extensions": ICEBERG_EXTENSION,
    f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
    f"spark.sql.catalog.{CATALOG}.type": "hadoop",
    # Named, since only a FileIO that the catalog makes itself gets the catalog's properties.
    f"spark.sql.catalog.{CATALOG}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
    f"spark.sql.catalog.{CATALOG}.io.manifest.cache-enabled": "true",
}
STORAGE_PARTITIONED_JOINS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
DELTA_SETTINGS = {
    "spark.sql.extensions": f"{ICEBERG_EXTENSION},{DELTA_EXTENSION}",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}


def start_spark(
    java_warehouse: Path,
    *,
    with_delta: bool = False,
    settings: dict[str, str] | None = None,
    master: str = LOCAL,
) -> SparkSession:
    """Start the session on two cores; Iceberg's tables live in a Hadoop catalog there."""
    together = {
        **SETTINGS,
        **STORAGE_PARTITIONED_JOINS,
        **(DELTA_SETTINGS if with_delta else {}),
        **package_settings(JARS, PACKAGES),
        f"spark.sql.catalog.{CATALOG}.warehouse": java_warehouse.as_uri(),
        **(settings or {}),
    }
    spark = _start(together, master)
    (JARS / STAMP).write_text("\n".join(PACKAGES))
    return spark


def start_plain_spark() -> SparkSession:
    """Start a session without any peer."""
    return _start({key: value for key, value in SETTINGS.items() if not _of_a_peer(key)})


def _of_a_peer(key: str) -> bool:
    return key == "spark.sql.extensions" or key.startswith("spark.sql.catalog.")


def _start(settings: dict[str, str], master: str = LOCAL) -> SparkSession:
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        raise RuntimeError("a Spark session without the bench's settings is already there")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("rowlake bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def package_settings(folder: Path, packages: list[str]) -> dict[str, str]:
    """Let Spark resolve packages into the folder once, and use the jars from there after that.

    The stamp, written after a start that worked, names the packages that the jars stand for.
    """
    stamp = folder / STAMP
    jars = sorted((folder / "jars").glob("*.jar"))
    if jars and stamp.exists() and stamp.read_text() == "\n".join(packages):
        return {"spark.jars": ",".join(str(jar) for jar in jars)}
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.jars.packages": ",".join(packages),
        "spark.jars.ivy": str(folder),
        # A local Maven repository that has a POM without its jar would make Ivy give up.
        "spark.driver.extraJavaOptions": f"-Duser.home={folder}",
    }


def spark_counters(spark: SparkSession) -> dict[str, float]:
    """Return Spark's counters since it started: jobs, tasks, bytes shuffled."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(False)
    found = [executors.apply(number) for number in range(executors.size())]
    return {
        # The status store forgets old jobs, the scheduler's own number only grows.
        "spark_jobs": float(context.dagScheduler().numTotalJobs()),
        "spark_tasks": float(sum(e.totalTasks() for e in found)),
        "shuffled_bytes": float(sum(e.totalShuffleWrite() for e in found)),
    }
