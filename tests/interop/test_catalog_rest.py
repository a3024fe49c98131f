"""A real REST catalog: Iceberg's own server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog

from rowlake.catalog import commit as commit_module
from rowlake.catalog import tables
from rowlake.catalog.commit import commit_updates
from rowlake.catalog.many import AllLanded, TableChange, commit_many
from rowlake.catalog.open import open_catalog
from rowlake.errors import InvalidStatementError, StorageError, TableNotFoundError
from rowlake.model.outcome import Conflict, Landed, Unknown
from tests.parts.catalogs import (
    appended,
    appending,
    at_head,
    check_tables_and_namespaces,
    definition,
)
from tests.parts.race import race
from tests.parts.rest import rest_catalog
from tests.parts.writers import add_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import IcebergHandle

RACERS, COMMITS = 4, 5


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture(scope="module")
def catalog(address: str) -> Catalog:
    opened = open_catalog(None, {"type": "rest", "uri": address})
    tables.create_namespace(opened, "ns")
    return opened


@pytest.fixture
def table(catalog: Catalog) -> Iterator[IcebergHandle]:
    yield tables.create_table(catalog, "ns.t", definition(2))
    tables.drop_table(catalog, "ns.t")


def test_tables_and_namespaces_work(catalog: Catalog) -> None:
    check_tables_and_namespaces(catalog, renames=True)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_snapshots_land_and_java_wrote_the_metadata(catalog: Catalog, version: int) -> None:
    made = tables.create_table(catalog, f"ns.v{version}", definition(version))
    after = appended(appended(made, 1), 2)
    loaded = tables.load_table(catalog, made.name)
    assert loaded.metadata == after.metadata
    raw = json.loads(Path(str(loaded.metadata_location).removeprefix("file:")).read_text())
    assert raw["format-version"] == version
    assert raw.get("next-row-id") == (20 if version == 3 else None)
    assert isinstance(commit_updates(made, appending(made, 3), at_head(made)), Conflict)
    if version == 3:
        assert raw["schemas"][0]["fields"][1]["initial-default"] == "none"


def test_java_reads_the_metadata_that_rowlake_writes(catalog: Catalog, tmp_path: Path) -> None:
    ours = open_catalog(str(tmp_path / "ours"))
    tables.create_namespace(ours, "ns")
    for version in (1, 2, 3):
        made = appended(tables.create_table(ours, f"ns.o{version}", definition(version)), 5)
        name = f"ns.registered{version}"
        there = tables.register_table(catalog, name, str(made.metadata_location))
        assert there.metadata == made.metadata
        assert appended(there, 6).metadata.current_snapshot_id == 6


def test_racing_processes_lose_nothing(catalog: Catalog, address: str) -> None:
    tables.create_table(catalog, "ns.race", definition(2))
    given = {"type": "rest", "uri": address}
    race(add_properties, RACERS, None, given, "ns.race", COMMITS)
    found = tables.load_table(catalog, "ns.race").metadata.properties
    expected = {f"w{number}.{commit}" for number in range(RACERS) for commit in range(COMMITS)}
    assert expected <= set(found)


def test_several_tables_commit_together(catalog: Catalog) -> None:
    one, two = (tables.create_table(catalog, f"ns.{name}", definition(2)) for name in "ab")
    both = [TableChange(handle, appending(handle, 1), at_head(handle)) for handle in (one, two)]
    outcome = commit_many(both)
    assert isinstance(outcome, AllLanded)
    assert [handle.metadata.current_snapshot_id for handle in outcome.handles] == [1, 1]
    fresh = outcome.handles[0]
    stale = TableChange(two, appending(two, 3), at_head(two))
    mixed = [TableChange(fresh, appending(fresh, 2), at_head(fresh)), stale]
    assert isinstance(commit_many(mixed), Conflict)
    assert tables.refresh(one).metadata.current_snapshot_id == 1


@pytest.mark.parametrize("does", [True, False])
def test_an_answer_lost_on_the_way(
    catalog: Catalog, table: IcebergHandle, monkeypatch: pytest.MonkeyPatch, does: bool
) -> None:
    assert isinstance(catalog, RestCatalog)
    monkeypatch.setattr(commit_module, "LOOKS", (0.0,))
    original = requests.Session.post

    def cut(self: requests.Session, *arguments: Any, **options: Any) -> Any:
        if does:
            original(self, *arguments, **options)
        raise requests.ConnectionError("connection reset by peer")

    monkeypatch.setattr(requests.Session, "post", cut)
    outcome = commit_updates(table, appending(table, 9), at_head(table))
    monkeypatch.undo()
    assert isinstance(outcome, Landed if does else Unknown)
    assert (tables.refresh(table).metadata.current_snapshot_id == 9) is does


@pytest.mark.parametrize("status", [500, 502, 503, 504, 507])
def test_every_5xx_is_unknown_until_our_snapshot_is_seen(
    catalog: Catalog, table: IcebergHandle, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(commit_module, "LOOKS", (0.0,))

    def failing(*_: Any, **__: Any) -> requests.Response:
        answer = requests.Response()
        answer.status_code = status
        return answer

    monkeypatch.setattr(requests.Session, "post", failing)
    outcome = commit_updates(table, appending(table, 9), at_head(table))
    assert isinstance(outcome, Unknown)
    assert str(status) in outcome.cause


def test_bad_names_are_understood(catalog: Catalog, table: IcebergHandle) -> None:
    with pytest.raises(TableNotFoundError):
        tables.load_table(catalog, "ns.none")
    with pytest.raises(TableNotFoundError, match="namespace"):
        tables.load_table(catalog, "nowhere.none")
    with pytest.raises(TableNotFoundError, match="namespace"):
        tables.create_table(catalog, "nowhere.none", definition(2))
    with pytest.raises(InvalidStatementError, match="exists already"):
        tables.create_table(catalog, "ns.t", definition(2))


def test_a_server_that_is_gone_means_not_landed(tmp_path: Path) -> None:
    with rest_catalog(tmp_path) as gone:
        catalog = open_catalog(None, {"type": "rest", "uri": gone})
        tables.create_namespace(catalog, "ns")
        made = tables.create_table(catalog, "ns.t", definition(2))
    with pytest.raises(StorageError):
        commit_updates(made, appending(made, 1), at_head(made))
    with pytest.raises(StorageError):
        tables.load_table(catalog, "ns.t")
