"""Six writer processes beside compaction, expiry, manifest rewriting, orphan removal and ALTER.

On Iceberg tables of three catalogs, and on Delta tables with and without vectors. Every transfer
lands, no update is lost, no key is there twice, and nothing is called corrupt. `ROWLAKE_SOAK` sets
how many seconds each table is written to, beside the few of an ordinary run.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import connect
from tests.any_format import read_by_others
from tests.parts import six_writers
from tests.parts.postgres import postgres
from tests.parts.race import race
from tests.parts.six_writers import ACCOUNTS, BALANCE, COUNTERS, FIRST_KEY, PROCESSES, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowlake.table import Table
    from tests.parts.six_writers import Told

NAME = "bank.t"
SECONDS = float(os.environ.get("ROWLAKE_SOAK", "20"))
REWRITES = {"write.merge.mode": "copy-on-write", "write.update.mode": "copy-on-write"}
# Format version and mode of each catalog's table: together all of them.
CATALOGS = {
    "embedded": {"format-version": "3"},
    "filesystem": {"format-version": "2"},
    "postgres": {"format-version": "2", **REWRITES},
}
DELTA_TABLES = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "rewrites": REWRITES,
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
        write_all_at_once(tmp_path, catalog, kind, SECONDS, properties=CATALOGS[kind])


@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("kind", DELTA_TABLES)
def test_every_transfer_to_a_delta_table_lands(tmp_path: Path, kind: str) -> None:
    # A lane of the ordinary run is shared with tests that take as long.
    seconds = SECONDS if "ROWLAKE_SOAK" in os.environ else SECONDS / 2
    given = {"properties": DELTA_TABLES[kind], "format": "delta"}
    table = write_all_at_once(tmp_path, None, f"delta {kind}", seconds, **given)
    versions = [one.snapshot_id for one in table.snapshots()]
    assert versions == list(range(versions[0], versions[0] + len(versions)))


def write_all_at_once(folder: Path, catalog: Any, kind: str, seconds: float, **given: Any) -> Table:
    """Have six processes write to a new table, and check its rows."""
    with connect(str(folder), catalog) as lake:
        lake.create_namespace("bank")
        table = lake.create_table(NAME, SCHEMA, **given)
        table.append(six_writers.start_rows())
    arguments = (str(folder), catalog, NAME, seconds)
    told = race(six_writers.work, PROCESSES, *arguments, timeout_seconds=seconds + 240)
    show(kind, told, seconds)
    with connect(str(folder), catalog) as lake:
        table = lake.table(NAME)
        check(table, told)
        return table


def check(table: Table, told: list[Told]) -> None:
    """Compare the rows with what the writers say they did; PyIceberg reads the same."""
    moved = sum((one.moved for one in told), Counter[Any]())
    moved_from = Counter({key: sum(one.moved[key] for one in told) for key in ACCOUNTS})
    keys = 2 * max(one.landed for one in told if one.what.startswith("insert"))
    expected = {key: BALANCE + moved_from[key] for key in ACCOUNTS}
    expected |= {key: moved[key] for key in COUNTERS}
    expected |= dict.fromkeys(range(FIRST_KEY, FIRST_KEY + keys), 0)
    assert moved["inserted"] == keys
    for found in (table.arrow(["id", "v"]), *read_by_others(table)):
        rows = sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
        assert rows == sorted(expected.items())
    assert all(one.landed for one in told)


def show(kind: str, told: list[Told], seconds: float) -> None:
    """Print what happened; times say something of the machine, so none is asserted."""
    landed, runs = sum(one.landed for one in told), sum(one.runs for one in told)
    print(f"\n{kind}: {landed} operations landed in {seconds:.0f} s, {runs - landed} ran again")
    for one in told:
        slowest = f"{one.slowest_seconds:.1f} s at most"
        print(f"  {one.what}: {one.landed} landed, {one.runs} runs, {slowest}")
