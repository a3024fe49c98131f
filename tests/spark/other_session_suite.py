"""The checks of the engine and of tables in a session of another kind or version; run as a script.

    other_session_suite.py master local-cluster[2,1,2048] FOLDER [JAVA_WAREHOUSE]
    other_session_suite.py remote sc://127.0.0.1:15002 FOLDER [JAVA_WAREHOUSE]

FOLDER gets the lake; JAVA_WAREHOUSE is a Hadoop catalog's, with the tables of `JAVA_TABLES`.
Prints a line per check and, last, how many passed; leaves with 1 where one failed.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowlake
from rowlake.engine.jobs import is_remote
from rowlake.engine.session import make_session
from rowlake.engine.spark import Engine
from tests import attach_checks, engine_checks, row_level_checks, stream_checks, table_checks
from tests.spark_session import INTERPRETED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JAVA_TABLES = {2: "sessions.position_deletes", 3: "sessions.vectors"}
JAVA_ROWS = 1000
VERSION = 3


def open_session(kind: str, address: str) -> Any:
    if kind == "remote":
        from pyspark.sql import SparkSession

        return SparkSession.builder.remote(address).getOrCreate()
    small = {
        **INTERPRETED,
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "1g",
        # Drivers take these from the environment, executors do not.
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
    }
    session, _ = make_session({"spark.master": address, "spark.driver.memory": "1g", **small})
    return session


def check_rows_that_java_deleted_stay_deleted(lake: Any, name: str) -> None:
    """Iceberg's Java library deleted every tenth row."""
    kept = [number for number in range(JAVA_ROWS) if number % 10 != 3]
    found = table_checks.rows(lake, f"SELECT count(*), sum(id), max(s) FROM {name}")
    assert found == [(len(kept), sum(kept), "row 999")]
    frame = lake.table(name).df(["id"], where="id < 15")
    assert sorted(row.id for row in frame.collect()) == [each for each in kept if each < 15]


def attached(check: Callable[..., None], spark: Any, folder: str) -> None:
    """Run a check of an attached session, in a lake of its own."""
    place = Path(f"{folder}-{check.__name__}")
    with rowlake.attach(spark, str(place / "lake")) as lake:
        check(spark, lake, place)


def named_checks(
    engine: Engine, lake: Any, java: Any, folder: str
) -> Iterator[tuple[str, Callable[[], None]]]:
    for check in engine_checks.CHECKS:
        yield check.__name__, partial(check, engine)
    for check in table_checks.CHECKS:
        yield check.__name__, partial(check, lake, VERSION)
    # Staged rows are files beside the table's only where tasks run on other machines.
    if not engine.is_one_machine:
        for name, changes in row_level_checks.named_checks():
            yield name, partial(changes, lake)
    for check in stream_checks.CHECKS:
        yield check.__name__, partial(check, lake, f"{folder}-{check.__name__}")
    # A cluster of processes has the API that one process has.
    for check in attach_checks.CHECKS if is_remote(lake.spark) or engine.is_one_machine else ():
        yield check.__name__, partial(attached, check, lake.spark, folder)
    for name in JAVA_TABLES.values() if java else ():
        check = check_rows_that_java_deleted_stay_deleted
        yield f"{check.__name__} {name}", partial(check, java, name)


def passes(name: str, check: Callable[[], None]) -> bool:
    started = time.monotonic()
    try:
        check()
    except Exception:  # noqa: BLE001 - whatever it is, the other checks shall run
        traceback.print_exc()
        print(f"FAILED {name}", flush=True)
        return False
    print(f"passed {name} in {time.monotonic() - started:.1f} s", flush=True)
    return True


def main() -> int:
    kind, address, folder, *rest = sys.argv[1:]
    spark = open_session(kind, address)
    engine = Engine(spark)
    print(f"Spark {spark.version}, {engine.slots} slots", flush=True)
    lake = rowlake.connect(folder, spark=spark)
    java = rowlake.connect(rest[0], catalog="filesystem", spark=spark) if rest else None
    outcomes = [passes(name, check) for name, check in named_checks(engine, lake, java, folder)]
    lake.close()
    spark.stop()
    print(f"{sum(outcomes)} of {len(outcomes)} checks passed", flush=True)
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
