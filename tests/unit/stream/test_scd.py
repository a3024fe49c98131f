"""History by events: whatever the order in which they come, the versions are the same.

`ROWLAKE_SCD_ORDERS` sets how many random orders go through a table (1000 is the long form).
"""

from __future__ import annotations

import os
import random

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError, SchemaMismatchError, UnsupportedFeatureError
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.stream import scd
from rowlake.stream.apply_events import Event
from tests.lakes import make_lake

NAME = "shop.customers"
ORDERS = int(os.environ.get("ROWLAKE_SCD_ORDERS", "4"))
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
FIELDS = [*COLUMNS, pa.field(scd.START, pa.int64()), pa.field(scd.END, pa.int64())]
SCHEMA = Schema(
    pa.schema([one.with_metadata({FIELD_ID: str(at).encode()}) for at, one in enumerate(FIELDS, 1)])
)

pytestmark = pytest.mark.delta


def drawn_events(draw: random.Random) -> list[dict]:
    """Return events of a few keys, each with a sequence of its own, some of them deletes."""
    events = []
    for key in range(draw.randint(1, 3)):
        for at in draw.sample(range(30), draw.randint(1, 9)):
            deletes = draw.random() < 0.3
            city = None if deletes else f"city {draw.randint(0, 3)}"
            events.append({"id": key, "city": city, "at": at, "op": "d" if deletes else "u"})
    return events


def expected(events: list[dict]) -> list[tuple]:
    """Return the history by the plainest rule: sort, and each event ends the one before."""
    rows = []
    for key in {event["id"] for event in events}:
        own = sorted((one for one in events if one["id"] == key), key=lambda one: one["at"])
        for event, after in zip(own, [*own[1:], None], strict=True):
            if event["op"] != "d":
                rows.append((key, event["city"], event["at"], after and after["at"]))
    return sorted(rows, key=repr)


def drawn_batches(draw: random.Random, events: list[dict]) -> list[list[dict]]:
    """Return events in any order, some of them twice, cut into batches anywhere."""
    order = events + draw.sample(events, draw.randint(0, len(events)))
    draw.shuffle(order)
    batches: list[list[dict]] = [[]]
    for event in order:
        if draw.random() < 0.4:
            batches.append([])
        batches[-1].append(event)
    return batches


class PlainHistory:
    """A table as a dict of versions, and the deletes that it remembers."""

    def __init__(self) -> None:
        self.rows: dict[tuple, dict] = {}
        self.properties: dict[str, str] = {}
        self.location = "memory"

    def apply(self, batch: list[dict]) -> None:
        events = [
            Event(
                None if one["op"] == "d" else {"id": one["id"], "city": one["city"]},
                one,
                sequence=one["at"],
            )
            for one in batch
        ]
        remembered = scd.remembered_deletes(self, "main", ["id"], SCHEMA)
        found = scd.timelines(events, ["id"], remembered)
        for row in self.rows.values():
            if (row["id"],) in found:
                found[(row["id"],)].hold(row)
        change = scd.history_change(found, ["id"], SCHEMA, remembered)
        self.properties.update(change.table_properties)
        flags = change.net.deleted.to_pylist()
        groups = zip(change.net.rows.to_pylist(), flags, change.net.group, strict=True)
        for row, gone, group in groups:
            key = (row["id"], row[scd.START])
            if gone:
                del self.rows[key]
            elif group:
                self.rows[key] = {**self.rows[key], scd.END: row[scd.END]}
            else:
                self.rows[key] = row

    def history(self) -> list[tuple]:
        found = [
            (one["id"], one["city"], one[scd.START], one[scd.END]) for one in self.rows.values()
        ]
        return sorted(found, key=repr)


def test_a_thousand_orders_of_events_lead_to_the_same_history():
    for seed in range(1_000):
        draw = random.Random(seed)
        events = drawn_events(draw)
        table = PlainHistory()
        for batch in drawn_batches(draw, events):
            table.apply(batch)
        assert table.history() == expected(events), f"seed {seed}"


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def table(lake):
    return lake.create_table(NAME, COLUMNS)


def apply(table, events, **options):
    return table.apply_changes(
        events, keys=["id"], sequence_by="at", apply_as_deletes="op = 'd'", scd_type=2, **options
    )


def history(table) -> list[tuple]:
    found = table.arrow(["id", "city", scd.START, scd.END]).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


@pytest.mark.parametrize("seed", range(ORDERS))
def test_a_table_has_the_history_of_its_events(table, seed):
    draw = random.Random(10_000 + seed)
    events = drawn_events(draw)
    modes = ["copy-on-write"]
    if table.handle.can.row_level_deletes:
        modes += ["merge-on-read", "auto"]
    for number, batch in enumerate(drawn_batches(draw, events)):
        apply(table, batch, mode=draw.choice(modes), app_id="feed", batch=number)
    assert history(table) == expected(events)


def test_each_batch_is_one_commit(table):
    apply(table, [{"id": 1, "city": "Ulm", "at": 1, "op": "u"}])
    before = len(table.snapshots())
    late = {"id": 1, "city": "Bonn", "at": 0, "op": "u"}
    apply(table, [{"id": 1, "city": "Köln", "at": 2, "op": "u"}, late])
    assert len(table.snapshots()) == before + 1
    assert history(table) == [(1, "Bonn", 0, 1), (1, "Köln", 2, None), (1, "Ulm", 1, 2)]


def test_a_delete_without_a_version_is_remembered(table):
    apply(table, [{"id": 1, "city": None, "at": 5, "op": "d"}])
    assert history(table) == []
    apply(table, [{"id": 1, "city": "Ulm", "at": 3, "op": "u"}])
    assert history(table) == [(1, "Ulm", 3, 5)]


def test_a_branch_remembers_its_own_deletes(table):
    if not table.handle.can.branches:
        pytest.skip("the format has no branches")
    apply(table, [{"id": 2, "city": "Ulm", "at": 1, "op": "u"}])
    table.create_branch("b")
    apply(table, [{"id": 1, "city": None, "at": 5, "op": "d"}], branch="b")
    for branch in ("main", "b"):
        apply(table, [{"id": 1, "city": "Ulm", "at": 3, "op": "u"}], branch=branch)
    ends = {
        ref: {row["id"]: row[scd.END] for row in table.arrow(ref=ref).to_pylist()}
        for ref in ("main", "b")
    }
    assert ends == {"main": {1: None, 2: None}, "b": {1: 5, 2: None}}


def test_a_value_that_was_not_sent_is_that_of_the_version_before(table):
    toast = "__debezium_unavailable_value"
    for at, city in ((1, "Ulm"), (5, "Bonn"), (3, toast), (7, toast)):
        message = {"before": None, "after": {"id": 1, "city": city}, "op": "u", "ts_ms": at}
        table.apply_changes(
            [message], keys=["id"], format="debezium", sequence_by="ts_ms", scd_type=2
        )
    rows = [(1, "Bonn", 5, 7), (1, "Bonn", 7, None), (1, "Ulm", 1, 3), (1, "Ulm", 3, 5)]
    assert history(table) == rows


def test_a_column_that_events_lack_is_that_of_the_version_before(lake):
    fields = [*COLUMNS, pa.field("name", pa.string())]
    table = lake.create_table("shop.people", pa.schema(fields))
    apply(table, [{"id": 1, "city": "Ulm", "name": "Ada", "at": 1, "op": "u"}])
    apply(table, [{"id": 1, "city": "Bonn", "at": 5, "op": "u"}])
    apply(table, [{"id": 1, "city": "Trier", "at": 3, "op": "u"}])
    apply(table, [{"id": 2, "city": "Ulm", "at": 3, "op": "u"}])
    found = table.arrow(["id", "city", "name", scd.START]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [
        (1, "Bonn", "Ada", 5),
        (1, "Trier", "Ada", 3),
        (1, "Ulm", "Ada", 1),
        (2, "Ulm", None, 3),
    ]


def test_history_needs_a_sequence(table):
    with pytest.raises(InvalidStatementError, match="needs sequence_by"):
        table.apply_changes([{"id": 1}], keys=["id"], scd_type=2)
    with pytest.raises(SchemaMismatchError, match="at is null in an event"):
        apply(table, [{"id": 1, "city": "Ulm", "at": None, "op": "u"}, {"id": 2, "at": 1}])


def test_history_is_not_blind(table):
    with pytest.raises(UnsupportedFeatureError, match="needs the versions"):
        apply(table, [{"id": 1, "city": "Ulm", "at": 1, "op": "u"}], deletes="equality")


def test_history_beside_another_writer_is_planned_again(table):
    from tests.parts.stopping import meanwhile

    apply(table, [{"id": 1, "city": "Ulm", "at": 1, "op": "u"}])
    other = {"id": 1, "city": "Bonn", "at": 5, "op": "u"}
    with meanwhile(lambda: apply(table, [other])):
        apply(table, [{"id": 1, "city": "Köln", "at": 3, "op": "u"}])
    assert history(table) == [(1, "Bonn", 5, None), (1, "Köln", 3, 5), (1, "Ulm", 1, 3)]
