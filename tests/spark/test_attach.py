"""`rowlake.attach`: Spark's own API on lake tables; the checks of a classic session.

`tests/attach_checks.py` has those that run in Connect sessions too.
"""

from __future__ import annotations

import pytest

import rowlake
from tests import attach_checks


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    attached = rowlake.attach(spark, str(tmp_path_factory.mktemp("attached")))
    yield attached
    attached.close()


@pytest.mark.parametrize("check", attach_checks.CHECKS, ids=lambda check: check.__name__)
def test_in_a_classic_session(spark, lake, tmp_path, check):
    check(spark, lake, tmp_path)
