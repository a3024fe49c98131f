"""Iceberg's Java runtime and Delta on Spark in one session: readers of both trees of a table."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.parts.delta_spark import DELTA_JARS, DELTA_SETTINGS
from tests.parts.jars import SPARK_RUNTIME, fetch_jar
from tests.plain_values import in_order

if TYPE_CHECKING:
    from collections.abc import Sequence

# (format, folder, option, its value).
Look = tuple[str, str, str, str]


def read_by_both(looks: Sequence[Look]) -> list[Any]:
    """Return the rows that each look finds, or the text of the error; in a process of its own."""
    command = [sys.executable, "-m", "tests.parts.both_spark"]
    done = subprocess.run(
        command, input=json.dumps(looks), capture_output=True, text=True, timeout=380
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _rows(spark: Any, look: Look) -> Any:
    kind, folder, option, value = look
    try:
        found = spark.read.format(kind).option(option, value).load(folder).collect()
    except Exception as error:  # noqa: BLE001 - the test says what it means
        return str(error)[:2000]
    return in_order([one.asDict(recursive=True) for one in found])


def main() -> None:
    """Read what standard input asks for."""
    from pyspark.sql import SparkSession

    looks = json.load(sys.stdin)
    jars = [fetch_jar(*one) for one in (*DELTA_JARS, SPARK_RUNTIME)]
    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(map(str, jars)))
    for key, value in DELTA_SETTINGS.items():
        builder = builder.config(key, value)
    builder = builder.config("spark.sql.codegen.wholeStage", "false")
    spark = builder.getOrCreate()
    print(json.dumps([_rows(spark, look) for look in looks]))
    spark.stop()


if __name__ == "__main__":
    main()
