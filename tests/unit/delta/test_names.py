"""Delta tables by name: kept beside the catalogs that a lake has to itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError, TableNotFoundError, UnsupportedFeatureError
from tests.delta_logs import HandMade, people
from tests.lakes import rows_of


@pytest.fixture(params=[None, "filesystem"])
def lake(tmp_path, request):
    with connect(str(tmp_path / "lake"), request.param) as found:
        found.create_namespace("ns")
        yield found


def test_a_table_is_created_written_and_found_by_name(lake, tmp_path):
    made = lake.create_table("ns.t", people(1).schema, format="delta")
    made.append(people(1, 2))
    again = lake.table("ns.t")
    assert (again.format, again.name) == ("delta", "ns.t")
    assert again.location == str(tmp_path / "lake" / "ns" / "t")
    again.delete("id = 1")
    assert rows_of(lake.table("ns.t").arrow()) == rows_of(people(2))
    assert lake.tables() == lake.tables("ns") == ["ns.t"]
    assert lake.namespaces() == ["default", "ns"]


def test_a_table_that_exists_is_registered_renamed_and_dropped(lake, tmp_path):
    made = HandMade(tmp_path / "elsewhere").create()
    made.commit(made.add("f.parquet", people(1)))
    table = lake.register_table("ns.a", str(made.folder))
    assert table.arrow().num_rows == 1
    lake.rename_table("ns.a", "ns.b")
    assert (lake.exists("ns.a"), lake.exists("ns.b")) == (False, True)
    with pytest.raises(UnsupportedFeatureError, match="purge"):
        lake.drop_table("ns.b", purge=True)
    lake.drop_table("ns.b")
    assert not lake.exists("ns.b")
    assert lake.table(made.name).arrow().num_rows == 1


def test_one_name_is_of_one_table(lake, tmp_path):
    lake.create_table("ns.t", people(1).schema, format="delta")
    with pytest.raises(InvalidStatementError, match="already"):
        lake.create_table("ns.t", people(1).schema)
    with pytest.raises(InvalidStatementError, match="drop it first"):
        lake.create_table("ns.t", people(1).schema, format="iceberg", replace=True)
    lake.create_table("ns.i", people(1).schema)
    with pytest.raises(InvalidStatementError, match="already"):
        lake.register_table("ns.i", str(tmp_path / "lake" / "ns" / "t"))


def test_rows_and_name_come_together(lake):
    from rowlake.model.metadata_change import TableDefinition

    lake.create_table_as("ns.t", people(1, 2), TableDefinition(people(1).schema, format="delta"))
    assert rows_of(lake.table("ns.t").arrow()) == rows_of(people(1, 2))
    assert len(lake.table("ns.t").snapshots()) == 1


def test_namespaces_and_folders_must_be_there(lake, tmp_path):
    with pytest.raises(InvalidStatementError, match="namespace"):
        lake.create_table("other.t", pa.schema([("a", pa.int64())]), format="delta")
    with pytest.raises(TableNotFoundError):
        lake.register_table("ns.t", str(tmp_path / "nothing"))


def test_names_need_a_catalog_of_the_lake_s_own(tmp_path):
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("m", warehouse=str(tmp_path))
    with connect(str(tmp_path), catalog) as lake:
        lake.create_namespace("ns")
        with pytest.raises(UnsupportedFeatureError, match="by its path"):
            lake.create_table("ns.t", people(1).schema, format="delta")
