"""Changes of random histories, replayed into plain lists, all in the driver.

At the end of each history (`tests/histories`: every mode and file format, schema and partition
evolution, compaction, rollbacks, branches, expiry) the changes of whole and of random spans, as
they are and net, paired by random keys, make of the rows at the start the rows at the end. A part
of them goes through the frames that Spark would shuffle. `ROWLAKE_CHANGE_HISTORIES` sets how many;
`tools/fuzz.py --changes` runs many more.
"""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.histories.changes import check_changes
from tests.histories.driver import driver_lake, run, tight_limits
from tests.histories.history import run_history

RANDOM = st.randoms(use_true_random=True)


@pytest.fixture(scope="module")
def lake():
    with tempfile.TemporaryDirectory() as folder, driver_lake(folder) as found:
        yield found


@pytest.mark.timeout(900)
@given(st.lists(RANDOM, min_size=5, max_size=8), RANDOM, st.booleans())
@settings(
    max_examples=int(os.environ.get("ROWLAKE_CHANGE_HISTORIES", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
def test_changes_lead_from_any_start_to_any_end(lake, randoms, random, tight):
    with tight_limits(tight=tight):
        history = run_history(lake, randoms, run)
    check_changes(history, random)
