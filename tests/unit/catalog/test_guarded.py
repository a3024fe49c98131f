"""PyIceberg's builders on a table of rowlake: a lost race is rowlake's conflict."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import IntegerType

from rowlake import connect
from rowlake.errors import CommitConflictError


@pytest.fixture(params=[None, "filesystem"], ids=["sqlite", "filesystem"])
def lake(tmp_path, request):
    with connect(str(tmp_path), request.param) as opened:
        opened.create_namespace("ns")
        opened.create_table("ns.t", pa.schema([("id", pa.int64())]))
        yield opened


def test_evolve_changes_the_schema(lake) -> None:
    with lake.table("ns.t").evolve().update_schema() as change:
        change.add_column("a", IntegerType())
    assert [one.name for one in lake.table("ns.t").schema.fields] == ["id", "a"]


@pytest.mark.parametrize("builder", ["update_schema", "update_spec"])
def test_a_race_that_evolve_loses_is_a_conflict(lake, builder) -> None:
    stale = lake.table("ns.t").evolve()
    with lake.table("ns.t").evolve().update_schema() as change:
        change.add_column("a", IntegerType())
    with lake.table("ns.t").evolve().update_spec() as change:
        change.add_identity("a")
    with pytest.raises(CommitConflictError) as raised, getattr(stale, builder)() as change:
        if builder == "update_schema":
            change.add_column("b", IntegerType())
        else:
            change.add_identity("id")
    assert raised.value.retryable
    assert raised.value.table == "ns.t"
    assert isinstance(raised.value, CommitFailedException), "PyIceberg's own retries know it"
