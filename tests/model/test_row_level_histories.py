"""Random histories of row-level changes against plain Python, all in the driver.

On Iceberg tables, and on Delta tables with what these have.

Appends, deletes, updates, upserts, blind changes and merges, in every mode, on tables whose schema,
partition spec, format version and branches change in between (`tests/histories`). After each step:
rows as multisets, the counts of the result, row ids, delete files, totals, and no file that no
snapshot names. `ROWLAKE_ROW_LEVEL_HISTORIES` sets how many; `make fuzz` runs many more.
"""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.histories.delta import DeltaHistory
from tests.histories.driver import driver_lake, run, tight_limits
from tests.histories.history import run_history

# Seeds are drawn, not every choice: choices would lean to what is simple, and most steps would be
# the same few. A failing history is cut down by leaving out steps.
RANDOM = st.randoms(use_true_random=True)


@pytest.fixture(scope="module")
def lake():
    with tempfile.TemporaryDirectory() as folder, driver_lake(folder) as found:
        yield found


def histories(many: int):
    return settings(
        max_examples=int(os.environ.get("ROWLAKE_ROW_LEVEL_HISTORIES", many)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


@pytest.mark.timeout(900)
@given(st.lists(RANDOM, min_size=4, max_size=7), st.booleans())
@histories(200)
def test_histories_are_what_plain_lists_say(lake, randoms, tight):
    with tight_limits(tight=tight):
        run_history(lake, randoms, run)


@pytest.mark.timeout(900)
@given(st.lists(RANDOM, min_size=4, max_size=7), st.booleans())
@histories(60)
def test_histories_of_delta_tables_are_what_plain_lists_say(lake, randoms, tight):
    with tempfile.TemporaryDirectory() as folder, tight_limits(tight=tight):
        run_history(lake, randoms, run, of=DeltaHistory, folder=folder)
