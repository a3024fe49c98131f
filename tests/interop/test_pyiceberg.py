"""PyIceberg reads what we write, and we read what it writes, on one SQLite catalog."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

import rowlake
from tests.parts.rows import rows_of, sorted_rows
from tests.parts.samples import flat_rows, flat_schema, nested_rows, nested_schema

SAMPLES = {"flat": (flat_schema, flat_rows), "nested": (nested_schema, nested_rows)}


@pytest.fixture
def shared(tmp_path):
    """A lake and PyIceberg's own catalog object on the same database."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    properties = {"type": "sql", "uri": uri, "warehouse": str(tmp_path)}
    lake = rowlake.connect(str(tmp_path), catalog=properties)
    lake.create_namespace("db")
    theirs = SqlCatalog(lake.catalog.name, uri=uri, warehouse=str(tmp_path))
    yield lake, theirs
    lake.close()
    theirs.close()


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("partition_by", [(), ("bucket(3, id)",)], ids=["plain", "bucketed"])
def test_pyiceberg_reads_our_tables(shared, version, kind, partition_by):
    lake, _ = shared
    schema, rows = SAMPLES[kind]
    table = lake.create_table(
        "db.t", schema(), partition_by=partition_by, properties={"format-version": str(version)}
    )
    table.append(rows())
    table.append(rows())
    theirs = StaticTable.from_metadata(table.handle.metadata_location)
    # PyIceberg reads null lists of structs as empty ones; the file has nulls, as Java sees.
    seen = [name for name in table.arrow().column_names if name != "points"]
    assert rows_of(theirs.scan().to_arrow().select(seen)) == rows_of(table.arrow(seen))
    assert rows_of(theirs.scan("id > 2", selected_fields=("id",)).to_arrow()) == rows_of(
        table.arrow(["id"]).filter(pa.compute.field("id") > 2)
    )
    names = ["record_count", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"]
    files = [task.file for task in theirs.scan().plan_files()]
    seen = [(file.record_count, *(metrics_of(file, name) for name in names[1:])) for file in files]
    assert sorted_rows(seen) == rows_of(table.inspect("files").select(names))


def metrics_of(file, name: str) -> list[tuple]:
    return list(getattr(file, name).items())


def test_pyiceberg_writes_on(shared):
    lake, theirs = shared
    table = lake.create_table("db.t", flat_schema(), partition_by=["truncate(2, text)"])
    table.append(flat_rows())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = theirs.load_table("db.t")
        other.append(other.scan().to_arrow())
        assert rows_of(table.arrow()) == rows_of(other.refresh().scan().to_arrow())
        other.delete("id = 2")
        other.delete("text is null")
    table.append(flat_rows())
    found = rows_of(table.arrow())
    assert found == rows_of(other.refresh().scan().to_arrow())
    assert len(found) == 11


def test_pyiceberg_reads_an_evolved_table(shared, version):
    lake, _ = shared
    data = pa.table({"a": pa.array([1], pa.int32()), "gone": ["x"]})
    table = lake.create_table("db.t", data.schema, properties={"format-version": str(version)})
    table.append(data)
    lake.sql("ALTER TABLE db.t ALTER COLUMN a TYPE bigint")
    lake.sql("ALTER TABLE db.t DROP COLUMN gone")
    lake.sql("ALTER TABLE db.t RENAME COLUMN a TO b")
    lake.sql("ALTER TABLE db.t ADD COLUMN gone int FIRST")
    table.append(pa.table({"gone": pa.array([7], pa.int32()), "b": [2**40]}))
    theirs = StaticTable.from_metadata(table.handle.metadata_location)
    assert rows_of(theirs.scan().to_arrow()) == [(7, 2**40), (None, 1)] == rows_of(table.arrow())
