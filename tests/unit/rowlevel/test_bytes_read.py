"""The bytes that an operation reads are counted, and are what its explanation says."""

from __future__ import annotations

import random
import threading

import pyarrow as pa
import pytest

from rowlake.engine.spark import Engine
from rowlake.model.predicate import Leaf, Op
from rowlake.plan import tasks as planning
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.delete import DELETE
from rowlake.rowlevel.explain import explain_change
from rowlake.rowlevel.operation import RowChange
from rowlake.scan.deletes import clear_caches
from rowlake.storage.tally import count_read, counting, is_counting
from rowlake.verbs.write import WriteOptions
from tests.lakes import make_lake

NAME = "shop.t"
COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("w", pa.string())]
)
FOOTER = 4_000


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


def rows(first: int, count: int = 20_000) -> pa.Table:
    ids = random.Random(1).sample(range(first, first + count), count)
    texts = [f"{(i * 7919) % 1_000_003:07d} is the text of row {i}" for i in ids]
    return pa.table({"id": list(ids), "v": texts, "w": texts[::-1]}, COLUMNS)


def make(lake, version: str = "3", file_format: str = "parquet"):
    properties = {"format-version": version, "write.format.default": file_format}
    table = lake.create_table(NAME, COLUMNS, properties=properties)
    for first in (0, 20_000):
        table.append(rows(first))
    return table


def sizes(table) -> dict[int, int]:
    """Return the bytes of each column over all files."""
    found: dict[int, int] = {}
    for one in table.files()["column_sizes"].to_pylist():
        for number, size in one:
            found[number] = found.get(number, 0) + size
    return found


def both(table, ids: list[int], mode: str):
    """Return the plan of a DELETE, and its result."""
    predicate = bind(Leaf(("id",), Op.IN, tuple(ids)), table.handle.view().schema)
    change = RowChange("delete", (DELETE,), predicate=predicate)
    given = (table.handle, table._engine, change, WriteOptions(mode=mode))
    return explain_change(*given), change_rows(*given)[1]


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_what_is_read_is_what_was_predicted(lake, version, mode):
    table = make(lake, version)
    for ids in ([5, 30_000], [7, 30_001]):
        clear_caches()
        plan, result = both(table, ids, mode)
        assert result.rows_deleted == 2
        assert plan.bytes_to_read > 50_000
        assert result.bytes_read == pytest.approx(plan.bytes_to_read, rel=0.05, abs=4 * FOOTER)


def test_only_the_columns_that_are_needed_count(lake):
    table = make(lake)
    by_column = sizes(table)
    result = table.delete("id = 5 OR id = 30000", mode="merge-on-read")
    assert by_column[1] < result.bytes_read < by_column[1] + 4 * FOOTER
    result = table.delete("id = 6 OR id = 30001", mode="copy-on-write")
    assert result.bytes_read > sum(by_column.values()) + by_column[1]


def test_files_that_are_pruned_or_removed_unread_do_not_count(lake):
    table = make(lake)
    half = sizes(table)[1] // 2
    assert table.delete("id = 5", mode="merge-on-read").bytes_read < half + 3 * FOOTER
    assert table.delete("id >= 20000").bytes_read == 0
    assert table.delete("id >= 20000").bytes_read == 0


def test_tasks_in_threads_count_for_themselves(lake, monkeypatch):
    alone = make(lake)
    expected = both(alone, [5, 30_000], "copy-on-write")[1].bytes_read
    lake.drop_table(NAME, purge=True)
    monkeypatch.setattr(Engine, "parallelism", 2)
    monkeypatch.setattr(planning, "LEAST_TASK_BYTES", 1)
    assert both(make(lake), [5, 30_000], "copy-on-write")[1].bytes_read == pytest.approx(
        expected, rel=0.01
    )


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_other_formats_count_what_is_read_of_them(lake, file_format):
    table = make(lake, file_format=file_format)
    whole = sum(table.files()["file_size_in_bytes"].to_pylist())
    result = table.delete("id = 5 OR id = 30000", mode="merge-on-read")
    assert 0.9 * whole < result.bytes_read < 1.1 * whole


def test_an_upsert_counts_what_it_compares(lake):
    table = make(lake)
    same = table.upsert(rows(0).slice(500, 10), ["id"])
    assert (same.rows_unchanged, same.snapshot_id) == (10, None)
    assert same.bytes_read > sum(sizes(table).values()) // 3


def test_counts_of_threads_and_of_blocks_do_not_mix():
    assert not is_counting()
    count_read(1)
    with counting() as outer:
        count_read(2)
        with counting() as inner:
            count_read(3)
            other = threading.Thread(target=count_read, args=(100,))
            other.start()
            other.join()
        count_read(4)
    assert (inner.size_in_bytes, outer.size_in_bytes) == (3, 9)
    assert not is_counting()
