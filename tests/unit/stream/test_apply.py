"""Batches of events applied to a table: the last event of each key, in one commit."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError, SchemaMismatchError
from tests.any_format import commit_count
from tests.lakes import make_lake

NAME = "shop.orders"
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("status", pa.string()),
        pa.field("at", pa.int64()),
    ]
)

pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def table(lake):
    return lake.create_table(NAME, COLUMNS)


def held(table) -> dict[int, tuple]:
    rows = table.arrow().to_pylist()
    found = {row["id"]: (row["status"], row["at"]) for row in rows}
    assert len(found) == len(rows)
    return found


def event(key, status, at, op="u") -> dict:
    return {"id": key, "status": status, "at": at, "op": op}


def apply(table, events, **options):
    wanted = {"keys": ["id"], "sequence_by": "at", "apply_as_deletes": "op = 'd'", **options}
    return table.apply_changes(events, **wanted)


def test_the_last_event_of_a_key_wins(table):
    result = apply(table, [event(1, "paid", 2), event(1, "new", 1), event(2, "new", 1)])
    assert held(table) == {1: ("paid", 2), 2: ("new", 1)}
    assert (result.rows_inserted, commit_count(table)) == (2, 1)


def test_of_equal_sequences_the_last_to_arrive_wins(table):
    apply(table, [event(1, "one", 1), event(1, "two", 1), event(1, "three", 1)])
    assert held(table) == {1: ("three", 1)}


def test_without_a_sequence_events_come_in_their_order(table):
    apply(table, [event(1, "new", 9), event(1, "paid", 1)], sequence_by=None)
    assert held(table) == {1: ("paid", 1)}


def test_late_events_are_left_out(table):
    apply(table, [event(1, "paid", 5), event(2, "paid", 5)])
    apply(table, [event(1, "new", 4), event(2, None, 4, "d"), event(3, "new", 1)])
    assert held(table) == {1: ("paid", 5), 2: ("paid", 5), 3: ("new", 1)}


def test_a_row_without_a_sequence_is_older_than_any_event(table):
    table.append([{"id": 1, "status": "old", "at": None}])
    apply(table, [event(1, "new", 0)])
    assert held(table) == {1: ("new", 0)}


def test_events_delete_rows_by_a_condition(table):
    apply(table, [event(1, "new", 1), event(2, "new", 1)])
    result = apply(table, [event(1, None, 2, "d"), event(9, None, 2, "d")])
    assert (held(table), result.rows_deleted) == ({2: ("new", 1)}, 1)


def test_columns_that_events_lack_stay_as_they_are(table):
    apply(table, [event(1, "new", 1)])
    apply(table, [{"id": 1, "at": 2}], apply_as_deletes=None)
    assert held(table) == {1: ("new", 2)}


def test_equality_deletes_apply_events_without_reading(lake):
    table = lake.create_table(NAME, COLUMNS, properties={"format-version": "2"})
    if not table.handle.can.equality_deletes:
        pytest.skip("the table has no equality deletes")
    apply(table, [event(1, "new", 1), event(2, "new", 1)], deletes="equality")
    result = apply(
        table, [event(1, "paid", 2), event(2, None, 2, "d"), event(3, "new", 2)], deletes="equality"
    )
    assert held(table) == {1: ("paid", 2), 3: ("new", 2)}
    assert (result.delete_files_added, result.bytes_read) == (1, 0)
    with pytest.raises(SchemaMismatchError, match="every column is needed"):
        apply(table, [{"id": 1, "at": 3, "op": "u"}], deletes="equality")


def test_a_batch_lands_once(table):
    first = apply(table, [event(1, "new", 1)], app_id="feed", batch=7)
    again = apply(table, [event(1, "new", 1)], app_id="feed", batch=7)
    assert (first.skipped, again.skipped) == (False, True)
    assert commit_count(table) == 1


def test_an_empty_batch_lands_too(table):
    apply(table, [event(1, "new", 1)], app_id="feed", batch=0)
    result = table.apply_changes([], keys=["id"], app_id="feed", batch=1)
    assert (result.skipped, commit_count(table)) == (False, 2)
    assert table.apply_changes([], keys=["id"], app_id="feed", batch=1).skipped


def test_new_and_wider_columns_are_followed(table):
    rows = pa.table({"id": [1], "at": [1], "note": ["hello"], "op": ["u"]})
    with pytest.raises(SchemaMismatchError, match="has no column note"):
        apply(table, rows)
    apply(table, rows, schema_evolution=True)
    assert table.arrow(["id", "note"]).to_pylist() == [{"id": 1, "note": "hello"}]
    assert "op" not in table.arrow().column_names


def test_keys_and_sequences_must_be_there(table):
    with pytest.raises(SchemaMismatchError, match="id is null in 1 events"):
        apply(table, [event(None, "new", 1)])
    with pytest.raises(SchemaMismatchError, match="sequence_by is null in 1 events"):
        apply(table, [event(1, "new", None)])
    with pytest.raises(SchemaMismatchError, match="The events have no column when"):
        apply(table, [event(1, "new", 1)], sequence_by="when")


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"scd_type": 3}, "scd_type is 1 or 2"),
        ({"format": "avro"}, "Unknown format 'avro'"),
        ({"format": "debezium"}, "leave apply_as_deletes out"),
        ({"app_id": "feed"}, "app_id and batch go together"),
    ],
)
def test_what_does_not_go_together_is_refused(table, wrong, message):
    with pytest.raises(InvalidStatementError, match=message):
        apply(table, [event(1, "new", 1)], **wrong)


@pytest.mark.parametrize("seed", range(3))
def test_random_feeds_lead_to_the_rows_of_a_plain_model(table, seed):
    draw = random.Random(seed)
    modes = ["copy-on-write", *(["merge-on-read"] if table.handle.can.row_level_deletes else [])]
    model: dict[int, tuple] = {}
    at = 0
    for number in range(6):
        batch = []
        for _ in range(draw.randint(0, 12)):
            at += 1
            key, deletes = draw.randint(0, 9), draw.random() < 0.25
            batch.append(event(key, f"s{at}", at, "d" if deletes else "u"))
            if deletes:
                model.pop(key, None)
            else:
                model[key] = (f"s{at}", at)
        draw.shuffle(batch)
        apply(table, batch, mode=draw.choice(modes), app_id="feed", batch=number)
        assert held(table) == model
