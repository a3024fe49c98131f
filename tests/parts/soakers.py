"""Streaming writers, and `rowlake optimize --watch` as a process beside them."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import rowlake
from tests.spark_session import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# As on a terminal: what is started in the background would ignore Ctrl-C.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from rowlake.cli.app import main
sys.exit(main())
"""
KEYS, BATCH, GONE = 500, 20, 10
REST_ROUNDS = 5
PATIENCE_SECONDS = 120


@dataclass
class Writer:
    """Upserts and deletes rows of its own keys: `held` is what the table must have of them.

    One that is `blind` does not look at the table, and leaves equality deletes; one that is not
    marks rows of data files by position.
    """

    number: int
    is_blind: bool
    pause_seconds: float
    held: dict[int, int] = field(default_factory=dict)
    rounds: int = 0
    retries: int = 0

    def write(
        self,
        warehouse: str,
        table: str,
        until: float,
        rounds: int,
        rest: Callable[[], None] = lambda: None,
    ) -> None:
        """Go on until the time is over, but for so many rounds at least; `rest` after every few."""
        chance = random.Random(self.number)
        with rowlake.connect(warehouse) as lake:
            opened = lake.table(table)
            while self.rounds < rounds or time.monotonic() < until:
                began = time.monotonic()
                self.rounds += 1
                act = self._delete if self.rounds % 5 == 4 else self._upsert
                self.retries += act(opened, chance).retries
                time.sleep(max(0.0, self.pause_seconds - (time.monotonic() - began)))
                if self.rounds % REST_ROUNDS == 0:
                    rest()

    @property
    def _keys(self) -> range:
        return range(self.number * KEYS, (self.number + 1) * KEYS)

    def _upsert(self, table: Any, chance: random.Random) -> Any:
        keys = chance.sample(self._keys, BATCH)
        rows = [{"id": key, "v": self.rounds} for key in keys]
        how = {"deletes": "equality"} if self.is_blind else {"mode": "merge-on-read"}
        result = table.upsert(rows, keys=["id"], **how)
        self.held |= dict.fromkeys(keys, self.rounds)
        return result

    def _delete(self, table: Any, chance: random.Random) -> Any:
        low = chance.choice(self._keys[:-GONE])
        gone = range(low, low + GONE)
        how = {"deletes": "equality"} if self.is_blind else {"mode": "merge-on-read"}
        result = table.delete(f"id IN ({', '.join(map(str, gone))})", **how)
        self.held = {key: value for key, value in self.held.items() if key not in gone}
        return result


class Watch:
    """The command at work: `rounds` are the reports of what it has done so far."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self._process, self._out, self._err = process, out, err

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """Every round that has ended; one that failed has no report."""
        whole = self._out.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Every step that was taken."""
        told = [one["report"] for one in self.rounds if one["report"]]
        return [step for report in told for step in report["steps"] if step["state"] != "skipped"]

    def wait_for_rounds(self, count: int) -> None:
        """Wait until so many rounds have ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.rounds) < count:
            assert self._process.poll() is None, self._err.read_text()
            assert time.monotonic() < deadline, f"{len(self.rounds)} of {count} rounds"
            time.sleep(0.05)

    def interrupt(self) -> tuple[int, str]:
        """Press Ctrl-C; return the exit code and what was said on standard error."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(timeout=PATIENCE_SECONDS), self._err.read_text()


@contextmanager
def watching(warehouse: str, table: str, interval: float, folder: Path) -> Iterator[Watch]:
    """Run `rowlake optimize --watch` until the block ends; it has been round once at the start."""
    words = ["optimize", table, "--watch", "--interval", str(interval), "--warehouse", warehouse]
    out, err = folder / "watch.out", folder / "watch.err"
    with out.open("wb") as told, err.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *words, "--output", "json", "--quiet"],
            stdout=told,
            stderr=said,
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
        )
    try:
        watch = Watch(process, out, err)
        watch.wait_for_rounds(1)
        yield watch
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_SECONDS)
