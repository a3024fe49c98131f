"""Change feeds of Delta tables: what commits of any writer say of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from rowlake import connect
from rowlake.delta.vector_file import write_vectors
from rowlake.errors import CorruptTableError, InvalidStatementError, UnsupportedFeatureError
from rowlake.model.predicate import Leaf, Op
from rowlake.storage.files import Storage
from rowlake.stream.source import TableStream
from rowlake.stream.source_options import options_of
from tests.any_format import changing
from tests.delta_logs import HandMade, column, features, metadata, people

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
VECTORS = features("deletionVectors")


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        found.create_namespace("ns")
        yield found


@pytest.fixture
def made(tmp_path):
    return HandMade(tmp_path / "t")


def changes(lake, made, start=None, **asked):
    """Return (version, type, id) of every change."""
    found = lake.table(made.name).changes_arrow(start=start, **asked)
    names = ("_commit_snapshot_id", "_change_type", "id")
    return sorted(tuple(row[name] for name in names) for row in found.to_pylist())


def vector(made, path, *positions):
    """Return the descriptor of a vector of a file."""
    place = str(made.folder / path)
    _, found = write_vectors({place: BitMap64(positions)}, str(made.folder), Storage())
    return found[place].json()


def with_vector(made, path, descriptor, **more):
    return {"add": {**made.adds[path], "deletionVector": descriptor, **more}}


def image(made, path, rows, kinds, **more):
    """Write a change data file and return its action."""
    found = made.add(path, rows.append_column("_change_type", pa.array(kinds)))["add"]
    kept = {name: found[name] for name in ("path", "partitionValues", "size")}
    return {"cdc": {**kept, "dataChange": False, **more}}


def test_a_replaced_vector_deletes_what_it_has_beyond_the_old_one(lake, made):
    made.create(VECTORS, metadata(), made.add("a", people(0, 1, 2, 3)))
    first, second = vector(made, "a", 1), vector(made, "a", 1, 3)
    made.commit(made.remove("a"), with_vector(made, "a", first))
    made.commit(made.remove("a", deletionVector=first), with_vector(made, "a", second))
    made.commit(made.remove("a", deletionVector=second), with_vector(made, "a", first))
    made.commit(made.remove("a", deletionVector=first))
    assert changes(lake, made, 0) == [
        (1, "delete", 1),
        (2, "delete", 3),
        (3, "insert", 3),
        (4, "delete", 0),
        (4, "delete", 2),
        (4, "delete", 3),
    ]


def test_a_file_that_comes_back_brings_its_live_rows(lake, made):
    made.create(VECTORS, metadata(), made.add("a", people(0, 1, 2)))
    marks = vector(made, "a", 0)
    made.commit(made.remove("a"))
    made.commit(with_vector(made, "a", marks))
    assert changes(lake, made, 1) == [(2, "insert", 1), (2, "insert", 2)]


def test_actions_that_change_no_data_are_left_out_one_by_one(lake, made):
    made.create(made.add("a", people(0, 1)), made.add("b", people(2)))
    made.commit(
        made.remove("a", dataChange=False),
        made.add("c", people(0, 1), dataChange=False),
        made.remove("b"),
        made.add("d", people(7)),
    )
    made.commit(made.add("c", people(0, 1), stats=None, dataChange=False))
    assert changes(lake, made, 0) == [(1, "delete", 2), (1, "insert", 7)]


def test_rows_that_a_rewrite_carries_over_cancel_out_without_statistics(lake, made):
    made.create(made.add("a", people(0, 1, 2)), made.add("b", people(3)))
    made.commit(made.remove("a"), made.add("c", people(0, 2), stats=None))
    assert changes(lake, made, 0) == [(1, "delete", 1)]


def test_removes_that_say_little_are_looked_up_in_the_version_before(lake, made):
    fields = [("id", "long"), ("name", "string"), ("p", "integer")]
    made.create(metadata(fields, ("p",)), made.add("a", people(0), partitionValues={"p": "4"}))
    made.commit(made.remove("a"))
    found = lake.table(made.name).changes_arrow(start=0)
    assert found.select(["id", "p", "_change_type"]).to_pylist() == [
        {"id": 0, "p": 4, "_change_type": "delete"}
    ]


def test_other_partition_columns_within_a_span_are_refused(lake, made):
    made.create(metadata(), made.add("a", people(0)))
    made.commit(
        metadata(partition_by=("name",)),
        made.remove("a", partitionValues={}, size=1),
        made.add("b", people(1).drop_columns("name"), partitionValues={"name": "x"}),
    )
    made.commit(made.add("c", people(2).drop_columns("name"), partitionValues={"name": "y"}))
    assert changes(lake, made, 1) == [(2, "insert", 2)]
    with pytest.raises(InvalidStatementError, match="version 1"):
        changes(lake, made, 0)
    with pytest.raises(UnsupportedFeatureError, match="partition columns"):
        changes(lake, made)
    assert changes(lake, made, end=0) == [(0, "insert", 0)]


def test_history_begins_where_the_log_does(lake, made):
    made.create(made.add("a", people(0)))
    made.commit(made.add("b", people(1)))
    assert changes(lake, made) == [(0, "insert", 0), (1, "insert", 1)]


def test_a_start_that_the_log_no_longer_has_is_a_clear_error(lake):
    table = lake.create_table("ns.t", people(0).schema, format="delta")
    for key in range(12):
        table.append(people(key))
    log = Path(table.location) / "_delta_log"
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
    table = lake.table("ns.t")
    with pytest.raises(InvalidStatementError, match="oldest snapshot available is 10"):
        table.changes_arrow(start=3)
    with pytest.raises(InvalidStatementError, match="have expired"):
        table.changes_arrow(start_as_of=1)
    assert table.changes_arrow(start=11)["id"].to_pylist() == [11]
    assert sorted(table.changes_arrow()["id"].to_pylist()) == list(range(12))


def test_rows_come_in_the_columns_of_the_end(lake):
    properties = {"delta.columnMapping.mode": "name"}
    table = lake.create_table("ns.t", people(0).schema, properties=properties, format="delta")
    first = table.append(people(0, 1))
    table.delete("id = 1")
    with changing(table, "schema") as schema:
        schema.rename_column("name", "called")
        schema.add_column("more", "string")
    table = lake.table("ns.t")
    table.delete("id = 0")
    found = table.changes_arrow(start=first.snapshot_id).select(["called", "more", "_change_type"])
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("n1", None, "delete"),
        ("n0", None, "delete"),
    ]
    then = table.changes_arrow(start=first.snapshot_id, end=first.snapshot_id + 1)
    assert then.column_names[:2] == ["id", "name"]


# --- change data files


def test_a_version_with_change_files_is_read_from_them_alone(lake, made):
    made.create(made.add("a", people(0, 1, 2)))
    made.commit(
        made.remove("a"),
        made.add("b", people(0, 5)),
        image(
            made,
            "_change_data/cdc-1",
            people(1, 2, 5),
            ["delete", "update_preimage", "update_postimage"],
        ),
    )
    assert changes(lake, made, 0) == [
        (1, "delete", 1),
        (1, "update_postimage", 5),
        (1, "update_preimage", 2),
    ]
    # by keys nothing pairs: the key changed
    assert changes(lake, made, 0, keys=["id"]) == [
        (1, "delete", 1),
        (1, "delete", 2),
        (1, "insert", 5),
    ]
    assert changes(lake, made, 0, net=True) == changes(lake, made, 0, keys=["id"])
    assert changes(lake, made, 0, where=Leaf(("id",), Op.EQ, (5,))) == [(1, "update_postimage", 5)]


def test_change_files_of_partitions_and_mapped_columns_have_their_values(lake, made):
    mapped = [
        column(
            name,
            kind,
            **{
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": f"col-{number}",
            },
        )
        for number, (name, kind) in enumerate([("id", "long"), ("p", "string")], start=1)
    ]
    options = {"columnMapping.mode": "id", "columnMapping.maxColumnId": "2"}
    rows = pa.table(
        [pa.array([1], pa.int64())],
        schema=pa.schema([pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"})]),
    )
    made.create(features("columnMapping"), metadata(mapped, ("p",), **options))
    made.commit(
        made.add("b", rows, partitionValues={"col-2": "x"}),
        image(made, "_change_data/c", rows, ["insert"], partitionValues={"col-2": "y"}),
    )
    (found,) = lake.table(made.name).changes_arrow(start=0).to_pylist()
    assert (found["id"], found["p"], found["_change_type"]) == (1, "y", "insert")


def test_the_images_of_a_commit_stay_in_one_batch_of_a_stream(lake, made):
    made.create(made.add("a", people(0, 1)))
    made.commit(
        made.remove("a"),
        made.add("b", people(0, 5)),
        image(made, "_change_data/new", people(5), ["update_postimage"]),
        image(made, "_change_data/old", people(1), ["update_preimage"]),
    )
    handle = lake.table(made.name).handle
    options = options_of(0, None, 1, None) | {"changes": "true"}
    stream = TableStream(handle, "main", handle.view().schema, options)
    end = stream.latest(None)
    kernel, tasks = stream.plan(stream.initial(), end)
    found = [row for task in tasks for batch in kernel(task) for row in batch.to_pylist()]
    assert sorted((row["_change_type"], row["id"]) for row in found) == [
        ("delete", 1),
        ("insert", 5),
    ]
    assert stream.latest(end) == end


def test_an_unknown_type_of_change_is_a_damaged_file(lake, made):
    made.create(made.add("a", people(0)))
    made.commit(made.add("b", people(1)), image(made, "_change_data/c", people(1), ["replaced"]))
    with pytest.raises(CorruptTableError, match="unknown type 'replaced'"):
        changes(lake, made, 0)


@pytest.mark.parametrize("action", [{}, {"path": 3}, {"path": None}])
def test_a_damaged_change_file_is_named_by_its_commit(lake, made, action):
    made.create(made.add("a", people(0)))
    made.commit(made.add("b", people(1)), {"cdc": action})
    with pytest.raises(CorruptTableError, match=r"00001\.json"):
        changes(lake, made, 0)


def test_change_files_of_delta_on_spark_are_read(lake):
    found = lake.table(f"delta.`{GOLDEN / 'in_commit_times'}`").changes_arrow(start=2, end=3)
    assert [(row["_change_type"], row["id"]) for row in found.to_pylist()] == [("delete", 2)]
