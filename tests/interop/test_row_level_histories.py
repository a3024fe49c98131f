"""Random histories of row-level changes, re-read by other libraries.

Iceberg tables by Iceberg Java and PyIceberg; Delta tables by Delta on Spark, delta-rs and DuckDB.

The same histories as in `tests/model`; at the end of each the other library reads every branch.
`make fuzz` does so with a share of its histories.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.histories.delta import DeltaHistory
from tests.histories.driver import driver_lake, run
from tests.histories.history import run_history
from tests.histories.readers import (
    FOR_PYICEBERG,
    check_delta_rs,
    check_delta_spark,
    check_duckdb,
    check_java,
    check_pyiceberg,
)


@pytest.fixture
def driver(lake, java_warehouse):
    """The lake of the folder that Java has as its catalog, worked on without Spark."""
    del lake
    with driver_lake(str(java_warehouse), "filesystem") as found:
        yield found


def randoms(text: str) -> list[Random]:
    return [Random(text), *(Random(f"{text} {number}") for number in range(7))]


@pytest.mark.parametrize("number", range(8))
def test_java_reads_the_same_rows(driver, java, number):
    check_java(run_history(driver, randoms(f"java {number}"), run), java)


@pytest.mark.parametrize("number", range(8))
def test_pyiceberg_reads_the_same_rows(tmp_path, number):
    with driver_lake(str(tmp_path)) as lake:
        check_pyiceberg(run_history(lake, randoms(f"pyiceberg {number}"), run, **FOR_PYICEBERG))


@pytest.mark.parametrize("number", range(12))
def test_readers_of_delta_read_the_same_rows(tmp_path, number):
    with driver_lake(str(tmp_path / "lake")) as lake:
        history = run_history(
            lake, randoms(f"delta {number}"), run, of=DeltaHistory, folder=str(tmp_path)
        )
        assert check_delta_spark(history)
        assert check_delta_rs(history)
        check_duckdb(history)
