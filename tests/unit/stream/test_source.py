"""The streaming source without Spark: offsets, limits, and what may happen to a table meanwhile."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain
from random import Random

import pyarrow as pa
import pytest
from pyiceberg.types import LongType, StringType

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.stream.source import TableStream
from rowlake.stream.source_offset import Offset
from rowlake.stream.source_options import options_of
from tests.any_format import changing
from tests.lakes import SALES, make_lake, sales

pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as found:
        found.create_namespace("ns")
        yield found


@pytest.fixture
def table(lake):
    return lake.create_table("ns.t", SALES, partition_by=["store"])


def stream_of(table, *, changes=False, start=None, start_as_of=None, files=None, rows=None):
    options = options_of(start, start_as_of, files, rows) | {"changes": str(changes).lower()}
    return TableStream(table.handle, "main", table.handle.view().schema, options)


class Query:
    """What Spark does with a source: batches between offsets, which survive as JSON."""

    def __init__(self, table, kept=None, **options):
        self.stream = stream_of(table, **options)
        self.position = kept if kept is not None else self.stream.initial()
        self.is_new = kept is None

    def batch(self) -> pa.Table:
        end = json.loads(json.dumps(self.stream.latest(None if self.is_new else self.position)))
        kernel, tasks = self.stream.plan(self.position, end)
        self.position, self.is_new = end, False
        return pa.Table.from_batches(
            [batch for task in tasks for batch in kernel(task)], self.stream.schema
        )

    def batches(self) -> list[pa.Table]:
        found = []
        while True:
            before = self.position
            found.append(self.batch())
            if self.position == before:
                return [each for each in found if each.num_rows]


def ids(tables) -> list[list[int]]:
    return [sorted(each["id"].to_pylist()) for each in tables]


def test_earliest_is_the_table_as_it_is_and_then_what_lands(table):
    table.append(sales(4))
    table.delete("id = 1")
    query = Query(table)
    assert ids(query.batches()) == [[0, 2, 3]]
    table.append(sales(1, first=7))
    table.append(sales(1, first=8))
    assert ids(query.batches()) == [[7, 8]]
    assert query.batches() == []


def test_latest_a_snapshot_and_a_time_begin_after_themselves(table):
    first = table.append(sales(1))
    table.append(sales(1, first=1))
    second = table.snapshots()[-1].timestamp_ms
    at = next(one.timestamp_ms for one in table.snapshots() if one.snapshot_id == first.snapshot_id)
    by_id = Query(table, start=first.snapshot_id)
    latest = Query(table, start="latest")
    table.append(sales(1, first=2))
    assert ids(by_id.batches()) == [[1, 2]]
    assert ids(latest.batches()) == [[2]]
    if second > at:
        assert ids(Query(table, start_as_of=at).batches()) == [[1, 2]]
    assert ids(Query(table, start_as_of=1).batches()) == [[0, 1, 2]]


def test_a_stream_of_an_empty_table_begins_with_its_first_commit(table):
    query = Query(table)
    assert query.batches() == []
    table.append(sales(2))
    assert ids(query.batches()) == [[0, 1]]


@pytest.mark.parametrize("limits", [{"files": 1}, {"files": 3}, {"rows": 5}])
def test_limits_split_commits_and_a_restart_goes_on_where_it_was(table, limits):
    table.append(sales(8))  # four partitions, so four files
    query = Query(table, **limits)
    found = [query.batch()]
    table.append(sales(8, first=8))
    for _ in range(20):  # a new process for every batch
        query = Query(table, json.loads(json.dumps(query.position)), **limits)
        found.append(query.batch())
    sizes = [each.num_rows for each in found if each.num_rows]
    assert sorted(chain(*ids(found))) == list(range(16))
    assert max(sizes) <= {"files": 2 * limits.get("files", 9), "rows": 5}[next(iter(limits))]
    assert query.batches() == []


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changes_of_every_kind_are_streamed(table, mode):
    first = table.append(sales(8))
    query = Query(table, start=first.snapshot_id, changes=True)
    table.delete("id = 3", mode=mode)
    new = sales(8).slice(5, 1).set_column(4, "note", pa.array(["new"]))
    table.upsert(new, ["id"], mode=mode)
    table.rewrite_data_files(options={"rewrite-all": "true"})
    (found,) = query.batches()
    told = [(row["_change_type"], row["id"], row["note"]) for row in found.to_pylist()]
    assert sorted(told) == [("delete", 3, "note 3"), ("delete", 5, "note 5"), ("insert", 5, "new")]


def test_a_stream_of_added_rows_refuses_other_changes(table):
    table.append(sales(4))
    query = Query(table)
    query.batches()
    table.rewrite_data_files(options={"rewrite-all": "true"})
    assert query.batches() == []
    table.delete("id = 1")
    with pytest.raises(UnsupportedFeatureError, match="Read it with changes=True"):
        query.batch()


@pytest.mark.parametrize("start", ["earliest", "latest"])
@pytest.mark.parametrize("limits", [{}, {"files": 1}])
def test_a_replay_of_the_first_batch_begins_where_it_began(table, start, limits):
    """Spark asks for the initial offset again, though the table has grown."""
    table.append(sales(8))
    query = Query(table, start=start, changes=True, **limits)
    began = query.stream.initial()
    table.append(sales(4, first=20))
    end = json.loads(json.dumps(query.stream.latest(None)))
    table.append(sales(2, first=30))
    again = Query(table, start=start, changes=True, **limits)
    assert again.position != began
    kernel, tasks = again.stream.plan(again.position, end)
    first, found = (
        sorted(row for task in planned for batch in read(task) for row in batch["id"].to_pylist())
        for read, planned in (query.stream.plan(began, end), (kernel, tasks))
    )
    assert found == first
    query = Query(table, end, start=start, changes=True, **limits)
    rest = list(chain(*ids(query.batches())))
    wanted = [*range(8), *range(20, 24), *range(30, 32)]
    assert sorted([*found, *rest]) == (wanted if start == "earliest" else wanted[8:])


@pytest.mark.not_delta("snapshots that expire")
def test_an_expired_snapshot_is_a_clear_error(table):
    table.append(sales(1))
    query = Query(table)
    query.batches()
    for first in range(1, 4):
        table.append(sales(1, first=first))
    table.expire_snapshots(older_than=1 << 42, retain_last=1)
    oldest = table.snapshots()[0].snapshot_id
    with pytest.raises(InvalidStatementError, match=f"has expired.*available is {oldest}"):
        query.batch()


@pytest.mark.not_delta("rollbacks")
def test_a_rollback_is_a_clear_error(table):
    first = table.append(sales(1))
    table.append(sales(1, first=1))
    query = Query(table)
    query.batches()
    table.rollback_to(first.snapshot_id)
    table.append(sales(1, first=2))
    with pytest.raises(InvalidStatementError, match="it was rolled back"):
        query.batch()


@pytest.mark.not_delta("names in a catalog")
def test_a_table_that_was_created_again_is_a_clear_error(lake, table):
    table.append(sales(1))
    query = Query(table)
    query.batches()
    lake.drop_table("ns.t")
    again = lake.create_table("ns.t", SALES)
    again.append(sales(1))
    with pytest.raises(InvalidStatementError, match="dropped and created again"):
        Query(again, query.position).batch()


@pytest.mark.not_delta("columns that are widened")
def test_added_columns_wait_and_changed_ones_are_a_clear_error(lake):
    table = lake.create_table("ns.plain", SALES)
    table.append(sales(1))
    query = Query(table)
    query.batches()
    with changing(table, "schema") as schema:
        schema.add_column("more", StringType())
    table.append(sales(1, first=1).append_column("more", pa.array(["x"])))
    (found,) = query.batches()
    assert "more" not in found.column_names
    with changing(table, "schema") as schema:
        schema.update_column("store", LongType())
    table.append(sales(1, first=2))
    with pytest.raises(InvalidStatementError, match="columns store were dropped or have another"):
        query.batch()
    (found,) = Query(table, query.position).batches()
    assert found["more"].to_pylist() == [None]


@pytest.mark.parametrize("seed", range(6))
def test_any_limits_and_restarts_give_every_change_once(lake, table, seed):
    random = Random(seed)
    limits = random.choice([{}, {"files": 1}, {"files": 2}, {"rows": 3}])
    query, held = Query(table, changes=True, **limits), []
    for step in range(8):
        mode = random.choice(["copy-on-write", "merge-on-read"])
        choice = random.random()
        if choice < 0.5 or not table.snapshots():
            table.append(sales(random.randint(1, 6), first=10 * step))
        elif choice < 0.75:
            table.delete(f"id % {random.randint(2, 5)} = 0", mode=mode)
        else:
            table.upsert(sales(3, first=10 * random.randrange(step + 1)), ["id"], mode=mode)
        for _ in range(random.randrange(4)):
            held.append(query.batch())
            if random.random() < 0.3:
                query = Query(table, query.position, changes=True, **limits)
    held += query.batches()
    told = pa.concat_tables(held).select(["_change_type", "id"]).to_pylist()
    rows = Counter(row["id"] for row in told if row["_change_type"] == "insert")
    rows.subtract(row["id"] for row in told if row["_change_type"] == "delete")
    assert rows == Counter(dict.fromkeys(rows, 0) | Counter(table.arrow()["id"].to_pylist()))


def test_wrong_options_are_refused(table):
    table.append(sales(1))
    with pytest.raises(InvalidStatementError, match="earliest, latest or the id"):
        Query(table, start="nowhere")
    with pytest.raises(InvalidStatementError, match="positive whole number"):
        Query(table, files=0).batch()
    with pytest.raises(InvalidStatementError, match="not both"):
        options_of(1, 2, None, None)
    with pytest.raises(InvalidStatementError, match="that rowlake did not write"):
        Offset.of({"version": 3})
