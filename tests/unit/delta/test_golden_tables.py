"""Tables that Delta on Spark wrote: all their versions have the rows that it reads itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rowlake import connect
from rowlake.model.files import DELTA_VECTOR
from rowlake.model.predicate import Leaf, Op
from rowlake.verbs.read import Request, planned
from tests.plain_values import in_order

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "delta"
TABLES = sorted(one.parent.name for one in GOLDEN.glob("*/expected.json"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with connect(str(tmp_path_factory.mktemp("lake"))) as found:
        yield found


def table(lake, name):
    return lake.table(f"delta.`{GOLDEN / name}`")


@pytest.mark.parametrize("name", TABLES)
def test_every_version_has_the_rows_that_spark_reads(lake, name):
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    found = table(lake, name)
    for version, rows in expected.items():
        columns = list(rows[0]) if rows else None
        read = in_order(found.arrow(columns=columns, snapshot_id=int(version)).to_pylist())
        assert repr(read) == repr(rows), f"version {version}"  # as text: NaN is no NaN


def matching(lake, name, *leaves):
    plan = planned(table(lake, name).handle, Request(predicate=leaves[0])).plan
    return plan.files_considered, plan.file_count


@pytest.mark.parametrize("name", ["sidecars_json", "sidecars_parquet"])
def test_files_of_sidecars_are_pruned_by_partition_and_statistics(lake, name):
    import datetime

    day = Leaf(("day",), Op.EQ, (datetime.date(2024, 1, 2),))
    assert matching(lake, name, day) == (4, 1)
    assert matching(lake, name, Leaf(("id",), Op.GT, (11,))) == (4, 1)
    assert matching(lake, name, Leaf(("id",), Op.GT, (1000,))) == (4, 0)


def test_statistics_that_are_columns_alone_prune(lake):
    assert list((GOLDEN / "several_parts" / "_delta_log").glob("*.checkpoint.*.*.parquet"))
    considered, kept = matching(lake, "several_parts", Leaf(("id",), Op.GT, (399,)))
    assert considered == 10 and kept == 2
    assert matching(lake, "several_parts", Leaf(("name",), Op.EQ, ("zzz",))) == (10, 0)
    assert matching(lake, "several_parts", Leaf(("d",), Op.LT, (-1.0,))) == (10, 0)


def test_every_instant_of_a_file_is_within_its_bounds(lake):
    found = table(lake, "several_parts")
    for instant in found.arrow(columns=["at"])["at"].to_pylist():
        kept = found.arrow(columns=["at"], where=Leaf(("at",), Op.EQ, (instant,)))
        assert kept["at"].to_pylist() == [instant]


def test_vectors_are_delete_files_and_rows_of_files_are_all_counted(lake):
    found = table(lake, "vectors")
    files = found.files()
    deletes = found.inspect("delete_files")
    assert set(deletes["file_format"].to_pylist()) == {DELTA_VECTOR}
    data = found.inspect("data_files")
    live = sum(data["record_count"].to_pylist()) - sum(deletes["record_count"].to_pylist())
    assert live == found.arrow().num_rows
    assert files.num_rows == data.num_rows + deletes.num_rows
    assert {one["p"] for one in data["partition"].to_pylist()} == {"a/b", "c d%", None}


def test_widened_columns_prune_old_files_by_their_old_bounds(lake):
    from decimal import Decimal

    found = table(lake, "widened")
    assert found.arrow(where=Leaf(("d",), Op.EQ, (Decimal("1.2500"),))).num_rows == 1
    assert found.arrow(where=Leaf(("n",), Op.EQ, (Decimal("7.00"),))).num_rows == 1
    assert found.arrow(where=Leaf(("x",), Op.EQ, (8.0,))).num_rows == 1
    assert found.arrow(where=Leaf(("s",), Op.EQ, (-2,))).num_rows == 1


def test_in_commit_times_are_the_commits_own(lake):
    found = table(lake, "in_commit_times")
    stated = {}
    for path in sorted((GOLDEN / "in_commit_times" / "_delta_log").glob("0*.json")):
        first = json.loads(path.read_text().splitlines()[0])
        stated[int(path.stem)] = first["commitInfo"].get("inCommitTimestamp")
    times = {one.snapshot_id: one.timestamp_ms for one in found.snapshots()}
    assert {version: times[version] for version in (2, 3, 4)} == {
        version: stated[version] for version in (2, 3, 4)
    }
    assert found.arrow(as_of=stated[3]).num_rows == 2
    assert found.arrow(as_of=stated[4] + 60_000).num_rows == 3


def test_optimize_changes_no_rows(lake):
    found = table(lake, "clustered")
    operations = [one.operation for one in found.snapshots()]
    assert operations == ["replace", "append", "delete", "replace", "overwrite"]
    assert not found.handle.format.commit_of(found.handle, 3).changes_rows
