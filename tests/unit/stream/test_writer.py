"""A writer for small feeds: what is flushed is in the table, once."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import CommitConflictError, InvalidStatementError, SchemaMismatchError
from tests.any_format import commit_count
from tests.lakes import make_lake

NAME = "shop.stock"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("note", pa.string()),
    ]
)

pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        opened.create_table(NAME, COLUMNS, properties={"commit.retry.min-wait-ms": "1"})
        yield opened


@pytest.fixture
def table(lake):
    return lake.table(NAME)


def held(table) -> dict[int, tuple]:
    rows = table.arrow().to_pylist()
    found = {row["id"]: (row["count"], row["note"]) for row in rows}
    assert len(found) == len(rows)
    return found


def row(key, count=1, note="x") -> dict:
    return {"id": key, "count": count, "note": note}


def test_a_flush_writes_what_waits_in_one_commit(table):
    with table.writer(keys=["id"]) as writer:
        writer.upsert([row(1), row(2)])
        writer.upsert(row(1, 5))
        writer.delete([2, 3])
        result = writer.flush()
        assert result.snapshot_id == table.snapshots()[-1].snapshot_id
        assert held(table) == {1: (5, "x")}
        assert writer.flush().snapshot_id is None
    assert commit_count(table) == 1


def test_leaving_the_block_flushes_unless_it_fails(table):
    with table.writer(keys=["id"]) as writer:
        writer.upsert(row(1))
    with pytest.raises(RuntimeError), table.writer(keys=["id"]) as writer:
        writer.upsert(row(2))
        raise RuntimeError
    assert held(table) == {1: (1, "x")}
    with pytest.raises(InvalidStatementError, match="is closed"):
        writer.upsert(row(3))


def test_rows_are_flushed_by_their_number(table):
    with table.writer(keys=["id"], flush_rows=2, app_id="feed") as writer:
        for key in range(5):
            writer.upsert(row(key))
        assert commit_count(table) == 2
    assert len(held(table)) == 5


def test_rows_are_flushed_in_time(table):
    with table.writer(keys=["id"], flush_seconds=0.05) as writer:
        writer.upsert(row(1))
        deadline = time.monotonic() + 10
        while not writer.flushes and time.monotonic() < deadline:
            time.sleep(0.02)
        assert held(table) == {1: (1, "x")}


def test_columns_that_a_row_lacks_keep_their_values(table):
    table.append([row(1, 1, "old"), row(2, 2, "old")])
    with table.writer(keys=["id"]) as writer:
        writer.upsert([{"id": 1, "count": 9}])
        writer.upsert([{"id": 2, "note": "new"}, {"id": 3, "note": "new"}])
        writer.upsert([{"id": 3, "count": 7}])
    assert held(table) == {1: (9, "old"), 2: (2, "new"), 3: (7, "new")}


def test_many_threads_write_through_one_writer(table):
    with table.writer(keys=["id"], flush_rows=25, app_id="feed") as writer:

        def feed(first: int) -> None:
            for key in range(first, first + 40):
                writer.upsert(row(key, first))

        threads = [threading.Thread(target=feed, args=(start,)) for start in (0, 100, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert held(table) == {k: (s, "x") for s in (0, 100, 200) for k in range(s, s + 40)}


def test_a_flush_whose_answer_was_lost_is_not_written_twice(table):
    def lose(_) -> None:
        raise KeyboardInterrupt

    writer = table.writer(keys=["id"], app_id="feed")
    writer.upsert(row(1))
    with pytest.raises(KeyboardInterrupt), at_phase(Phase.SWAPPED, lose):
        writer.flush()
    writer.upsert(row(2))
    writer.close()
    assert held(table) == {1: (1, "x"), 2: (1, "x")}
    assert commit_count(table) == 2


def test_a_flush_that_failed_is_tried_again_with_what_came_later(table):
    def fail(_) -> None:
        raise OSError("the disk is full")

    writer = table.writer(keys=["id"], app_id="feed")
    writer.upsert(row(1, 1))
    with pytest.raises(OSError, match="disk"), at_phase(Phase.WRITTEN, fail):
        writer.flush()
    writer.upsert(row(1, 2))
    with pytest.raises(OSError, match="disk"), at_phase(Phase.WRITTEN, fail):
        writer.flush()
    writer.upsert(row(3))
    writer.close()
    assert held(table) == {1: (2, "x"), 3: (1, "x")}


def test_a_second_writer_with_the_same_app_id_stops_the_first(lake, table):
    first = table.writer(keys=["id"], app_id="feed")
    first.upsert(row(1))
    first.flush()
    with lake.table(NAME).writer(keys=["id"], app_id="feed") as second:
        second.upsert(row(2))
    first.upsert(row(3))
    with pytest.raises(CommitConflictError, match="with app id feed"):
        first.flush()
    assert set(held(table)) == {1, 2}


def test_what_does_not_fit_is_refused_when_it_comes(table):
    with table.writer(keys=["id"]) as writer:
        with pytest.raises(SchemaMismatchError, match="has no column colour"):
            writer.upsert({"id": 1, "colour": "red"})
        with pytest.raises(InvalidStatementError, match="has the columns id, not 2 values"):
            writer.delete([(1, 2)])
    with pytest.raises(InvalidStatementError, match="flush_rows is 1 or more"):
        table.writer(keys=["id"], flush_rows=0)
    assert held(table) == {}
