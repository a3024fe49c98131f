"""Delta Lake on Spark: the reference writer and reader, in a process of its own.

A process has one JVM, and Delta wants Spark's own catalog: so it cannot be the session of the other
tests. It starts with the first statement and answers until the tests end, since a start costs more
than most tests. Each call has a session of its own: settings and views of one are not in the next.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from tests.parts.jars import fetch_jar
from tests.plain_values import in_order
from tests.spark_session import QUICK

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
    **QUICK,
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


def read_by_spark(folders: Sequence[Path | str]) -> list[list[dict[str, Any]]]:
    """Return the rows that Delta on Spark reads of some tables, in plain values and in order."""
    return run_by_spark([f"SELECT * FROM delta.`{folder}`" for folder in folders])


def run_by_spark(statements: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Run statements with Delta on Spark; return the rows of each, in plain values and in order."""
    if not _running:
        _running.append(_Child.start())
    try:
        answer = _running[0].ask(list(statements))
    except BaseException:  # also a test's timeout: an answer that comes later is no one's
        _running.pop().stop()
        raise
    assert "error" not in answer, answer["error"]
    found: list[list[dict[str, Any]]] = answer["rows"]
    return found


@dataclass(frozen=True)
class _Child:
    """The process that runs statements: a line of JSON in, a line of JSON out."""

    process: subprocess.Popen[str]
    log: IO[str]

    @classmethod
    def start(cls) -> _Child:
        for one in DELTA_JARS:
            fetch_jar(*one)  # here, where a jar that cannot be had skips the test
        log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the process
        command = [sys.executable, "-m", "tests.parts.delta_spark"]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        return cls(process, log)

    def ask(self, statements: list[str]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(statements), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise AssertionError(f"Delta on Spark ended: {self.log.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.log.close()


_running: list[_Child] = []
atexit.register(lambda: [one.stop() for one in _running])


def main() -> None:
    """Answer each line of statements with a line of their rows, until there are no more lines."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Java prints is no answer
    spark = delta_session()
    for line in sys.stdin:
        print(json.dumps(_answer(spark.newSession(), json.loads(line))), file=answers, flush=True)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def _answer(spark: Any, statements: list[str]) -> dict[str, Any]:
    found = []
    for text in statements:
        try:
            rows = [one.asDict(recursive=True) for one in spark.sql(text).collect()]
        except Exception as error:  # noqa: BLE001 - told to the test
            return {"error": f"{text}: {error}"[:3000]}
        found.append(in_order(rows))
    return {"rows": found}


if __name__ == "__main__":
    main()
