"""Tables change their format in place; the name means the other one from then on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.catalog import formats
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.mirror import MIRROR
from tests.mirrors import MAPPED, OTHER, V3, VECTORS, check_equal, rows

PROPERTIES = {"iceberg": V3, "delta": MAPPED}


@pytest.fixture(params=[None, "filesystem"], ids=["embedded", "filesystem"])
def lake(request, tmp_path):
    with connect(str(tmp_path / "lake"), request.param) as found:
        found.create_namespace("ns")
        yield found


def people(first, last):
    ids = range(first, last)
    return pa.table({"id": pa.array(ids, pa.int64()), "city": [f"c{i % 3}" for i in ids]})


def made(lake, kind, **more):
    table = lake.create_table(
        "ns.t",
        people(0, 1).schema,
        partition_by="city",
        properties={**PROPERTIES[kind], **more},
        format=kind,
    )
    table.append(people(0, 10))
    table.delete("id = 3")
    return table


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_table_is_converted_there_and_back(lake, kind):
    table = made(lake, kind)
    before = rows(table)
    other = lake.convert("ns.t", to=OTHER[kind])
    assert other.format == OTHER[kind]
    assert rows(other) == before
    assert lake.tables("ns") == ["ns.t"]
    again = lake.table("ns.t")
    again.append(people(20, 25))
    again.delete("id = 21")
    assert lake.table("ns.t").format == OTHER[kind]
    after = rows(lake.table("ns.t"))
    assert len(after) == 13
    back = lake.convert("ns.t", to=kind)
    assert (back.format, rows(back)) == (kind, after)
    back.append(people(30, 31))
    assert len(rows(lake.table("ns.t"))) == 14


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_mirrored_table_keeps_its_name_and_is_converted(lake, kind):
    table = made(lake, kind, **{MIRROR: OTHER[kind]})
    check_equal(table)
    found = lake.table("ns.t")
    assert found.format == kind
    assert lake.tables("ns") == ["ns.t"]
    before = rows(found)
    assert rows(lake.convert("ns.t", to=OTHER[kind])) == before


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_conversion_that_broke_off_is_finished(lake, kind, monkeypatch):
    before = rows(made(lake, kind))

    def fails(*_):
        raise OSError("gone")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="gone"):
        patched.setattr(formats, "give_name", fails)
        lake.convert("ns.t", to=OTHER[kind])
    found = lake.convert("ns.t", to=OTHER[kind]) if lake.table("ns.t").format == kind else None
    assert found is None or found.format == OTHER[kind]
    assert rows(lake.table("ns.t")) == before
    lake.table("ns.t").append(people(50, 51))
    assert len(rows(lake.table("ns.t"))) == 10


def test_the_table_as_it_was_takes_no_more_commits(lake):
    table = made(lake, "delta")
    old = lake.table(("delta", table.location))
    lake.convert("ns.t", to="iceberg")
    with pytest.raises(UnsupportedFeatureError, match="mirror of a table of another format"):
        old.append(people(0, 1))


def test_what_cannot_be_converted_stays(lake):
    schema = pa.schema([("id", pa.int64()), ("at", pa.time64("us"))])
    lake.create_table("ns.x", schema, properties=V3)
    with pytest.raises(UnsupportedFeatureError, match="Delta has no type"):
        lake.convert("ns.x", to="delta")
    table = lake.table("ns.x")
    assert table.format == "iceberg"
    table.append(pa.table({"id": [1]}, schema=schema.remove(1)))
    with pytest.raises(InvalidStatementError, match="format iceberg already"):
        lake.convert("ns.x", to="iceberg")


def test_a_plain_delta_table_is_converted(lake):
    table = lake.create_table(
        "ns.p", people(0, 1).schema, partition_by="city", properties=VECTORS, format="delta"
    )
    table.append(people(0, 10))
    table.delete("id = 1")
    found = lake.convert("ns.p", to="iceberg")
    found.append(people(10, 12))
    found.delete("id = 5")
    assert len(rows(lake.table("ns.p"))) == 10
