"""SQL catalogs on a real PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table.update import SetPropertiesUpdate

from rowlake.catalog import tables
from rowlake.catalog.commit import commit_updates
from rowlake.catalog.many import AllLanded, TableChange, commit_many
from rowlake.catalog.open import open_catalog
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.model.outcome import Conflict, Landed
from tests.parts.catalogs import (
    appended,
    appending,
    at_head,
    check_tables_and_namespaces,
    definition,
)
from tests.parts.postgres import postgres
from tests.parts.race import race
from tests.parts.writers import add_properties, create_same_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RACERS, COMMITS = 4, 6


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture
def properties(database: str, tmp_path: Path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": database,
        "name": tmp_path.name,
        "warehouse": str(tmp_path / "wh"),
    }


@pytest.fixture
def catalog(properties: dict[str, str]) -> Catalog:
    opened = open_catalog(None, properties)
    tables.create_namespace(opened, "ns")
    return opened


def test_tables_and_namespaces_work(catalog: Catalog) -> None:
    check_tables_and_namespaces(catalog, renames=True)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_snapshots_land(catalog: Catalog, version: int) -> None:
    made = tables.create_table(catalog, "ns.t", definition(version))
    after = appended(made, 1)
    assert isinstance(commit_updates(made, appending(made, 2), at_head(made)), Conflict)
    again = tables.load_table(catalog, "ns.t")
    assert again.metadata == after.metadata
    assert again.metadata.current_snapshot_id == 1


def test_pyiceberg_and_rowlake_commit_to_one_table(
    catalog: Catalog, properties: dict[str, str]
) -> None:
    made = tables.create_table(catalog, "ns.t", definition(2))
    named = {key: value for key, value in properties.items() if key != "name"}
    theirs = load_catalog(properties["name"], **named)
    with theirs.load_table("ns.t").transaction() as change:
        change.set_properties({"theirs": "1"})
    outcome = commit_updates(made, [SetPropertiesUpdate(updates={"ours": "1"})], [])
    assert isinstance(outcome, Landed)
    assert theirs.load_table("ns.t").properties == {"theirs": "1", "ours": "1"}


def test_racing_processes_lose_nothing(properties: dict[str, Any], tmp_path: Path) -> None:
    open_catalog(None, properties)
    created = race(create_same_table, RACERS, None, properties, "race.t")
    assert sum(created) == 1
    race(add_properties, RACERS, None, properties, "race.t", COMMITS)
    found = tables.load_table(open_catalog(None, properties), "race.t").metadata.properties
    expected = {f"w{number}.{commit}" for number in range(RACERS) for commit in range(COMMITS)}
    assert set(found) - {"by"} == expected
    assert len(list((tmp_path / "wh").rglob("*.metadata.json"))) == RACERS * COMMITS + 1


def test_several_tables_commit_together(catalog: Catalog) -> None:
    one, two = (tables.create_table(catalog, f"ns.{name}", definition(2)) for name in "ab")
    both = [TableChange(handle, appending(handle, 1), at_head(handle)) for handle in (one, two)]
    assert isinstance(commit_many(both), AllLanded)
    assert isinstance(commit_many(both), Conflict)
    assert tables.refresh(one).metadata.current_snapshot_id == 1


def test_bad_names_are_understood(catalog: Catalog) -> None:
    tables.create_table(catalog, "ns.orders", definition(2))
    with pytest.raises(TableNotFoundError, match=r"Did you mean ns\.orders"):
        tables.load_table(catalog, "ns.order")
    with pytest.raises(InvalidStatementError, match="exists already"):
        tables.create_table(catalog, "ns.orders", definition(2))
