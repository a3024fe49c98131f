"""Structured Streaming into tables: every batch once, whatever Spark replays."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError
from rowlake.model.app_batch import APP_ID, BATCH_ID
from tests import stream_checks

NAME = "shop.orders"
FIELDS = "id bigint, status string, at bigint, op string"


@pytest.fixture
def lake(spark, tmp_path):
    with connect(str(tmp_path / "lake"), spark=spark) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path / "feed", str(tmp_path / "checkpoint"))


class Feed:
    """A folder of JSON files, one for each batch of a query."""

    def __init__(self, spark, folder, checkpoint) -> None:
        folder.mkdir()
        self.spark, self.folder, self.checkpoint, self.count = spark, folder, checkpoint, 0

    def add(self, *events: tuple) -> None:
        names = ("id", "status", "at", "op")
        lines = [json.dumps(dict(zip(names, event, strict=False))) for event in events]
        path = self.folder / f"{self.count:05}.json"
        path.write_text("\n".join(lines))
        # Spark takes files in the order of their times.
        os.utime(path, (1_700_000_000 + self.count, 1_700_000_000 + self.count))
        self.count += 1

    @property
    def frame(self):
        reader = self.spark.readStream.schema(FIELDS).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))

    @property
    def once(self) -> dict:
        return {"app_id": "feed", "checkpoint": self.checkpoint, "trigger": {"availableNow": True}}

    def forget_commit(self, number: int) -> None:
        """Have Spark replay a batch, as it does after a crash before the end of it."""
        folder = self.folder.parent / "checkpoint" / "commits"
        for name in (f"{number}", f".{number}.crc"):
            (folder / name).unlink(missing_ok=True)


def held(table) -> dict:
    rows = table.arrow().to_pylist()
    found = {row["id"]: row["status"] for row in rows}
    assert len(found) == len(rows)
    return found


def run(query):
    query.awaitTermination(120)
    assert query.exception() is None
    return query


def test_appends_land_once_though_a_batch_is_replayed(lake, feed):
    lake.sql(f"CREATE TABLE {NAME} ({FIELDS})")
    table = lake.table(NAME)
    feed.add((1, "new", 1, "u"))
    feed.add((2, "new", 1, "u"))
    query = run(table.stream_append(feed.frame, **feed.once))
    assert [result.rows_inserted for result in query.results] == [1, 1]
    progress = query.lastProgress
    assert (progress["batchId"], progress["numInputRows"]) == (1, 1)
    metrics = progress["observedMetrics"]["rowlake"]
    assert (metrics["rows_inserted"], metrics["skipped"]) == (1, False)
    assert metrics["snapshot_id"] == table.snapshots()[-1].snapshot_id
    told = [one["observedMetrics"]["rowlake"]["snapshot_id"] for one in query.recentProgress[:2]]
    assert told == [one.snapshot_id for one in table.snapshots()]
    marks = [(one.summary[APP_ID], one.summary[BATCH_ID]) for one in table.snapshots()]
    assert marks == [("feed", "0"), ("feed", "1")]
    feed.forget_commit(1)
    feed.add((3, "new", 1, "u"))
    query = run(table.stream_append(feed.frame, **feed.once))
    assert [result.skipped for result in query.results] == [True, False]
    assert held(table) == {1: "new", 2: "new", 3: "new"}


@pytest.mark.parametrize("deletes", ["auto", "equality"])
def test_upserts_follow_a_stream(lake, feed, deletes):
    lake.sql(f"CREATE TABLE {NAME} (id bigint, status string, at bigint)")
    table = lake.table(NAME)
    feed.add((1, "new", 1, "u"), (2, "new", 1, "u"), (1, "paid", 2, "u"))
    feed.add((2, None, 3, "d"), (3, "new", 3, "u"))
    query = run(
        table.stream_upsert(
            feed.frame,
            ["id"],
            sequence_by="at",
            apply_as_deletes="op = 'd'",
            deletes=deletes,
            **feed.once,
        )
    )
    assert (held(table), len(query.results)) == ({1: "paid", 3: "new"}, 2)


def test_merges_follow_a_stream(lake, feed):
    lake.sql(f"CREATE TABLE {NAME} (id bigint, status string, at bigint)")
    table = lake.table(NAME)
    feed.add((1, "new", 1, "u"), (2, "new", 1, "u"))
    feed.add((1, "paid", 2, "u"), (2, None, 2, "d"))
    query = table.stream_merge(
        feed.frame,
        ["id"],
        lambda merge: (
            merge.when_matched_delete("s.op = 'd'")
            .when_matched_update({"status": "s.status"}, "s.at > t.at")
            .when_not_matched_insert({"id": "s.id", "status": "s.status", "at": "s.at"})
        ),
        **feed.once,
    )
    run(query)
    assert held(table) == {1: "paid"}
    feed.forget_commit(1)
    run(table.stream_merge(feed.frame, ["id"], **feed.once))
    assert (held(table), len(table.snapshots())) == ({1: "paid"}, 2)


def test_a_large_batch_is_collapsed_by_spark(lake, feed, monkeypatch):
    monkeypatch.setattr("rowlake.stream.apply_rows.MOST_ROWS", 2)
    lake.sql(f"CREATE TABLE {NAME} (id bigint, status string, at bigint)")
    table = lake.table(NAME)
    table.append([{"id": 1, "status": "old", "at": 5}, {"id": 2, "status": "old", "at": 0}])
    feed.add((1, "late", 4, "u"), (2, None, 1, "d"), (3, "new", 1, "u"), (3, "newer", 2, "u"))
    run(
        table.stream_upsert(
            feed.frame, ["id"], sequence_by="at", apply_as_deletes="op = 'd'", **feed.once
        )
    )
    assert held(table) == {1: "old", 3: "newer"}


def test_a_query_without_its_checkpoint_is_stopped(lake, feed):
    lake.sql(f"CREATE TABLE {NAME} ({FIELDS})")
    table = lake.table(NAME)
    feed.add((1, "new", 1, "u"))
    feed.add((2, "new", 1, "u"))
    run(table.stream_append(feed.frame, **feed.once))
    shutil.rmtree(feed.checkpoint)
    query = table.stream_append(feed.frame, **feed.once)
    with pytest.raises(Exception, match="its checkpoint is new or older than the table"):
        query.awaitTermination(120)
    assert held(table) == {1: "new", 2: "new"}


def test_a_batch_that_fails_ends_the_query_with_an_error_of_rowlake(lake, feed, capfd):
    lake.sql(f"CREATE TABLE {NAME} ({FIELDS})")
    table = lake.table(NAME)
    feed.add((1, "new", 1, "u"))
    frame = feed.frame.selectExpr("CAST(status AS BIGINT) AS id", "status", "at", "op")
    query = table.stream_append(frame, **feed.once)
    with pytest.raises(InvalidStatementError, match="CAST_INVALID_INPUT") as raised:
        query.awaitTermination(120)
    assert query.exception() is raised.value
    told = capfd.readouterr().err
    assert "Traceback" not in told
    assert "\tat org.apache.spark" not in told
    assert held(table) == {}


@pytest.mark.parametrize("check", stream_checks.CHECKS, ids=lambda one: one.__name__)
def test_streams_between_tables(lake, tmp_path, check):
    check(lake, str(tmp_path / check.__name__))


def test_a_large_batch_with_a_null_key_is_refused(lake, feed, monkeypatch):
    monkeypatch.setattr("rowlake.stream.apply_rows.MOST_ROWS", 1)
    lake.sql(f"CREATE TABLE {NAME} ({FIELDS})")
    table = lake.table(NAME)
    feed.add((1, "new", 4, "u"), (None, "new", 1, "u"))
    query = table.stream_upsert(feed.frame, ["id"], **feed.once)
    with pytest.raises(Exception, match="id is null in an event"):
        query.awaitTermination(120)
    assert held(table) == {}
