"""Racing writers on a local disk: one winner each time, and nothing of anybody lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowlake.catalog.open import open_catalog
from rowlake.catalog.tables import load_table
from tests.parts.race import race
from tests.parts.writers import add_properties, create_same_table, create_versions

if TYPE_CHECKING:
    from pathlib import Path

RACERS, VERSIONS, COMMITS = 4, 60, 8


def test_each_version_has_one_winner_and_is_whole(tmp_path: Path) -> None:
    won = race(create_versions, RACERS, str(tmp_path), {}, VERSIONS)
    assert sorted(version for one in won for version in one) == list(range(VERSIONS))
    for number, versions in enumerate(won):
        for version in versions:
            assert (tmp_path / f"v{version}").read_bytes() == f"{number}".encode() * 5000
    assert len(list(tmp_path.iterdir())) == VERSIONS


@pytest.mark.parametrize("catalog", [None, "filesystem"], ids=["sqlite", "filesystem"])
def test_processes_that_commit_to_one_table_lose_nothing(
    tmp_path: Path, catalog: str | None
) -> None:
    warehouse = str(tmp_path / "wh")
    created = race(create_same_table, RACERS, warehouse, catalog, "race.t")
    assert sum(created) == 1
    race(add_properties, RACERS, warehouse, catalog, "race.t", COMMITS)
    properties = load_table(open_catalog(warehouse, catalog), "race.t").metadata.properties
    expected = {f"w{number}.{commit}" for number in range(RACERS) for commit in range(COMMITS)}
    assert set(properties) - {"by"} == expected
    assert int(properties["by"]) == created.index(True)
    files = list((tmp_path / "wh" / "race").rglob("*.json"))
    assert len(files) == RACERS * COMMITS + 1
