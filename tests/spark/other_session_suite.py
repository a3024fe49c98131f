"""The engine's checks in a session of another kind or version; run as a script.

    other_session_suite.py master local-cluster[2,1,2048]
    other_session_suite.py remote sc://127.0.0.1:15002

Prints a line per check and, last, how many passed; leaves with 1 where one failed.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from rowlake.engine.session import make_session
from rowlake.engine.spark import Engine
from tests.engine_checks import CHECKS


def open_session(kind: str, address: str) -> Any:
    if kind == "remote":
        from pyspark.sql import SparkSession

        return SparkSession.builder.remote(address).getOrCreate()
    small = {"spark.sql.shuffle.partitions": "2", "spark.executor.memory": "1g"}
    session, _ = make_session({"spark.master": address, "spark.driver.memory": "1g", **small})
    return session


def passes(check: Any, engine: Engine) -> bool:
    try:
        check(engine)
    except Exception:  # noqa: BLE001 - whatever it is, the other checks shall run
        traceback.print_exc()
        print(f"FAILED {check.__name__}", flush=True)
        return False
    print(f"passed {check.__name__}", flush=True)
    return True


def main() -> int:
    spark = open_session(*sys.argv[1:3])
    engine = Engine(spark)
    print(f"Spark {spark.version}, {engine.slots} slots", flush=True)
    passed = sum(passes(check, engine) for check in CHECKS)
    spark.stop()
    print(f"{passed} of {len(CHECKS)} checks passed", flush=True)
    return 0 if passed == len(CHECKS) else 1


if __name__ == "__main__":
    sys.exit(main())
