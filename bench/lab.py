"""What the cases of one run share: options, data, one Spark session, the peers.

Everything is created on first use, so that a case without Spark starts none.
"""

from __future__ import annotations

import fcntl
import shutil
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bench import data, session
from bench.java_core import IcebergCore
from bench.tables import COPIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bench.options import Options

ROOT = Path(__file__).resolve().parent
CACHE = ROOT / ".cache"
# After so long a run of everything takes the least rounds, and then leaves the other cases out, to
# end in 25 minutes. A figure of fewer samples would decide nothing.
LATE_S, LEAST_ROUNDS = 12 * 60, 3
OVER_S = 22 * 60


class Lab:
    """The room in which all systems work."""

    def __init__(self, options: Options, cache: Path = CACHE) -> None:
        self.options = options
        self.cache = cache
        self.started = time.monotonic()
        self.most_rounds: int | None = None
        self.java_warehouse = cache / "java"
        self.scratch = cache / "scratch"
        self._lock = only_run(cache)
        self._clear()
        self.scratch.mkdir(parents=True)
        self.warmed: set[str] = set()
        self.shown: set[str] = set()
        self.master = session.LOCAL
        self._peers: dict[str, Any] = {}
        self._closed: dict[str, dict[str, str]] = {}

    @cached_property
    def spark(self) -> SparkSession:
        return session.start_spark(
            self.java_warehouse, with_delta=self.options.wants_delta, master=self.master
        )

    @cached_property
    def core(self) -> IcebergCore:
        return IcebergCore(self.spark)

    @property
    def has_spark(self) -> bool:
        return "spark" in self.__dict__

    def counters(self) -> dict[str, float]:
        """Return Spark's running counters; none where no session was needed yet."""
        return session.spark_counters(self.spark) if self.has_spark else {}

    def data(self, rows: int | None = None) -> Path:
        """Return the folder of the bench data with this many rows (all, when not said)."""
        return data.store_sales(rows or self.options.total_rows, self.cache)

    def source(self, rows: int | None = None) -> DataFrame:
        """Return the bench data as a Spark DataFrame over its Parquet files."""
        from bench.peers.base import SPARK_SCHEMA

        return self.spark.read.schema(SPARK_SCHEMA).parquet(str(self.data(rows)))

    def peer(self, name: str) -> Any:
        """Return a system by its name, made once."""
        from bench.peers import PEERS

        if name not in self._peers:
            self._peers[name] = PEERS[name](self)
        return self._peers[name]

    def editor(self, name: str) -> Any:
        """Return a system that changes rows, made once."""
        from bench.editors import EDITORS

        if name not in self._peers:
            self._peers[name] = EDITORS[name](self)
        return self._peers[name]

    def wanted(self, *names: str) -> list[str]:
        """Return those of the systems that this run is about."""
        return [name for name in names if self.options.wants_peer(name)]

    def rounds_of(self, default: int) -> int:
        """Return how many rounds a case takes that would like `default`."""
        wanted = self.options.rounds_of(default)
        return wanted if self.most_rounds is None else min(wanted, self.most_rounds)

    def keep_time(self) -> int | None:
        """Take fewer rounds from here on where a run of everything is late; return the limit.

        What was asked for by name, by number of rounds or with --full is done in any case.
        """
        if self._keeps_time and self.elapsed_s > LATE_S:
            self.most_rounds = LEAST_ROUNDS
        return self.most_rounds

    @property
    def is_over(self) -> bool:
        """Whether a run of everything has no time left for another case."""
        return self._keeps_time and self.elapsed_s > OVER_S

    @property
    def _keeps_time(self) -> bool:
        return not (self.options.full or self.options.cases or self.options.rounds)

    def use_cluster(self) -> None:
        """Go on with executors that are processes of their own: a new session, new systems."""
        self._close_systems()
        self.master = session.CLUSTER
        self.warmed.clear()

    def _close_systems(self) -> None:
        for peer in self._peers.values():
            with suppress(Exception):
                peer.close()
        self._closed |= {name: peer.configuration() for name, peer in self._peers.items()}
        self._peers.clear()
        if self.has_spark:
            with suppress(Exception):
                self.spark.stop()
            del self.__dict__["spark"]
            self.__dict__.pop("core", None)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started

    def configurations(self) -> dict[str, dict[str, str]]:
        """Return how every system that took part was configured."""
        return self._closed | {name: peer.configuration() for name, peer in self._peers.items()}

    def new_configurations(self) -> dict[str, str]:
        """Return in a line each how those systems are configured that were not shown before."""
        new = {
            name: found for name, found in self.configurations().items() if name not in self.shown
        }
        self.shown |= set(new)
        return {
            name: "; ".join(f"{key}: {value}" for key, value in found.items())
            for name, found in new.items()
        }

    def close(self) -> None:
        self._close_systems()
        self._clear()
        self._lock.close()

    def _clear(self) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.java_warehouse / COPIES, ignore_errors=True)


def only_run(cache: Path) -> IO[str]:
    """Hold the cache for this run: two at once would measure each other."""
    cache.mkdir(parents=True, exist_ok=True)
    lock = (cache / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise SystemExit("another benchmark run is in progress; wait until it ends") from None
    return lock
