"""The procedures that only Iceberg has refuse tables of other formats."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rowlake.errors import UnsupportedFeatureError
from rowlake.maintain.iceberg.manifests import forget_removed_files, rewrite_manifests
from rowlake.maintain.iceberg.partition_stats import compute_partition_stats
from rowlake.maintain.iceberg.table_path import rewrite_table_path
from rowlake.maintain.iceberg.table_stats import compute_table_stats

pytestmark = pytest.mark.iceberg

DELTA = SimpleNamespace(name="ns.t", format=SimpleNamespace(name="delta"))


@pytest.mark.parametrize(
    "verb", [rewrite_manifests, compute_partition_stats, compute_table_stats, rewrite_table_path]
)
def test_a_table_of_another_format_is_refused(verb):
    more = {"source_prefix": "/a", "target_prefix": "/b"} if verb is rewrite_table_path else {}
    with pytest.raises(UnsupportedFeatureError) as error:
        verb(DELTA, None, **more)
    assert str(error.value) == f"{verb.__name__} is for Iceberg tables; ns.t is a delta table."


def test_manifests_of_another_format_are_not_rewritten_by_erase():
    with pytest.raises(UnsupportedFeatureError, match="erase is for Iceberg tables"):
        forget_removed_files(DELTA, "main", "erase")
