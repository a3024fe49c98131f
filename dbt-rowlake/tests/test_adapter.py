"""dbt's own adapter suite (dbt-tests-adapter) on an embedded lake.

The catalog keeps no views, so models that dbt calls views are tables here; what only that changes
is said where a class is extended. Not run: what makes views itself (BaseAdapterMethod), Python
models, grants, clones and materialized views.
"""

from __future__ import annotations

import pytest
from dbt.tests.adapter.basic import test_base
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseTestEmptySeed,
)
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.util import run_dbt


class TestSimpleMaterializations(BaseSimpleMaterializations):
    @pytest.fixture(autouse=True)
    def views_are_tables(self, monkeypatch):
        checked = test_base.check_relation_types

        def check(adapter, expected):
            checked(adapter, dict.fromkeys(expected, "table"))

        monkeypatch.setattr(test_base, "check_relation_types", check)


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    def test_incremental_invalid_strategy(self, project):
        """The macros are dbt-spark's, and so are their words."""
        run_dbt(["seed"])
        results = run_dbt(["run"], expect_pass=False)
        assert "Invalid incremental strategy provided: bad_strategy" in results.results[0].message


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestHash(BaseHash):
    pass
