"""Snapshots that are expired while an operation runs: it goes on with what the table is now."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.commit.phases import Phase
from rowlake.errors import CorruptTableError
from rowlake.verbs import read
from rowlake.verbs.alter import change_schema
from tests.any_format import changing
from tests.lakes import SALES, files_in, make_lake, sales
from tests.parts.stopping import stopped_at

NAME = "shop.sales"

pytestmark = pytest.mark.iceberg


@pytest.fixture(params=["2", "3"])
def lake(tmp_path, request):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        given = {"format-version": request.param, "commit.retry.min-wait-ms": "1"}
        opened.create_table(NAME, SALES, properties=given).append(sales(100))
        yield opened


def expire(lake) -> None:
    """Put all rows into other files, and purge those that were there."""
    table = lake.table(NAME)
    table.rewrite_data_files(options={"rewrite-all": "true"})
    table.expire_snapshots(older_than="2100-01-01", retain_last=1)


def ids(lake) -> list[int]:
    return sorted(lake.table(NAME).arrow(["id"])["id"].to_pylist())


WRITES = {
    "append": (lambda t: t.append(sales(1, 500)), [*range(100), 500]),
    "delete": (lambda t: t.delete("id < 10"), [*range(10, 100)]),
    "upsert": (lambda t: t.upsert(sales(2, 99), ["id"]), [*range(101)]),
    "blind upsert": (
        lambda t: t.upsert(sales(1, 500), ["id"], deletes="equality"),
        [*range(100), 500],
    ),
}


@pytest.mark.parametrize("phase", [Phase.WRITTEN, Phase.VALIDATED, Phase.PRODUCED])
@pytest.mark.parametrize("kind", WRITES)
def test_a_write_lands_although_what_it_read_was_expired(lake, kind, phase):
    write, expected = WRITES[kind]
    with stopped_at(phase, lambda: expire(lake)):
        write(lake.table(NAME))
    assert ids(lake) == expected


def test_a_read_that_returned_nothing_yet_begins_again(lake, monkeypatch):
    table, plan = lake.table(NAME), read.planned

    def planned(*args, **kwargs):
        monkeypatch.setattr(read, "planned", plan)
        found = plan(*args, **kwargs)
        expire(lake)
        return found

    monkeypatch.setattr(read, "planned", planned)
    assert table.arrow(["id"]).num_rows == 100


def test_a_file_that_the_table_still_needs_is_damage(lake):
    table = lake.table(NAME)
    (path,) = [one for one in files_in(table.location) if one.endswith(".parquet")]
    table.append(sales(1, 500))
    Path(path).unlink()
    with pytest.raises(CorruptTableError, match="there is no such file") as raised:
        table.delete("amount > 0", mode="copy-on-write")
    assert raised.value.is_missing
    with pytest.raises(CorruptTableError, match=r"otherwise restore the file from a backup"):
        table.arrow()


def test_a_change_of_schema_that_lost_a_race_is_made_on_the_newest(lake):
    table = lake.table(NAME)
    handle = table.handle
    with changing(lake.table(NAME), "schema") as other:
        other.add_column("theirs", "string")
    change_schema(handle, lambda builder: builder.add_column("ours", "string"))
    assert lake.table(NAME).arrow().schema.names[-2:] == ["theirs", "ours"]
    assert pa.types.is_string(lake.table(NAME).arrow().schema.field("ours").type)
