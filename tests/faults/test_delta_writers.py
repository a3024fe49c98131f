"""Many writers of one Delta table: every commit lands once, and versions have no holes.

On a local disk and on an S3 server: put-if-absent is all that keeps writers apart.
`ROWLAKE_DELTA_COMMITS` sets how many commits each of the eight writers makes; 50 make 400.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import rowlake
from rowlake.storage.files import Storage
from tests.parts.race import race
from tests.parts.s3 import BUCKET, s3
from tests.parts.writers import append_rows, delete_own_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITERS = 8
# The server answers one request at a time: there a few commits take as long as many on a disk.
COMMITS = {"disk": 8, "s3": 2}
ASKED = int(os.environ.get("ROWLAKE_DELTA_COMMITS", "0"))
SECONDS = 200 + 20 * ASKED
SCHEMA = pa.schema([("id", pa.int64())])
# Waits are short, as there are many losers; the checkpoints are races too.
PROPERTIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "50",
    "commit.retry.total-timeout-ms": "600000",
    "delta.checkpointInterval": "7",
    "delta.enableDeletionVectors": "true",
}


@dataclass(frozen=True)
class Place:
    """Where a table is, what opens its files, and how many commits each writer makes."""

    warehouse: str
    catalog: object
    name: tuple[str, str]
    properties: dict[str, str]
    commits: int


@pytest.fixture(params=COMMITS)
def place(request, tmp_path, tmp_path_factory) -> Iterator[Place]:
    commits = ASKED or COMMITS[request.param]
    if request.param == "disk":
        yield Place(str(tmp_path / "lake"), None, ("delta", str(tmp_path / "t")), {}, commits)
        return
    with s3(tmp_path_factory.mktemp("s3")) as properties:
        warehouse = f"s3://{BUCKET}/{tmp_path.name}"
        catalog = {"type": "filesystem", **properties}
        yield Place(warehouse, catalog, ("delta", f"{warehouse}/t"), properties, commits)


def commits_of(place: Place) -> dict[int, dict[str, object]]:
    """Return the commitInfo of every version, by its number."""
    storage, found = Storage(place.properties), {}
    for one in storage.list(f"{place.name[1]}/_delta_log"):
        name = one.location.rsplit("/", 1)[1]
        if name.endswith(".json") and name.removesuffix(".json").isdigit():
            first = storage.read(one.location).split(b"\n", 1)[0]
            found[int(name.removesuffix(".json"))] = json.loads(first)["commitInfo"]
    return found


@pytest.mark.timeout(SECONDS + 60)
def test_writers_that_race_for_versions_lose_no_commit(place):
    given = (place.warehouse, place.catalog, place.name, place.commits)
    with rowlake.connect(place.warehouse, place.catalog) as lake:
        lake.create_table(place.name, SCHEMA, properties=PROPERTIES)
        race(append_rows, WRITERS, *given, timeout_seconds=SECONDS)
        ids = sorted(lake.table(place.name).arrow()["id"].to_pylist())
    assert ids == sorted(n * 1000 + row for n in range(WRITERS) for row in range(place.commits))
    commits = commits_of(place)
    assert sorted(commits) == list(range(WRITERS * place.commits + 1))
    assert len({one["txnId"] for one in commits.values()}) == len(commits)


@pytest.mark.timeout(SECONDS + 60)
def test_writers_of_other_rows_of_one_file_all_land(place):
    """Vectors of one data file are merged: a writer that lost the race keeps what others did."""
    given = (place.warehouse, place.catalog, place.name, place.commits)
    ids = [n * 1000 + row for n in range(WRITERS) for row in range(place.commits + 1)]
    with rowlake.connect(place.warehouse, place.catalog) as lake:
        lake.create_table(place.name, SCHEMA, properties=PROPERTIES)
        lake.table(place.name).append(pa.table({"id": ids}))
        race(delete_own_rows, WRITERS, *given, timeout_seconds=SECONDS)
        found = sorted(lake.table(place.name).arrow()["id"].to_pylist())
    assert found == [n * 1000 + place.commits for n in range(WRITERS)]
    assert sorted(commits_of(place)) == list(range(WRITERS * place.commits + 2))
