"""Storage and the file-system catalog on a real S3 server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.catalog import tables, versions
from rowlake.catalog.commit import commit_updates
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.catalog.open import open_catalog
from rowlake.errors import MissingFileError, StorageError, UnsupportedFeatureError
from rowlake.model.outcome import Conflict
from rowlake.storage import s3 as s3_storage
from rowlake.storage.files import Storage
from tests.parts.catalogs import (
    appended,
    appending,
    at_head,
    check_tables_and_namespaces,
    definition,
)
from tests.parts.process import free_port
from tests.parts.race import race
from tests.parts.s3 import BUCKET, s3
from tests.parts.writers import add_properties, create_same_table, create_versions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog

RACERS, VERSIONS, COMMITS = 4, 40, 5
ODD_NAMES = ["plain", "a b", "50%25", "é ü 日本", "k=v", "x#y?z&w", "semi;colon", "it's+", "a:b"]


@pytest.fixture(scope="module")
def properties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with s3(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture
def storage(properties: dict[str, str]) -> Storage:
    return Storage(properties)


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return f"s3://{BUCKET}/{tmp_path.name}"


@pytest.fixture
def catalog(properties: dict[str, str], warehouse: str) -> Catalog:
    opened = open_catalog(warehouse, {"type": "filesystem", **properties})
    tables.create_namespace(opened, "ns")
    return opened


# -- storage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_round_trip(storage: Storage, tmp_path: Path, scheme: str, name: str) -> None:
    folder = f"{scheme}://{BUCKET}/{tmp_path.name}"
    written, created = f"{folder}/{name}/w {name}", f"{folder}/{name}/c {name}"
    storage.write(written, b"bytes")
    assert storage.create(created, b"more")
    assert not storage.create(created, b"other")
    assert storage.read(written) == b"bytes"
    assert storage.read(created) == b"more"
    assert {found.location: found.size_in_bytes for found in storage.list(folder)} == {
        written: 5,
        created: 4,
    }
    assert storage.delete([written, created, f"{folder}/none"]) == []
    assert not storage.exists(written)
    assert list(storage.list(folder)) == []


def test_many_objects_are_deleted(storage: Storage, warehouse: str) -> None:
    locations = [f"{warehouse}/{number}" for number in range(50)]
    for location in locations:
        storage.create(location, b"")
    assert storage.delete(locations) == []
    assert list(storage.list(warehouse)) == []


def test_each_version_has_one_winner_and_is_whole(
    storage: Storage, properties: dict[str, str], warehouse: str
) -> None:
    won = race(create_versions, RACERS, warehouse, properties, VERSIONS)
    assert sorted(version for one in won for version in one) == list(range(VERSIONS))
    for number, made in enumerate(won):
        for version in made:
            assert storage.read(f"{warehouse}/v{version}") == f"{number}".encode() * 5000


def test_a_put_whose_answer_was_lost_knows_its_own_object(
    storage: Storage, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import obstore

    original = obstore.put

    def sent_twice(*arguments: Any, **options: Any) -> Any:
        original(*arguments, **options)
        return original(*arguments, **options)

    monkeypatch.setattr(obstore, "put", sent_twice)
    assert storage.create(f"{warehouse}/v1", b"ours")
    monkeypatch.undo()
    assert not storage.create(f"{warehouse}/v1", b"ours")


def test_a_server_that_ignores_the_condition_is_refused_before_anything_is_written(
    storage: Storage, warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import obstore

    original = obstore.put

    def overwriting(*arguments: Any, **options: Any) -> Any:
        return original(*arguments, **{**options, "mode": "overwrite"})

    monkeypatch.setattr(s3_storage, "_SAFE", set())
    monkeypatch.setattr(obstore, "put", overwriting)
    with pytest.raises(UnsupportedFeatureError, match="ignores If-None-Match"):
        storage.create(f"{warehouse}/v1", b"")
    assert list(storage.list(warehouse)) == []


def test_failures_say_what_is_wrong(storage: Storage, properties: dict[str, str]) -> None:
    with pytest.raises(MissingFileError, match="no such file"):
        storage.read(f"s3://{BUCKET}/none")
    for act in (
        lambda: storage.write("s3://no-such-bucket/x", b""),
        lambda: storage.create("s3://no-such-bucket/x", b""),
        lambda: list(storage.list("s3://no-such-bucket/x")),
    ):
        with pytest.raises(StorageError, match="no such bucket"):
            act()


def test_an_endpoint_that_is_not_there_is_said_in_time(properties: dict[str, str]) -> None:
    nowhere = Storage(
        {**properties, "s3.endpoint": f"http://127.0.0.1:{free_port()}", "s3.connect-timeout": "1"}
    )
    started = time.monotonic()
    with pytest.raises(StorageError, match="no connection"):
        nowhere.read(f"s3://{BUCKET}/x")
    with pytest.raises(StorageError, match="no connection"):
        nowhere.create(f"s3://{BUCKET}/x", b"")
    assert time.monotonic() - started < 60


def test_the_environment_gives_what_the_properties_do_not(
    properties: dict[str, str], warehouse: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", properties["s3.endpoint"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    s3_storage._store.cache_clear()
    storage = Storage({})
    assert storage.create(f"{warehouse}/x", b"1")
    assert storage.read(f"{warehouse}/x") == b"1"


# -- the file-system catalog ------------------------------------------------------------------


def test_tables_and_namespaces_work(catalog: Catalog) -> None:
    check_tables_and_namespaces(catalog, renames=False)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_snapshots_land(catalog: Catalog, version: int, storage: Storage) -> None:
    made = tables.create_table(catalog, "ns.t", definition(version))
    after = appended(made, 1)
    assert isinstance(commit_updates(made, appending(made, 2), at_head(made)), Conflict)
    assert tables.load_table(catalog, "ns.t").metadata == after.metadata
    assert isinstance(catalog, FileSystemCatalog)
    folder = catalog.folder_of(("ns", "t"))
    names = sorted(found.location.rpartition("/")[2] for found in storage.list(folder))
    assert names == ["v1.metadata.json", "v2.metadata.json", versions.HINT]
    storage.delete([f"{folder}/metadata/{versions.HINT}"])
    assert tables.load_table(catalog, "ns.t").metadata == after.metadata


def test_racing_processes_lose_nothing(properties: dict[str, str], warehouse: str) -> None:
    given = {"type": "filesystem", **properties}
    created = race(create_same_table, RACERS, warehouse, given, "race.t")
    assert sum(created) == 1
    race(add_properties, RACERS, warehouse, given, "race.t", COMMITS)
    found = tables.load_table(open_catalog(warehouse, given), "race.t").metadata.properties
    expected = {f"w{number}.{commit}" for number in range(RACERS) for commit in range(COMMITS)}
    assert set(found) - {"by"} == expected


def test_a_bucket_that_is_not_there_is_known_at_once(properties: dict[str, str]) -> None:
    with pytest.raises(StorageError, match="no such bucket"):
        open_catalog("s3://no-such-bucket/wh", {"type": "filesystem", **properties})


# -- orphans ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_flat", [False, True])
def test_orphans_go_and_live_files_stay_under_any_scheme(
    storage: Storage, properties: dict[str, str], warehouse: str, is_flat: bool
) -> None:
    lake = connect(warehouse, {"type": "filesystem", **properties})
    lake.create_namespace("ns")
    table = lake.create_table("ns.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    as_s3a = table.location.replace("s3://", "s3a://")
    table.set_properties({"write.data.path": f"{as_s3a}/data"})
    table.append(pa.table({"id": [3]}))
    left = [f"{as_s3a}/data/{name}/x {name}" for name in ODD_NAMES]
    for location in left:
        storage.write(location, b"left")
    before = {one.location for one in storage.list(as_s3a)}
    tomorrow = time.time() * 1000 + 86_400_000
    options = {"older_than": tomorrow, "force": True, "prefix_listing": is_flat}
    planned = table.remove_orphan_files(location=as_s3a, **options)
    assert set(planned.orphan_file_location) == set(left)
    assert planned.size_in_bytes == 4 * len(left)
    done = table.remove_orphan_files(dry_run=False, **options)
    assert {one.replace("s3://", "s3a://") for one in done.orphan_file_location} == set(left)
    assert {one.location for one in storage.list(as_s3a)} == before - set(left)
    assert table.arrow().num_rows == 3
