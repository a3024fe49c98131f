"""`lake.read_stream` and `spark.readStream.format("rowlake")`: batches, restarts, errors."""

from __future__ import annotations

from itertools import chain

import pytest

import rowlake
from tests.lakes import SALES, sales


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("streams")), spark=spark) as found:
        found.create_namespace("ns")
        yield found


@pytest.fixture
def table(lake):
    lake.drop_table("ns.t", if_exists=True)
    return lake.create_table("ns.t", SALES, partition_by=["store"])


def drained(frame, checkpoint, rows):
    """Run a query to the end of what there is; its batches go to a list."""

    def keep(batch, number):
        found = batch.collect()
        if found:
            rows.append((number, found))

    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()


def ids(rows):
    return [sorted(row.id for row in batch) for _, batch in rows]


def test_a_restarted_query_reads_each_row_once(lake, table, tmp_path):
    table.append(sales(6))
    found: list = []
    drained(lake.read_stream("ns.t"), tmp_path, found)
    table.append(sales(2, first=6))
    drained(lake.read_stream("ns.t"), tmp_path, found)
    drained(lake.read_stream("ns.t"), tmp_path, found)
    assert ids(found) == [[0, 1, 2, 3, 4, 5], [6, 7]]


def test_changes_are_streamed_with_what_happened(lake, table, tmp_path):
    first = table.append(sales(6))
    table.delete("id = 1", mode="merge-on-read")
    table.delete("id = 2", mode="copy-on-write")
    stream = lake.read_stream("ns.t", changes=True, start=first.snapshot_id)
    assert stream.isStreaming
    assert stream.columns[-4:][0] == "_change_type"
    found: list = []
    drained(stream, tmp_path, found)
    assert [(row.id, row._change_type) for _, rows in found for row in rows] == [
        (1, "delete"),
        (2, "delete"),
    ]


def test_limits_split_what_is_there_into_batches(lake, table, spark, tmp_path):
    table.append(sales(8))
    found: list = []
    stream = lake.read_stream("ns.t", max_files_per_trigger=1)
    query = (
        stream.writeStream.foreachBatch(lambda batch, n: found.append((n, batch.collect())))
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert len(found) >= 4
    assert max(len(rows) for _, rows in found) == 2
    assert sorted(chain(*ids(found))) == list(range(8))


def test_what_cannot_be_read_on_is_told(lake, table, tmp_path):
    table.append(sales(2))
    drained(lake.read_stream("ns.t"), tmp_path, [])
    table.delete("id = 1")
    with pytest.raises(Exception, match="Read it with changes=True"):
        drained(lake.read_stream("ns.t"), tmp_path, [])
