"""Compaction that orders rows: sorted or Z-ordered, in one task or by ranges over many."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowlake.engine.worker import pack, unpack
from rowlake.errors import InvalidStatementError
from rowlake.maintain.compact import rewrite_tasks, split_kernel
from rowlake.maintain.compact.row_keys import Keys
from rowlake.maintain.compact.sort_ranges import SortRanges
from rowlake.maintain.compact.zcurve import ColumnRanges, z_places
from rowlake.maintain.compact.zorder_cells import Cells
from rowlake.model.partition import SortField
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.write.output import OpenFile
from tests.any_format import changing, read_by_others
from tests.lakes import files_in, make_lake, rows_of
from tests.parts.stopping import meanwhile

pytestmark = pytest.mark.delta

COLUMNS = pa.schema(
    [("a", pa.int64()), ("b", pa.float64()), ("c", pa.string()), ("d", pa.date32())]
)
NAN = float("nan")


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["one task", "many tasks"])
def size(request, monkeypatch):
    """Groups that one task holds, and groups that are split by ranges."""
    if request.param == "many tasks":
        monkeypatch.setattr(rewrite_tasks, "ONE_TASK_BYTES", 0)
        monkeypatch.setattr(split_kernel, "SPLIT_BYTES", 20_000)
    return request.param


def rows(count: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "a": random.integers(0, 1000, count),
            "b": random.random(count),
            "c": [f"name-{number:06d}" for number in random.integers(0, 10**6, count).tolist()],
            "d": pa.array(random.integers(0, 10_000, count).astype(np.int32)).view(pa.date32()),
        },
        COLUMNS,
    )


def create(lake, version="2", count=4000, files=4, columns=COLUMNS, **options):
    properties = {"format-version": version, **options.pop("properties", {})}
    table = lake.create_table("shop.t", columns, properties=properties, **options)
    for number in range(files):
        table.append(rows(count // files, number))
    return table


def into(table, files: int, **more: str) -> dict[str, str]:
    """Return options by which about so many files come out."""
    total = int(pc.sum(table.files()["file_size_in_bytes"]).as_py())
    target = total // files + 1
    sizes = {"target": target, "min": target // 2, "max": target * 2}
    named = {f"{name}-file-size-bytes": str(value) for name, value in sizes.items()}
    return {**named, "rewrite-all": "true", **more}


def values_by_file(table, *names: str) -> list[pa.Table]:
    found = table.arrow(columns=[*names, "_file", "_pos"])
    return [
        found.filter(pc.equal(found["_file"], file)).sort_by("_pos").select(list(names))
        for file in pc.unique(found["_file"]).to_pylist()
    ]


def skipped(table, name: str) -> float:
    """Return the share of files that a filter on one value of a column skips, on average."""
    files = [part[name] for part in values_by_file(table, name)]
    spans = [pc.min_max(part).as_py() for part in files]
    points = table.arrow(columns=[name])[name].to_pylist()[::20]
    held = [sum(span["min"] <= point <= span["max"] for span in spans) for point in points]
    return 1 - sum(held) / len(held) / len(spans)


@pytest.mark.parametrize("order", ["zorder(a, b, c, d)", "a, b, c, d"])
def test_every_column_of_a_z_order_skips_files(lake, size, order):
    table = create(lake, count=8000)
    before = rows_of(table.arrow())
    strategy = "sort" if order.startswith("z") else "zorder"
    report = table.rewrite_data_files(strategy, order, options=into(table, 16))
    assert 14 <= report.added_data_files_count <= 18
    assert rows_of(table.arrow()) == before
    shares = [skipped(table, name) for name in "abcd"]
    assert min(shares) > 0.43
    assert sum(shares) / 4 > 0.48  # half: two slabs of each column in 16 files


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_sorted_files_do_not_overlap(lake, size, version):
    table = create(lake, version)
    before = rows_of(table.arrow())
    report = table.rewrite_data_files("sort", "a DESC, c", options=into(table, 5))
    assert 4 <= report.added_data_files_count <= 6
    assert rows_of(table.arrow()) == before
    files = sorted(values_by_file(table, "a", "c"), key=lambda file: -file["a"][0].as_py())
    keys = [(-row["a"], row["c"]) for file in files for row in file.to_pylist()]
    assert keys == sorted(keys)
    assert table.rewrite_data_files("sort", "a", options={**into(table, 5), "rewrite-all": "false"})


def test_rows_go_into_files_of_equal_size_even_where_keys_are_equal(lake, size):
    table = create(lake)
    for number in range(4):
        table.append(rows(1000, number).set_column(0, "a", pa.array([500] * 1000)))
    report = table.rewrite_data_files("sort", "a", options=into(table, 8))
    counts = [len(file) for file in values_by_file(table, "a")]
    assert len(counts) == report.added_data_files_count
    assert max(counts) < 2 * sum(counts) / len(counts)
    spans = sorted(
        (pc.min(file["a"]).as_py(), pc.max(file["a"]).as_py())
        for file in values_by_file(table, "a")
    )
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_row_lineage_is_kept(lake, size):
    table = create(lake, "3")
    table.delete("a = 7", mode="merge-on-read")
    columns = ["a", "c", "_row_id", "_last_updated_sequence_number"]
    before = rows_of(table.arrow(columns=columns))
    for strategy in ("sort", "zorder"):
        table.rewrite_data_files(strategy, "a, c", options=into(table, 4))
        assert rows_of(table.arrow(columns=columns)) == before
    assert pc.max(table.files()["content"]).as_py() == 0


@pytest.mark.not_delta("partition specs that change")
@pytest.mark.parametrize("strategy", ["sort", "zorder"])
def test_partitions_stay_apart_and_old_specs_go_into_the_new_one(lake, size, strategy):
    table = create(lake)
    with changing(table, "spec") as update:
        update.add_field("d", "year", "y")
    before = rows_of(table.arrow())
    table.rewrite_data_files(strategy, "a, b", options={"rewrite-all": "true"})
    assert rows_of(table.arrow()) == before
    partitions = table.files()["partition"].to_pylist()
    assert len(partitions) == len({str(each) for each in partitions}) == 28
    table.rewrite_data_files(strategy, "a, b", options={"rewrite-all": "true"})
    assert rows_of(table.arrow()) == before
    for found in read_by_others(table):
        assert rows_of(found) == before


def test_nested_columns_are_named_by_path_and_others_refused(lake):
    columns = pa.schema(
        [
            ("s", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64()))])),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    table = lake.create_table("shop.n", columns)
    random = np.random.default_rng(0).permutation(400).tolist()
    for part in (random[:200], random[200:]):
        held = [{"s": {"x": x, "l": [x]} if x % 9 else None, "m": None} for x in part]
        table.append(pa.Table.from_pylist(held, columns))
    table.rewrite_data_files("zorder", "s.x", options={"rewrite-all": "true"})
    found = [row["s"]["x"] if row["s"] else -1 for row in table.arrow().to_pylist()]
    assert found == sorted(found)
    for column in ("s", "m", "s.l", "s.x, s.x"):
        with pytest.raises(InvalidStatementError, match="Cannot Z-order"):
            table.rewrite_data_files("zorder", column)
    with pytest.raises(InvalidStatementError, match="give the columns"):
        table.rewrite_data_files("zorder")
    with pytest.raises(InvalidStatementError, match="nope"):
        table.rewrite_data_files("sort", "zorder(nope)")


@pytest.mark.not_delta("row ids")
@pytest.mark.parametrize("version", ["2", "3"])
def test_changes_of_others_are_carried_over_by_row_ids(lake, size, version):
    table = create(lake, version)
    table.delete("a = 5", mode="merge-on-read")
    other = lake.table("shop.t")
    expected = [row for row in table.arrow().to_pylist() if row["a"] not in (6, 9)]
    expected += rows(3, 99).to_pylist()
    with meanwhile(
        lambda: other.delete("a = 6", mode="merge-on-read"),
        lambda: other.delete("a = 9", mode="merge-on-read"),
        lambda: other.append(rows(3, 99)),
    ):
        report = table.rewrite_data_files("sort", "a", options=into(table, 3))
    assert rows_of(table.arrow()) == rows_of(pa.Table.from_pylist(expected, COLUMNS))
    for found in read_by_others(table):
        assert rows_of(found) == rows_of(table.arrow())
    if version == "3":
        assert (report.given_up_files_count, report.rewritten_data_files_count) == (0, 4)
    else:  # nothing tells where rows went
        assert (report.given_up_files_count, report.rewritten_data_files_count) == (4, 0)


@pytest.mark.not_delta("row ids")
def test_files_that_others_rewrite_meanwhile_are_not_doubled(lake, size):
    table = create(lake, "3")
    other = lake.table("shop.t")
    expected = [row for row in table.arrow().to_pylist() if row["b"] >= 0.001]
    ids = {tuple(row) for row in rows_of(table.arrow(columns=["b", "_row_id"]))}
    with meanwhile(lambda: other.delete("b < 0.001", mode="copy-on-write")):
        report = table.rewrite_data_files("zorder", "a, c", options=into(table, 3))
    assert report.given_up_files_count < 4
    assert rows_of(table.arrow()) == rows_of(pa.Table.from_pylist(expected, COLUMNS))
    assert {tuple(row) for row in rows_of(table.arrow(columns=["b", "_row_id"]))} <= ids


@pytest.mark.not_delta("row ids")
def test_rows_that_had_no_ids_cannot_be_carried_over(lake):
    table = create(lake, "2")
    table.set_properties({"format-version": "3"})
    other = lake.table("shop.t")
    expected = [row for row in table.arrow().to_pylist() if row["a"] != 6]
    with meanwhile(lambda: other.delete("a = 6", mode="merge-on-read")):
        table.rewrite_data_files("sort", "a", options=into(table, 3))
    assert rows_of(table.arrow()) == rows_of(pa.Table.from_pylist(expected, COLUMNS))


def test_a_failure_leaves_no_file(lake, size, tmp_path, monkeypatch):
    table = create(lake)
    before = files_in(str(tmp_path))
    calls = []

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise OSError("the disk is full")
        return closed(*args, **kwargs)

    closed = OpenFile.close
    monkeypatch.setattr(OpenFile, "close", fail)
    with pytest.raises(OSError, match="full"):
        table.rewrite_data_files("sort", "a", options=into(table, 6))
    assert files_in(str(tmp_path)) == before


def test_all_rows_deleted_leave_no_file(lake, size):
    table = create(lake, "2", count=40)
    table.delete("a >= 0 AND b >= 0", mode="merge-on-read")
    table.rewrite_data_files("sort", "a", options={"rewrite-all": "true"})
    assert len(table.arrow()) == 0


def test_options_of_sorting_are_taken_and_checked(lake, size):
    table = create(lake)
    options = into(
        table,
        2,
        **{
            "shuffle-partitions-per-file": "3",
            "compression-factor": "1.5",
            "var-length-contribution": "16",
            "max-output-size": "64",
        },
    )
    before = rows_of(table.arrow())
    table.rewrite_data_files("sort", "a", options=options)
    assert rows_of(table.arrow()) == before
    for file in values_by_file(table, "a"):
        assert file["a"].to_pylist() == sorted(file["a"].to_pylist())
    for name in ("compression-factor", "shuffle-partitions-per-file", "max-output-size"):
        with pytest.raises(InvalidStatementError, match=name):
            table.rewrite_data_files("sort", "a", options={name: "0"})


def keys_of(*columns: pa.Array) -> tuple[Keys, pa.RecordBatch]:
    fields = [
        pa.field(f"k{place}", column.type, metadata={FIELD_ID: str(place + 1).encode()})
        for place, column in enumerate(columns)
    ]
    schema = Schema(pa.schema(fields))
    keys = Keys(tuple(SortField(n + 1, "identity") for n in range(len(columns))), schema)
    return keys, pa.RecordBatch.from_arrays(list(columns), schema=schema.arrow)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, 1, 2, 3], pa.int32()),
        ([None, False, True], pa.bool_()),
        ([None, -1.5, 0.0, 2.5, float("inf"), NAN], pa.float64()),
        ([None, -1.5, 2.5, NAN], pa.float32()),
        ([None, Decimal("-1.5"), Decimal("0.25"), Decimal("99")], pa.decimal128(10, 2)),
        ([None, dt.date(1960, 1, 1), dt.date(2024, 1, 1)], pa.date32()),
        ([None, dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 1)], pa.timestamp("us")),
        ([None, dt.time(1), dt.time(2)], pa.time64("us")),
        ([None, "", "a", "aa", "b", "é"], pa.string()),
        ([None, b"", b"\x00", b"\xff"], pa.binary()),
        ([None, b"ab", b"ac"], pa.binary(2)),
    ],
    ids=str,
)
def test_numbers_rise_with_values_of_all_types(values, kind):
    column = pa.array(values, kind)
    numbers = ColumnRanges.of(column, 12).numbers(column)
    assert (np.diff(numbers) > 0).all()
    assert numbers[0] == 0
    shuffled = np.random.default_rng(1).permutation(len(values))
    _, batch = keys_of(column.take(pa.array(shuffled)))
    assert shuffled[np.asarray(z_places(batch))].tolist() == list(range(len(values)))
    assert numbers.max() < 1 << 12


def test_few_bits_make_few_ranges():
    column = pa.array(np.arange(1000))
    numbers = ColumnRanges.of(column, 3).numbers(column)
    assert numbers.max() < 8
    assert len(np.unique(numbers)) >= 5


def test_cells_hold_about_the_same_number_of_rows():
    random = np.random.default_rng(0)
    columns = [
        pa.array(random.integers(0, 3, 50_000)),
        pa.array(random.normal(size=50_000)),
        pa.nulls(50_000, pa.string()),
        pa.array(random.geometric(0.3, 50_000)),
    ]
    keys, batch = keys_of(*columns)
    cells = Cells.of(keys, keys.of(batch), 37, 2)
    counts = np.bincount(cells.numbers(batch), minlength=74)
    assert len(counts) == cells.count == 74
    assert (counts > 0).all()
    assert counts.max() < 2 * counts.mean()


def test_cells_of_one_value_or_of_no_rows_are_there():
    keys, batch = keys_of(pa.array([7] * 10), pa.array(["x"] * 10))
    assert set(Cells.of(keys, keys.of(batch), 5).numbers(batch)) == {0}
    none = keys.of(batch).slice(0, 0)
    assert len(Cells.of(keys, none, 5).numbers(batch)) == 10
    assert SortRanges.of(keys, none, 5).numbers(batch).tolist() == [0] * 10


def test_ranges_are_in_the_order_of_the_keys():
    random = np.random.default_rng(0)
    first = pa.array([None if x == 3 else x for x in random.integers(0, 9, 5000).tolist()])
    second = pa.array([NAN if x < 0.1 else x for x in random.random(5000).tolist()])
    _, batch = keys_of(first, second)
    fields = (SortField(1, "identity", False, False), SortField(2, "identity"))
    keys = Keys(fields, Schema(batch.schema))
    ranges = SortRanges.of(keys, keys.of(batch).slice(0, 1000), 20)
    numbers = ranges.numbers(batch)
    in_order = numbers[np.asarray(keys.sorted_places(keys.of(batch)))]
    assert (np.diff(in_order) >= 0).all()
    assert len(np.unique(numbers)) == ranges.count == 20


def test_tasks_travel_to_other_processes(lake, monkeypatch):
    table = create(lake, "3")
    before = rows_of(table.arrow())
    run = table._engine.run
    kinds = []

    def packed(kernel, tasks, output, **more):
        kinds.append(kernel.__name__)
        return run(unpack(pack(kernel)), [unpack(pack(task)) for task in tasks], output, **more)

    monkeypatch.setattr(rewrite_tasks, "ONE_TASK_BYTES", 0)
    monkeypatch.setattr(table._engine, "run", packed)
    for order in ("zorder(a, c)", "c, a"):
        table.rewrite_data_files("sort", order, options=into(table, 3))
    assert {"sample_kernel", "split_kernel", "range_kernel"} <= set(kinds)
    monkeypatch.undo()
    assert rows_of(table.arrow()) == before
