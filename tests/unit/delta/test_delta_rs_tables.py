"""Tables that delta-rs wrote, read by rowlake and by delta-rs itself."""

from __future__ import annotations

import datetime
from decimal import Decimal

import deltalake
import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.model.predicate import Leaf, Op
from tests.plain_values import in_order

START = datetime.datetime(2024, 1, 1, 0, 0, 0, 7, datetime.timezone.utc)
LATER = START + datetime.timedelta(seconds=21)


def rows(first, count=10):
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "tiny": pa.array([one % 100 for one in ids], pa.int8()),
            "text": [None if one % 5 == 0 else f"name {one}" for one in ids],
            "real": pa.array([one / 4 for one in ids], pa.float32()),
            "price": pa.array([Decimal(one) / 100 for one in ids], pa.decimal128(10, 2)),
            "at": pa.array([START + datetime.timedelta(seconds=one) for one in ids]),
            "day": pa.array([datetime.date(2024, 1, 1 + one % 28) for one in ids]),
            "items": [[one, None] for one in ids],
            "inner": [{"x": one, "y": str(one)} for one in ids],
            "pairs": pa.array([[("k", one)] for one in ids], pa.map_(pa.string(), pa.int64())),
            "p": [None if one % 4 == 0 else f"p {one % 3}" for one in ids],
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A table of appends, a delete, a checkpoint and an overwrite of one partition."""
    folder = str(tmp_path_factory.mktemp("rs") / "t")
    for number in range(6):
        deltalake.write_deltalake(folder, rows(number * 10), mode="append", partition_by=["p"])
    table = deltalake.DeltaTable(folder)
    table.delete("id = 5")
    table.create_checkpoint()
    table.optimize.compact()
    table.update(updates={"text": "'new'"}, predicate="id = 7")
    return folder


@pytest.fixture(scope="module")
def table(path, tmp_path_factory):
    with connect(str(tmp_path_factory.mktemp("lake"))) as lake:
        yield lake.table(f"delta.`{path}`")


def test_every_version_has_the_rows_that_delta_rs_reads(table, path):
    newest = deltalake.DeltaTable(path).version()
    assert [one.snapshot_id for one in table.snapshots()] == list(range(newest + 1))
    for version in range(newest + 1):
        theirs = deltalake.DeltaTable(path, version=version).to_pyarrow_table()
        ours = table.arrow(snapshot_id=version)
        assert in_order(ours.to_pylist()) == in_order(theirs.select(ours.column_names).to_pylist())


@pytest.mark.parametrize(
    ("predicate", "holds"),
    [
        (Leaf(("id",), Op.LT, (12,)), lambda row: row["id"] < 12),
        (Leaf(("tiny",), Op.GT, (55,)), lambda row: row["tiny"] > 55),
        (Leaf(("text",), Op.EQ, ("name 33",)), lambda row: row["text"] == "name 33"),
        (Leaf(("price",), Op.EQ, (Decimal("0.44"),)), lambda row: row["id"] == 44),
        (Leaf(("p",), Op.IS_NULL), lambda row: row["p"] is None),
        (
            Leaf(("at",), Op.EQ, (START + datetime.timedelta(seconds=21),)),
            lambda row: row["id"] == 21,
        ),
        (Leaf(("inner", "x"), Op.GT, (40,)), lambda row: row["id"] > 40),
    ],
)
@pytest.mark.parametrize("version", [5, None])
def test_filters_find_every_row(table, predicate, holds, version):
    wanted = [row for row in table.arrow(snapshot_id=version).to_pylist() if holds(row)]
    found = table.arrow(where=predicate, snapshot_id=version).to_pylist()
    assert in_order(found) == in_order(wanted)


def test_history_is_the_one_that_delta_rs_tells(table, path):
    theirs = deltalake.DeltaTable(path).history()
    ours = table.history().to_pylist()
    assert [row["operation"] for row in ours] == [row["operation"] for row in theirs]
    assert [row["version"] for row in ours] == [row["version"] for row in theirs]


def test_files_are_those_that_delta_rs_lists(table, path):
    theirs = sorted(deltalake.DeltaTable(path).file_uris())
    assert sorted(table.files()["file_path"].to_pylist()) == [
        one.removeprefix("file://") for one in theirs
    ]
