"""Transactions over two tables on real catalogs: SQLite, PostgreSQL and REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import CommitConflictError
from rowlake.model.predicate import Leaf, Op
from rowlake.storage.files import Storage
from tests.parts.postgres import postgres
from tests.parts.race import race
from tests.parts.rest import rest_catalog
from tests.parts.writers import append_to_both
from tests.two_tables import ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.lake import Lake
    from rowlake.table import Table

RACERS, COMMITS = 3, 4
ONE, TWO = "checks.one", "checks.two"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("rest")) as found:
        yield found


@dataclass(frozen=True)
class Place:
    """What opens a lake."""

    warehouse: str | None
    catalog: dict[str, str] | None


@pytest.fixture(scope="module", params=["embedded", "postgres", "rest"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = str(tmp_path_factory.mktemp(request.param))
    if request.param == "embedded":
        return Place(folder, None)
    if request.param == "rest":
        return Place(None, {"type": "rest", "uri": request.getfixturevalue("server")})
    uri = request.getfixturevalue("database")
    return Place(folder, {"type": "sql", "uri": uri, "name": "transactions"})


@pytest.fixture
def lake(place: Place) -> Iterator[Lake]:
    with rowlake.connect(place.warehouse, catalog=place.catalog) as found:
        found.create_namespace("checks", if_not_exists=True)
        yield found


@pytest.fixture
def tables(lake: Lake, place: Place) -> Iterator[list[Table]]:
    schema = pa.schema([pa.field("id", pa.int64())])
    version = "2" if place.warehouse is None else "3"
    properties = {"format-version": version, "commit.retry.min-wait-ms": "10"}
    made = []
    for name in (ONE, TWO):
        lake.drop_table(name, if_exists=True)
        made.append(lake.create_table(name, schema, properties=properties))
        made[-1].append(rows(0, 8))
    yield made
    for name in (ONE, TWO):
        lake.drop_table(name)


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def data_files(table: Table) -> set[str]:
    handle = table.handle
    found = {one.location for one in Storage(handle.io_properties).list(table.location)}
    return {one for one in found if not one.endswith("metadata.json")}


def test_two_tables_land_together(lake: Lake, tables: list[Table]) -> None:
    with lake.transaction() as tx:
        made = [tx.table(ONE).append(rows(100, 2)).snapshot_id]
        tx.table(TWO).append(rows(200, 2))
        made.append(tx.table(TWO).delete(Leaf(("id",), Op.LT, (4,))).snapshot_id)
        assert [ids(table) for table in tables] == [list(range(8))] * 2
    assert ids(tables[0]) == [*range(8), 100, 101]
    assert ids(tables[1]) == [4, 5, 6, 7, 200, 201]
    assert [table.handle.metadata.current_snapshot_id for table in tables] == made
    assert len(tables[1].snapshots()) == 3


def test_a_race_is_made_again(lake: Lake, tables: list[Table]) -> None:
    with lake.transaction() as tx:
        made = [tx.table(name).append(rows(100, 2)).snapshot_id for name in (ONE, TWO)]
        tables[1].append(rows(300, 1))
    assert ids(tables[0]) == [*range(8), 100, 101]
    assert ids(tables[1]) == [*range(8), 100, 101, 300]
    assert [table.handle.metadata.current_snapshot_id for table in tables] == made
    if tables[1].format_version == 3:
        given = tables[1].arrow(["_row_id"])["_row_id"].to_pylist()
        assert sorted(given) == list(range(11))


def test_a_conflict_leaves_nothing(lake: Lake, tables: list[Table]) -> None:
    before = [data_files(table) for table in tables]
    heads = [table.handle.metadata.current_snapshot_id for table in tables]
    with pytest.raises(CommitConflictError) as raised, lake.transaction() as tx:
        tx.table(ONE).append(rows(100, 2))
        tx.table(TWO).delete(Leaf(("id",), Op.LT, (4,)))
        landed = tables[1].append(rows(1, 1))
        before[1] |= data_files(tables[1])
    assert (raised.value.table, raised.value.snapshot_id) == (TWO, landed.snapshot_id)
    assert tables[0].handle.metadata.current_snapshot_id == heads[0]
    assert tables[1].handle.metadata.current_snapshot_id == landed.snapshot_id
    assert data_files(tables[0]) == before[0]
    assert data_files(tables[1]) < before[1]


def test_metadata_lands_with_rows_in_one_commit(lake: Lake, tables: list[Table]) -> None:
    with lake.transaction() as tx:
        inside = tx.table(ONE)
        inside.set_properties({"a": "b"})
        inside.append(rows(100, 1))
        inside.create_branch("audit")
        inside.append(rows(200, 1), branch="audit")
    assert tables[0].properties["a"] == "b"
    assert ids(tables[0]) == [*range(8), 100]
    assert ids(tables[0], ref="audit") == [*range(8), 100, 200]


def test_racing_transactions_keep_two_tables_equal(place: Place, tables: list[Table]) -> None:
    """The REST server of Iceberg's tests commits table by table, so there a race may tear one.

    Whoever that happens to is told that the outcome is unknown.
    """
    done = race(append_to_both, RACERS, place.warehouse, place.catalog, (ONE, TWO), COMMITS)
    landed = set().union(*(one for one, _ in done))
    unknown = set().union(*(one for _, one in done))
    found = [set(ids(table)) - set(range(8)) for table in tables]
    assert landed | unknown == {n * 1000 + c for n in range(1, RACERS + 1) for c in range(COMMITS)}
    assert landed <= found[0] & found[1]
    assert found[0] ^ found[1] <= unknown
    if not is_rest(place):
        assert not unknown
        assert all(len(table.snapshots()) == RACERS * COMMITS + 1 for table in tables)


def is_rest(place: Place) -> bool:
    return bool(place.catalog and place.catalog["type"] == "rest")
