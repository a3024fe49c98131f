"""A commit that lost a race looks only at what landed since its last try."""

from __future__ import annotations

import pytest

from rowlake.commit.phases import Phase
from rowlake.iceberg.manifest_set import ManifestSet
from tests.lakes import SALES, make_lake, sales
from tests.parts.stopping import stopped_at

NAME = "shop.sales"


@pytest.mark.iceberg
def test_manifests_are_searched_once_over_all_attempts(tmp_path, monkeypatch):
    searched = []
    whole = ManifestSet.entries_of

    def entries_of(self, manifest):
        searched.append(manifest["location"][0].as_py())
        return whole(self, manifest)

    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        properties = {"commit.manifest-merge.enabled": "false", "commit.retry.min-wait-ms": "1"}
        table = lake.create_table(NAME, SALES, properties=properties)
        for number in range(6):
            table.append(sales(5, 5 * number))
        others = [lambda n=n: lake.table(NAME).append(sales(5, 100 + 5 * n)) for n in range(3)]
        monkeypatch.setattr(ManifestSet, "entries_of", entries_of)
        with stopped_at(Phase.PRODUCED, *others):
            result = table.delete("id = 7", mode="copy-on-write")
        assert (result.rows_deleted, result.retries) == (1, 3)
        # The manifest of the file that is replaced is read by each of the four attempts.
        assert max(searched.count(one) for one in set(searched)) == 4
        assert len(searched) == len(set(searched)) + 3
        assert len(set(searched)) == 9
