"""Random histories of row-level statements through Spark, against plain Python.

The same histories as in `tests/model`, with UPDATE, DELETE and MERGE as users write them.
`ROWLAKE_SPARK_HISTORIES` sets how many.
"""

from __future__ import annotations

import os
from random import Random

import pytest

import rowlake
from tests.histories import statements
from tests.histories.delta import DeltaHistory
from tests.histories.history import run_history


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("histories")), spark=spark)
    found.create_namespace("db")
    yield found
    found.close()


@pytest.mark.parametrize("number", range(int(os.environ.get("ROWLAKE_SPARK_HISTORIES", "15"))))
def test_statements_do_what_plain_lists_say(lake, number):
    randoms = [Random(f"statements {number} {step}") for step in range(6)]
    run_history(lake, randoms, statements.run)


@pytest.mark.parametrize("number", range(int(os.environ.get("ROWLAKE_SPARK_HISTORIES", "6"))))
def test_statements_on_delta_tables_do_what_plain_lists_say(lake, tmp_path, number):
    randoms = [Random(f"delta statements {number} {step}") for step in range(6)]
    run_history(lake, randoms, statements.run, of=DeltaHistory, folder=str(tmp_path))
