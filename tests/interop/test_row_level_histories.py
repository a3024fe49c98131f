"""Random histories of row-level changes, re-read by Iceberg Java and by PyIceberg.

The same histories as in `tests/model`; at the end of each the other library reads every branch.
PyIceberg knows no equality deletes and no Avro data files, so its histories have none.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from rowlake.catalog.open import open_catalog
from rowlake.lake import Lake
from tests.histories.driver import DriverEngine, driver_lake, run
from tests.histories.history import History
from tests.parts.rows import rows_of


@pytest.fixture
def driver(lake, java_warehouse):
    """The lake of the folder that Java has as its catalog, worked on without Spark."""
    del lake
    with Lake(open_catalog(str(java_warehouse), "filesystem"), DriverEngine()) as found:
        yield found


def made(lake: Lake, text: str, **options: Any) -> History:
    history = History(lake, Random(text), run, **options)
    for number in range(7):
        history.step(Random(f"{text} {number}"))
    history.finish()
    return history


@pytest.mark.parametrize("number", range(8))
def test_java_reads_the_same_rows(driver, java, number):
    history = made(driver, f"java {number}")
    for branch in history.rows:
        found = java(f"SELECT * FROM java.{history.table.name} VERSION AS OF '{branch}'")
        assert rows_of(found) == rows_of(history.table.arrow(ref=branch)), history.log


@pytest.mark.parametrize("number", range(8))
def test_pyiceberg_reads_the_same_rows(tmp_path, number):
    with driver_lake(str(tmp_path)) as lake:
        history = made(lake, f"pyiceberg {number}", blind=False, formats=["parquet"])
        theirs = StaticTable.from_metadata(history.table.handle.metadata_location)
        for branch in history.rows if history.table.snapshots() else ():
            found = theirs.scan().use_ref(branch).to_arrow()
            assert rows_of(found) == rows_of(history.table.arrow(ref=branch)), history.log
