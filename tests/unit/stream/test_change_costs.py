"""A feed reads what changed, and not the table."""

from __future__ import annotations

import random
from contextlib import contextmanager
from unittest import mock

import pyarrow as pa
import pytest

from rowlake.scan import deletes as scan_deletes
from rowlake.scan import kernel
from rowlake.storage.tally import counting
from rowlake.stream.changes_kernel import raw_changes
from tests.lakes import make_lake

COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("w", pa.string())]
)

pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path) as found:
        found.create_namespace("ns")
        yield found


def rows(first: int, count: int = 5_000) -> pa.Table:
    draw = random.Random(first)
    texts = [f"{draw.randrange(10**12):012d} is the text of row {i}" for i in range(count)]
    return pa.table(
        {"id": list(range(first, first + count)), "v": texts, "w": texts[::-1]}, COLUMNS
    )


def make(lake, files: int, version: str = "2", name: str = "ns.t"):
    properties = {
        "format-version": version,
        "write.parquet.row-group-size-bytes": "50000",
    }
    table = lake.create_table(name, COLUMNS, properties=properties)
    for number in range(files):
        table.append(rows(number * 5_000))
    return table


class Cost:
    def __init__(self) -> None:
        self.opened: list[str] = []
        self.size_in_bytes = 0


@contextmanager
def counted(table):
    """Count the files that kernels open and the bytes that they read."""
    cost = Cost()
    scan_deletes.clear_caches()

    def opening(original):
        def opened(location, *args, **kwargs):
            cost.opened.append(location)
            return original(location, *args, **kwargs)

        return opened

    def run(kernel_, tasks, output, **_):
        assert kernel_ is raw_changes
        with counting() as tally:
            batches = [batch for task in tasks for batch in kernel_(task)]
        cost.size_in_bytes += tally.size_in_bytes
        return pa.Table.from_batches(batches, output)

    with (
        mock.patch.object(kernel, "opened", opening(kernel.opened)),
        mock.patch.object(scan_deletes, "opened", opening(scan_deletes.opened)),
        mock.patch.object(type(table._engine), "run", staticmethod(run)),
    ):
        yield cost


def cost_of(table, start, **asked):
    with counted(table) as cost:
        found = table.changes_arrow(start=start, **asked)
    return found, cost


def head(table) -> int:
    return table.snapshots()[-1].snapshot_id


def test_appended_files_are_all_that_an_append_reads(lake):
    table = make(lake, 3)
    start = head(table)
    table.append(rows(100_000, 10))
    found, cost = cost_of(table, start)
    assert found.num_rows == 10
    assert len(cost.opened) == 1


@pytest.mark.parametrize("version", ["2", "3"])
def test_positions_are_read_of_the_files_and_row_groups_that_they_hit(lake, version):
    table = make(lake, 4, version)
    start = head(table)
    table.delete("id in (7, 5001)", mode="merge-on-read")
    found, cost = cost_of(table, start)
    assert sorted(found["id"].to_pylist()) == [7, 5001]
    data = [place for place in cost.opened if "delete" not in place]
    assert len(set(data)) == 2
    whole = sum(table.files()["file_size_in_bytes"].to_pylist())
    assert cost.size_in_bytes < whole / 10


def test_a_larger_table_does_not_cost_more(lake):
    sizes = []
    for files in (2, 12):
        table = make(lake, files, name=f"ns.t{files}")
        start = head(table)
        table.delete("id in (7, 900)", mode="merge-on-read")
        table.upsert(rows(11, 1), ["id"], deletes="equality")
        found, cost = cost_of(table, start)
        assert found.num_rows == 4
        sizes.append((len(cost.opened), cost.size_in_bytes))
    assert sizes[1][0] == sizes[0][0]
    assert sizes[1][1] <= 1.1 * sizes[0][1]


def test_more_changes_cost_in_proportion(lake):
    table = make(lake, 8)
    sizes = []
    for wanted in ([3], [3 + 5_000 * number for number in range(8)]):
        start = head(table)
        table.delete(f"id in ({', '.join(str(each + len(wanted)) for each in wanted)})")
        found, cost = cost_of(table, start)
        assert found.num_rows == len(wanted)
        sizes.append(cost.size_in_bytes)
    assert sizes[1] <= 10 * sizes[0]


def test_equality_deletes_open_the_files_and_row_groups_that_can_hold_their_keys(lake):
    table = make(lake, 4)
    start = head(table)
    table.upsert(rows(5_007, 1), ["id"], deletes="equality")
    found, cost = cost_of(table, start)
    assert found["_change_type"].to_pylist() == ["delete", "insert"]
    whole = sum(table.files()["file_size_in_bytes"].to_pylist())
    assert len(set(cost.opened)) == 3  # the hit file, the new file, the keys
    assert cost.size_in_bytes < whole / 10


def test_rows_with_ids_are_compared_by_their_ids_alone(lake):
    old, new = (make(lake, 2, version, f"ns.v{version}") for version in ("2", "3"))
    costs = []
    for table in (old, new):
        start = head(table)
        table.delete("id = 17", mode="copy-on-write")
        found, cost = cost_of(table, start)
        assert found["id"].to_pylist() == [17]
        assert len(set(cost.opened)) == 2
        costs.append(cost.size_in_bytes)
    assert costs[1] < costs[0] / 3


def test_conditions_on_keys_prune_files(lake):
    from rowlake.model.predicate import Leaf, Op

    table = make(lake, 4)
    found, cost = cost_of(table, None, keys=["id"], where=Leaf(("id",), Op.EQ, (5_007,)))
    assert found["id"].to_pylist() == [5_007]
    assert len(cost.opened) == 1
