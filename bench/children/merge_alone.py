"""Does one MERGE in a process tree of its own and reports its peak memory.

Arguments: system, warehouse, target, source. The driver, the JVM and Spark's Python workers are
counted together and apart.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import session
from bench.editors.base import MERGE
from bench.measure import Watch
from bench.processes import Tree, program_of, unshared_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

HEAP = "1g"
SMALL_JVM = {
    "spark.driver.memory": HEAP,
    "spark.driver.extraJavaOptions": f"-Xms{HEAP} -XX:+AlwaysPreTouch -XX:+UseParallelGC",
}


class PythonPeak:
    """Watches the memory of the Python processes of this tree."""

    def __init__(self) -> None:
        self.peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PythonPeak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        tree = Tree()
        while not self._done.wait(0.05):
            python = [pid for pid in tree.pids() if program_of(pid).startswith("python")]
            self.peak = max(self.peak, sum(map(unshared_bytes, python)))


def statement_runner(system: str, spark: Any, warehouse: str) -> Callable[[str, str], None]:
    if not system.startswith("rowlake"):
        ice = session.CATALOG
        return lambda target, source: spark.sql(
            MERGE.format(target=f"{ice}.{target}", source=f"{ice}.{source}")
        )
    import rowlake

    lake = rowlake.connect(warehouse=warehouse, catalog="filesystem", spark=spark)
    return lambda target, source: lake.sql(MERGE.format(target=target, source=source)).collect()


def main(system: str, warehouse: str, target: str, source: str) -> None:
    spark = session.start_spark(Path(warehouse), settings=SMALL_JVM)
    run = statement_runner(system, spark, warehouse)
    with Watch() as watch, PythonPeak() as python:
        start = time.perf_counter()
        try:
            run(target, source)
        except Exception as error:
            if type(error).__name__ != "UnsupportedFeatureError":
                raise
            print(json.dumps({"not_yet": str(error)}))
            return
        wall = time.perf_counter() - start
    said = {
        "wall_s": wall,
        "cpu_s": watch.used.cpu_s,
        "peak_bytes": watch.peak_bytes,
        "facts": {"python_bytes": python.peak},
    }
    spark.stop()
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
