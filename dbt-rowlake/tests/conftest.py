"""dbt's own fixtures, on a lake of its own for the whole run: one process, one Spark session."""

from __future__ import annotations

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory):
    return str(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="class")
def dbt_profile_target(warehouse):
    return {"type": "rowlake", "warehouse": warehouse, "threads": 1}
