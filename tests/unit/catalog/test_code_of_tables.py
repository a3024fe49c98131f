"""Properties of a table that name classes, endpoints or credentials: nothing of it is done."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table.locations import load_location_provider

from rowlake import connect
from rowlake.catalog.generic import GenericBackend
from rowlake.catalog.io import OURS
from rowlake.catalog.tables import load_table
from rowlake.iceberg._compat import without_code_of_tables

MODULE = "named_by_a_table"
SCHEMA = pa.schema([("id", pa.int64())])
HOSTILE = {
    "py-io-impl": f"{MODULE}.FileIO",
    "write.py-location-provider.impl": f"{MODULE}.Locations",
    "py-catalog-impl": f"{MODULE}.Catalog",
    "s3.retry-strategy-impl": f"{MODULE}.Retry",
}


@dataclass
class Trap:
    """A module that notes when it is loaded."""

    folder: str

    @property
    def is_loaded(self) -> bool:
        return MODULE in sys.modules


@pytest.fixture
def trap(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / f"{MODULE}.py").write_text("FileIO = Locations = lambda *given: given\n")
    monkeypatch.syspath_prepend(folder)
    yield Trap(str(folder))
    sys.modules.pop(MODULE, None)


@pytest.mark.parametrize("kind", ["embedded", "filesystem"])
def test_classes_that_a_table_names_are_not_loaded(tmp_path, trap, kind):
    catalog = None if kind == "embedded" else "filesystem"
    with connect(str(tmp_path / "lake"), catalog=catalog) as lake:
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", SCHEMA, properties=HOSTILE)
        table.append(pa.table({"id": [1, 2]}))
        assert lake.table("ns.t").arrow().num_rows == 2
        assert lake.catalog.load_table("ns.t").metadata.properties["py-io-impl"]
        lake.catalog.create_table("ns.other", table.handle.metadata.schema(), properties=HOSTILE)
    assert not trap.is_loaded


def test_catalogs_used_through_pyiceberg_load_no_class_of_a_table(tmp_path, trap):
    catalog = InMemoryCatalog("c", warehouse=str(tmp_path), **{"py-io-impl": OURS})
    catalog.create_namespace("ns")
    with without_code_of_tables(catalog):
        catalog.create_table("ns.t", SCHEMA, properties=HOSTILE)
    backend = GenericBackend(catalog)
    handle = backend.load(("ns", "t"), None)
    backend.commit(handle, (), ())
    assert not trap.is_loaded


def test_what_users_call_of_pyiceberg_themselves_is_left_alone(trap):
    load_location_provider("/t", HOSTILE)
    assert trap.is_loaded


@pytest.mark.parametrize("kind", ["embedded", "filesystem", "through PyIceberg"])
def test_a_table_cannot_say_where_the_catalogs_credentials_are_sent(tmp_path, kind):
    given = {"s3.access-key-id": "A", "s3.endpoint": "http://ours", "py-io-impl": OURS}
    hostile = {"s3.endpoint": "http://evil", "s3.proxy-uri": "http://evil", "s3.region": "x"}
    where = str(tmp_path / "lake")
    catalogs = {
        "embedded": None,
        "filesystem": {"type": "filesystem", **given},
        "through PyIceberg": InMemoryCatalog("c", warehouse=where, **given),
    }
    with connect(where, catalog=catalogs[kind]) as lake:
        lake.catalog.properties.update(given)
        lake.create_namespace("ns")
        lake.create_table("ns.t", SCHEMA, properties=hostile)
        if kind == "through PyIceberg":
            loaded = GenericBackend(lake.catalog).load(("ns", "t"), None)
        else:
            loaded = load_table(lake.catalog, "ns.t")
    wanted = {"s3.access-key-id": "A", "s3.endpoint": "http://ours"}
    assert loaded.io_properties == wanted
    assert loaded.storage.properties == wanted
