"""Six writer processes beside compaction, expiry, manifest rewriting, orphan removal and ALTER.

Every transfer lands, no update is lost, no key is there twice, and nothing is called corrupt.
`ROWLAKE_SOAK` sets how many seconds each catalog is written to, beside the few of an ordinary run.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import connect
from tests.parts import six_writers
from tests.parts.postgres import postgres
from tests.parts.race import race
from tests.parts.six_writers import ACCOUNTS, BALANCE, COUNTERS, FIRST_KEY, PROCESSES, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.parts.six_writers import Told

NAME = "bank.t"
SECONDS = float(os.environ.get("ROWLAKE_SOAK", "20"))
# Format version and mode of each catalog's table: together all of them.
CATALOGS = {
    "embedded": {"format-version": "3"},
    "filesystem": {"format-version": "2"},
    "postgres": {
        "format-version": "2",
        "write.merge.mode": "copy-on-write",
        "write.update.mode": "copy-on-write",
    },
}


@contextmanager
def catalog_of(kind: str, warehouse: Path) -> Iterator[Any]:
    if kind != "postgres":
        yield "filesystem" if kind == "filesystem" else None
        return
    with postgres() as address:
        yield {"type": "sql", "uri": address, "warehouse": str(warehouse)}


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("kind", CATALOGS)
def test_every_transfer_lands_and_no_row_is_wrong(tmp_path: Path, kind: str) -> None:
    with catalog_of(kind, tmp_path) as catalog:
        with connect(str(tmp_path), catalog) as lake:
            lake.create_namespace("bank")
            table = lake.create_table(NAME, SCHEMA, properties=CATALOGS[kind])
            table.append(six_writers.start_rows())
        arguments = (str(tmp_path), catalog, NAME, SECONDS)
        told = race(six_writers.work, PROCESSES, *arguments, timeout_seconds=SECONDS + 240)
        show(kind, told)
        with connect(str(tmp_path), catalog) as lake:
            check(lake.table(NAME), told)


def check(table: Any, told: list[Told]) -> None:
    """Compare the rows with what the writers say they did; PyIceberg reads the same."""
    moved = sum((one.moved for one in told), Counter[Any]())
    moved_from = Counter({key: sum(one.moved[key] for one in told) for key in ACCOUNTS})
    keys = 2 * max(one.landed for one in told if one.what.startswith("insert"))
    expected = {key: BALANCE + moved_from[key] for key in ACCOUNTS}
    expected |= {key: moved[key] for key in COUNTERS}
    expected |= dict.fromkeys(range(FIRST_KEY, FIRST_KEY + keys), 0)
    assert moved["inserted"] == keys
    for found in (table.arrow(["id", "v"]), table.to_pyiceberg().scan().to_arrow()):
        rows = sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
        assert rows == sorted(expected.items())
    assert all(one.landed for one in told)


def show(kind: str, told: list[Told]) -> None:
    """Print what happened; times say something of the machine, so none is asserted."""
    landed, runs = sum(one.landed for one in told), sum(one.runs for one in told)
    print(f"\n{kind}: {landed} operations landed in {SECONDS:.0f} s, {runs - landed} ran again")
    for one in told:
        slowest = f"{one.slowest_seconds:.1f} s at most"
        print(f"  {one.what}: {one.landed} landed, {one.runs} runs, {slowest}")
