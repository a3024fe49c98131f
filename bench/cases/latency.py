"""Small operations on an object store that answers after 30 ms: requests are what they cost.

A proxy in front of moto waits before each answer and counts. Everything runs in the driver, on a
table of sixteen partitions; PyIceberg does what it can of the same. Iceberg's S3FileIO needs a jar
that the bench's session does not have, so it takes no part.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.case import Case, Contestant, Step, entrants
from bench.children import ROOT
from bench.children.slow_s3 import COUNTS, LOOPBACK
from bench.measure import DRIVER, Reported, Sample, measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.lab import Lab

DELAY_S = 0.03
BUCKET = "bench"
ROWS, PARTITIONS = 16_000, 16
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("p", pa.int32()),
        pa.field("v", pa.string()),
    ]
)
# A catalog by path knows no PyIceberg: its tables are in a SQLite catalog beside the bench's files.
SYSTEMS = ("rowlake", "pyiceberg")


def rows(first: int, count: int, text: str) -> pa.Table:
    ids = range(first, first + count)
    columns = [list(ids), [n % PARTITIONS for n in ids], [f"{text} {n}" for n in ids]]
    return pa.table(columns, schema=SCHEMA)


class Store:
    """The server, started at first use; `requests` is how many it has answered so far."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.endpoint = ""

    def start(self) -> None:
        if self._process is not None:
            return
        command = [sys.executable, "-m", "bench.children.slow_s3", str(DELAY_S)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, **pipes)
        assert self._process.stdout is not None
        self.endpoint = f"http://{LOOPBACK}:{int(self._process.stdout.readline())}"
        made = urllib.request.Request(f"{self.endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made, timeout=30).close()

    def requests(self) -> dict[str, int]:
        with urllib.request.urlopen(f"{self.endpoint}{COUNTS}", timeout=30) as answer:
            found: dict[str, int] = json.load(answer)
            return found

    def properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.region": "us-east-1",
        }

    def stop(self) -> None:
        if self._process is not None:
            with suppress(Exception):
                self._process.communicate(timeout=10)
            self._process.kill()
            self._process = None


def contestants(lab: Lab) -> list[Contestant]:
    """Return both systems on one store."""
    store = Store()
    makers = {"rowlake": _rowlake, "pyiceberg": _pyiceberg}

    def make(name: str) -> Contestant:
        store.start()
        return makers[name](lab, store)

    return entrants(lab.wanted(*SYSTEMS), make)


def _counted(store: Store, work: Callable[[], Any]) -> Reported:
    before = store.requests()
    sample, answer = measure(work)
    after = store.requests()
    grown = {name: after[name] - before.get(name, 0) for name in after}
    facts = {f"requests_{name.lower()}": float(count) for name, count in grown.items()}
    facts["requests"] = float(sum(grown.values()))
    return Reported(Sample(sample.wall_s, sample.cpu_s, facts=facts, place=DRIVER), answer)


def _rowlake(_: Lab, store: Store) -> Contestant:
    import rowlake

    lake = rowlake.connect(f"s3://{BUCKET}/rowlake", {"type": "filesystem", **store.properties()})
    lake.create_namespace("ns", if_not_exists=True)

    def prepare(number: int) -> None:
        name = f"ns.t{number + 1}"
        layout = {"partition_by": ["p"], "properties": {"format-version": "3"}}
        held["table"] = lake.create_table(name, SCHEMA, **layout)

    held: dict[str, Any] = {}
    steps: dict[str, Callable[[], Any]] = {
        "append": lambda: held["table"].append(rows(0, ROWS, "old")),
        "delete one row": lambda: held["table"].delete("id = 17", mode="merge-on-read"),
        "upsert 100 keys": lambda: held["table"].upsert(
            rows(100, 100, "new"), ["id"], mode="merge-on-read"
        ),
        "read one partition": lambda: held["table"].arrow(where="p = 3").num_rows,
        "read all": lambda: held["table"].arrow().num_rows,
    }
    return Contestant("rowlake", _steps(store, steps), prepare, close=_closing(lake, store))


def _pyiceberg(lab: Lab, store: Store) -> Contestant:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, LongType, NestedField, StringType

    uri = f"sqlite:///{lab.scratch}/latency.db"
    catalog = SqlCatalog(
        "latency", uri=uri, warehouse=f"s3://{BUCKET}/pyiceberg", **store.properties()
    )
    catalog.create_namespace("ns")
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "p", IntegerType()),
        NestedField(3, "v", StringType()),
    )
    held: dict[str, Any] = {}

    def prepare(number: int) -> None:
        table = catalog.create_table(f"ns.t{number + 1}", schema)
        with table.update_spec() as update:
            update.add_identity("p")
        held["table"] = table

    steps: dict[str, Callable[[], Any]] = {
        "append": lambda: held["table"].append(rows(0, ROWS, "old")),
        "delete one row": lambda: held["table"].delete("id == 17"),
        "upsert 100 keys": lambda: held["table"].upsert(rows(100, 100, "new"), ["id"]),
        "read one partition": lambda: held["table"].scan("p == 3").to_arrow().num_rows,
        "read all": lambda: held["table"].scan().to_arrow().num_rows,
    }
    return Contestant("pyiceberg", _steps(store, steps), prepare)


def _steps(store: Store, work: dict[str, Callable[[], Any]]) -> tuple[Step, ...]:
    return tuple(
        Step(
            name,
            partial(_counted, store, run),
            (lambda answer: answer) if name.startswith("read") else None,
        )
        for name, run in work.items()
    )


def _closing(lake: Any, store: Store) -> Callable[[], None]:
    def close() -> None:
        lake.close()
        store.stop()

    return close


CASES = [
    Case("latency", f"An object store that answers after {DELAY_S * 1000:.0f} ms", contestants)
]
