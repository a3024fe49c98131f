"""Whole tables on real servers: catalogs in PostgreSQL and behind REST, files in S3.

Spark here has no S3 client: whatever tasks read and write there goes through rowlake's kernels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from rowlake.storage.files import Storage
from tests.parts.postgres import postgres
from tests.parts.race import race
from tests.parts.rest import rest_catalog
from tests.parts.s3 import BUCKET, s3
from tests.parts.writers import append_batches
from tests.table_checks import CHECKS, check_rows_are_replaced_by_key_unread, fresh, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RACERS, COMMITS = 3, 4
KINDS = {
    "postgres-v2": 2,
    "rest-v3": 3,
    "s3-filesystem-v3": 3,
}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as address:
        yield address


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rest_catalog(tmp_path_factory.mktemp("rest")) as found:
        yield found


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with s3(tmp_path_factory.mktemp("s3")) as found:
        yield found


@dataclass(frozen=True)
class Place:
    """What opens a lake on servers; `version` is the format version of its tables."""

    warehouse: str | None
    catalog: dict[str, str]
    version: int


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    warehouse = f"s3://{BUCKET}/{kind}" if kind.startswith("s3") else str(folder / "warehouse")
    if kind.startswith("rest"):
        return Place(None, {"type": "rest", "uri": request.getfixturevalue("rest")}, KINDS[kind])
    catalog = dict(request.getfixturevalue("bucket")) if kind.startswith("s3") else {}
    if "filesystem" in kind:
        catalog["type"] = "filesystem"
    else:
        catalog |= {"type": "sql", "uri": request.getfixturevalue("database"), "name": kind}
    return Place(warehouse, catalog, KINDS[kind])


@pytest.fixture(scope="module")
def lake(place: Place, spark: Any) -> Iterator[rowlake.Lake]:
    found = rowlake.connect(place.warehouse, catalog=place.catalog, spark=spark)
    yield found
    found.sql("DROP NAMESPACE IF EXISTS checks CASCADE")
    found.close()


# What Spark gathers by key is the same wherever a table lives, and slow.
HERE = [check for check in CHECKS if check is not check_rows_are_replaced_by_key_unread]


@pytest.mark.parametrize("check", HERE, ids=lambda check: check.__name__)
def test_tables(check: Callable[[Any, int], None], lake: rowlake.Lake, place: Place) -> None:
    check(lake, place.version)


def test_racing_appends_all_land(lake: rowlake.Lake, place: Place) -> None:
    table = fresh(lake, "raced", "id bigint", place.version)
    table.set_properties({"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "10"})
    race(append_batches, RACERS, place.warehouse, place.catalog, "checks.raced", COMMITS)
    total = RACERS * COMMITS
    assert sorted(table.arrow()["id"].to_pylist()) == list(range(total * 10))
    assert rows(lake, "SELECT count(*), sum(id) FROM checks.raced") == [
        (total * 10, sum(range(total * 10)))
    ]
    snapshots = table.snapshots()
    assert [found.sequence_number for found in snapshots] == list(range(1, total + 1))
    if place.version == 3:
        given = table.arrow(["id", "_row_id"])["_row_id"].to_pylist()
        assert sorted(given) == list(range(total * 10))


def test_what_was_written_can_be_read_from_its_metadata_file(
    lake: rowlake.Lake, place: Place
) -> None:
    table = fresh(lake, "raw", "id bigint, s string", place.version)
    table.append([{"id": 1, "s": "a"}, {"id": 2, "s": None}])
    handle = table.handle
    raw = json.loads(Storage(handle.io_properties).read(str(handle.metadata_location)))
    assert raw["format-version"] == place.version
    assert raw["current-snapshot-id"] == table.snapshots()[-1].snapshot_id
    assert raw.get("next-row-id") == (2 if place.version == 3 else None)
