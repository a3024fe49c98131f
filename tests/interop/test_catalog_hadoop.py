"""Java's HadoopCatalog (behind Iceberg's REST server) and our file-system catalog on one folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from rowlake.catalog import tables
from rowlake.catalog.commit import commit_updates
from rowlake.catalog.open import open_catalog
from rowlake.errors import TableNotFoundError
from rowlake.model.outcome import Conflict, Landed
from tests.parts.catalogs import appended, appending, at_head, definition
from tests.parts.rest import rest_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog

HADOOP = "org.apache.iceberg.hadoop.HadoopCatalog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hadoop")


@pytest.fixture(scope="module")
def java(folder: Path) -> Iterator[Catalog]:
    with rest_catalog(folder, **{"catalog-impl": HADOOP}) as address:
        yield open_catalog(None, {"type": "rest", "uri": address})


@pytest.fixture(scope="module")
def ours(folder: Path, java: Catalog) -> Catalog:
    return open_catalog(str(folder / "warehouse"), "filesystem")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("ours_first", [True, False], ids=["ours-first", "java-first"])
def test_both_commit_to_one_table(
    java: Catalog, ours: Catalog, version: int, codec: str, ours_first: bool
) -> None:
    first, second = (ours, java) if ours_first else (java, ours)
    name = ("ns", f"t{version}_{codec}_{ours_first}")
    tables.create_namespace(first, "ns", exist_ok=True)
    given = definition(version, **{"write.metadata.compression-codec": codec})
    made = appended(tables.create_table(first, name, given), 1)
    there = tables.load_table(second, name)
    assert there.metadata.snapshots == made.metadata.snapshots
    assert there.metadata.schema() == made.metadata.schema()
    after = appended(appended(there, 2), 3)
    again = appended(tables.load_table(first, name), 4)
    assert isinstance(commit_updates(after, appending(after, 5), at_head(after)), Conflict)
    final = tables.load_table(second, name).metadata
    assert [one.snapshot_id for one in final.snapshots] == [1, 2, 3, 4]
    assert final.snapshots == again.metadata.snapshots
    assert len(final.metadata_log) == len(again.metadata.metadata_log) >= 4


def test_both_see_the_same_tables_and_namespaces(java: Catalog, ours: Catalog) -> None:
    tables.create_namespace(ours, "shared.by_us")
    tables.create_namespace(java, "shared.by_java")
    tables.create_table(ours, "shared.by_us.t", definition(2))
    tables.create_table(java, "shared.by_java.t", definition(2))
    for catalog in (java, ours):
        assert tables.list_namespaces(catalog, "shared") == [
            ("shared", "by_java"),
            ("shared", "by_us"),
        ]
        assert tables.list_tables(catalog, "shared.by_us") == [("shared", "by_us", "t")]
        assert tables.list_tables(catalog, "shared.by_java") == [("shared", "by_java", "t")]
    tables.drop_table(java, "shared.by_us.t")
    tables.drop_table(ours, "shared.by_java.t")
    for catalog, name in ((ours, "shared.by_us.t"), (java, "shared.by_java.t")):
        with pytest.raises(TableNotFoundError):
            tables.load_table(catalog, name)


def test_java_follows_our_hint_and_needs_none(java: Catalog, ours: Catalog, folder: Path) -> None:
    tables.create_namespace(ours, "hint", exist_ok=True)
    handle = tables.create_table(java, "hint.t", definition(2))
    ours_now = tables.load_table(ours, "hint.t")
    for number in range(3):
        updates = [SetPropertiesUpdate(updates={"n": str(number)})]
        outcome = commit_updates(ours_now, updates, [])
        assert isinstance(outcome, Landed)
        ours_now = outcome.handle
        assert tables.load_table(java, "hint.t").metadata.properties["n"] == str(number)
    (folder / "warehouse" / "hint" / "t" / "metadata" / "version-hint.text").unlink()
    assert tables.load_table(java, "hint.t").metadata.properties["n"] == "2"
    assert handle.metadata.table_uuid == ours_now.metadata.table_uuid
