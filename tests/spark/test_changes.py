"""Change feeds as DataFrames: by Spark tasks, with conditions, and like the driver's."""

from __future__ import annotations

from random import Random
from unittest import mock

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import InvalidStatementError
from rowlake.stream import changes as change_feeds
from rowlake.stream import changes_plan
from tests.histories.driver import run
from tests.histories.history import run_history
from tests.lakes import SALES, sales
from tests.parts.rows import rows_of


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("changes")), spark=spark) as found:
        found.create_namespace("db")
        yield found


@pytest.fixture
def in_tasks():
    """Have all work done by Spark tasks, and rewrites too large for one of them."""
    with (
        mock.patch.object(change_feeds, "is_tiny", lambda tasks, _: not tasks),
        mock.patch.object(changes_plan, "GROUP_BYTES", 1),
        mock.patch.object(change_feeds, "task_count", lambda *_: 3),
    ):
        yield


def make(lake, name, version="2"):
    lake.drop_table(name, if_exists=True)
    properties = {"format-version": version}
    return lake.create_table(name, SALES, properties=properties, partition_by=["store"])


def new(*ids):
    table = sales(max(ids) + 1).take(pa.array(ids))
    return table.set_column(4, "note", pa.array(["new"] * len(ids)))


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_tasks_find_the_same_changes_as_the_driver(lake, in_tasks, version, mode):
    table = make(lake, "db.t", version)
    first = table.append(sales(40))
    table.upsert(new(3, 4, 50), ["id"], mode=mode)
    table.delete("id in (3, 11)", mode=mode)
    table.upsert(new(7, 12), ["id", "store"], deletes="equality")
    for asked in ({}, {"keys": ["id"]}, {"net": True}, {"keys": ["id"], "net": True}):
        whole = table.changes(**asked)
        part = table.changes(start=first.snapshot_id, columns=["note", "id"], **asked)
        assert rows_of(whole) == rows_of(table.changes_arrow(**asked))
        wanted = table.changes_arrow(start=first.snapshot_id, columns=["note", "id"], **asked)
        assert rows_of(part) == rows_of(wanted)


@pytest.mark.parametrize("number", range(6))
def test_feeds_of_histories_are_the_same_in_tasks(lake, number):
    history = run_history(lake, [Random(f"feeds {number} {step}") for step in range(6)], run)
    for net in (False, True):
        wanted = rows_of(history.table.changes_arrow(net=net))
        with (
            mock.patch.object(change_feeds, "is_tiny", lambda tasks, _: not tasks),
            mock.patch.object(changes_plan, "GROUP_BYTES", 1),
        ):
            found = rows_of(history.table.changes(net=net))
        assert found == wanted


def test_conditions_see_columns_of_the_table_and_of_the_change(lake):
    table = make(lake, "db.where")
    first = table.append(sales(8))
    table.upsert(new(3, 4), ["id"])
    asked = {"start": first.snapshot_id, "keys": ["id"], "columns": ["id"]}
    found = table.changes(**asked, where="note = 'new' AND _change_type LIKE '%post%'")
    assert sorted((row.id, row._change_type) for row in found.collect()) == [
        (3, "update_postimage"),
        (4, "update_postimage"),
    ]
    assert found.columns[0] == "id" and "note" not in found.columns
    with pytest.raises(InvalidStatementError, match="nope"):
        table.changes(where="nope = 1")
