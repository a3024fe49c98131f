"""Delta tables that rowlake creates and writes: what is in the log, in files and in rows."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.errors import (
    InvalidStatementError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from rowlake.model.app_batch import AppBatch
from tests.delta_logs import HandMade, actions, column, metadata, people
from tests.lakes import rows_of

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def path(tmp_path):
    return ("delta", str(tmp_path / "t"))


def names(table):
    return {one["id"]: one["name"] for one in table.arrow().to_pylist()}


def test_a_new_table_has_the_lowest_protocol(lake, path):
    lake.create_table(path, people(1).schema)
    found = actions(path, 0)
    assert found["protocol"] == [{"minReaderVersion": 1, "minWriterVersion": 2}]
    assert found["commitInfo"][0]["operation"] == "CREATE TABLE"
    assert json.loads(found["metaData"][0]["schemaString"])["fields"][0] == {
        "name": "id",
        "type": "long",
        "nullable": True,
        "metadata": {},
    }


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (VECTORS, (3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])),
        (
            {"delta.columnMapping.mode": "name"},
            (2, 7, None, ["appendOnly", "columnMapping", "invariants"]),
        ),
        ({"delta.appendOnly": "true"}, (1, 2, None, None)),
        ({"delta.minWriterVersion": "4"}, (1, 4, None, None)),
        (
            {"delta.feature.v2Checkpoint": "supported"},
            (3, 7, ["v2Checkpoint"], ["appendOnly", "invariants", "v2Checkpoint"]),
        ),
    ],
)
def test_properties_ask_for_features(lake, path, properties, expected):
    lake.create_table(path, people(1).schema, properties=properties)
    found = actions(path, 0)["protocol"][0]
    lists = (found.get("readerFeatures"), found.get("writerFeatures"))
    assert (found["minReaderVersion"], found["minWriterVersion"], *lists) == expected


def test_times_without_a_zone_need_their_feature(lake, path):
    lake.create_table(path, pa.schema([("at", pa.timestamp("us"))]))
    assert actions(path, 0)["protocol"][0]["readerFeatures"] == ["timestampNtz"]


@pytest.mark.parametrize(
    ("schema", "layout", "error"),
    [
        ("id bigint, u uuid", {}, UnsupportedFeatureError),
        ("`a b` bigint", {}, InvalidStatementError),
        ("id bigint", {"partition_by": "id"}, InvalidStatementError),
        ("id bigint, b int", {"partition_by": "bucket(4, id)"}, UnsupportedFeatureError),
        ("id bigint, b int", {"partition_by": "c"}, InvalidStatementError),
        ("id bigint", {"properties": {"format-version": "3"}}, InvalidStatementError),
        ("id bigint", {"properties": {"delta.feature.x": "supported"}}, UnsupportedFeatureError),
        ("id bigint", {"properties": {"delta.columnMapping.mode": "x"}}, InvalidStatementError),
    ],
)
def test_what_delta_cannot_hold_is_refused_at_creation(lake, path, tmp_path, schema, layout, error):
    with pytest.raises(error):
        lake.create_table(path, schema, **layout)
    assert not (tmp_path / "t").exists()


def test_a_folder_with_other_files_is_refused(lake, path, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x.parquet").write_bytes(b"")
    with pytest.raises(InvalidStatementError, match="holds files"):
        lake.create_table(path, people(1).schema)


def test_partition_columns_are_in_the_log_and_not_in_files(lake, path):
    table = lake.create_table(path, people(1).schema, partition_by="name")
    table.append(people(1))
    (add,) = actions(path, 1)["add"]
    assert add["partitionValues"] == {"name": "n1"}
    assert add["path"].startswith("name=n1/part-00000-")
    assert pq.read_schema(f"{path[1]}/{add['path']}").names == ["id"]


def test_mapped_columns_have_physical_names_and_ids_in_files(lake, path):
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.list_(pa.int32()))]))])
    properties = {"delta.columnMapping.mode": "name"}
    table = lake.create_table(path, schema, properties=properties)
    rows = pa.Table.from_pylist([{"id": 1, "s": {"a": [1, None]}}, {"id": 2, "s": None}], schema)
    table.append(rows)
    fields = json.loads(actions(path, 0)["metaData"][0]["schemaString"])["fields"]
    stored = pq.read_schema(f"{path[1]}/{actions(path, 1)['add'][0]['path']}")
    physical = [one["metadata"]["delta.columnMapping.physicalName"] for one in fields]
    assert stored.names == physical
    assert [one.metadata[b"PARQUET:field_id"] for one in stored] == [b"1", b"2"]
    inner = stored.field(1).type.field(0)
    assert inner.metadata[b"PARQUET:field_id"] == b"3"
    assert not inner.type.value_field.metadata
    assert lake.table(path).arrow().to_pylist() == rows.to_pylist()


def test_files_of_plain_tables_carry_no_ids(lake, path):
    lake.create_table(path, people(1).schema).append(people(1))
    stored = pq.read_schema(f"{path[1]}/{actions(path, 1)['add'][0]['path']}")
    assert all(not one.metadata for one in stored)


def test_a_deleted_row_without_vectors_is_a_file_rewritten(lake, path):
    table = lake.create_table(path, people(1).schema)
    table.append(people(*range(10)))
    result = table.delete("id = 3")
    assert (result.snapshot_id, result.rows_deleted, result.data_files_removed) == (2, 1, 1)
    found = actions(path, 2)
    assert len(found["add"]) == len(found["remove"]) == 1
    assert found["commitInfo"][0]["operation"] == "DELETE"
    assert found["commitInfo"][0]["operationMetrics"]["numDeletedRows"] == "1"
    assert found["commitInfo"][0]["operationMetrics"]["numCopiedRows"] == "9"
    assert sorted(names(table)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_a_deleted_row_with_vectors_is_the_same_file_with_another_vector(lake, path):
    table = lake.create_table(path, people(1).schema, properties=VECTORS)
    table.append(people(*range(10)))
    table.delete("id = 3")
    table.delete("id = 4")
    first, second = actions(path, 2), actions(path, 3)
    assert first["remove"][0]["path"] == first["add"][0]["path"]
    assert "deletionVector" not in first["remove"][0]
    assert first["add"][0]["deletionVector"]["cardinality"] == 1
    assert json.loads(first["add"][0]["stats"])["tightBounds"] is False
    assert json.loads(first["add"][0]["stats"])["numRecords"] == 10
    assert second["remove"][0]["deletionVector"] == first["add"][0]["deletionVector"]
    assert second["add"][0]["deletionVector"]["cardinality"] == 2
    assert sorted(names(table)) == [0, 1, 2, 5, 6, 7, 8, 9]


def test_a_file_whose_rows_all_go_is_removed_without_a_vector(lake, path):
    table = lake.create_table(path, people(1).schema, properties=VECTORS)
    table.append(people(1, 2))
    table.delete("id = 1")
    table.delete("id = 2")
    found = actions(path, 3)
    assert len(found["remove"]) == 1 and "add" not in found


def test_merge_with_vectors_updates_inserts_and_deletes_in_one_commit(lake, path):
    table = lake.create_table(path, people(1).schema, properties=VECTORS)
    table.append(people(*range(20)))
    source = pa.table({"id": pa.array([1, 50], pa.int64()), "name": ["new", "fifty"]})
    result = table.upsert(source, keys=["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    info = actions(path, 2)["commitInfo"][0]
    assert info["operation"] == "MERGE"
    assert info["operationMetrics"]["numTargetRowsUpdated"] == "1"
    assert names(table)[1] == "new" and names(table)[50] == "fifty" and len(names(table)) == 21


def test_overwrites_remove_what_they_replace(lake, path):
    table = lake.create_table(path, people(1).schema, partition_by="name")
    table.append(people(1, 2, 3))
    table.overwrite(people(2), dynamic=True)
    assert actions(path, 2)["commitInfo"][0]["operationParameters"]["mode"] == "Overwrite"
    assert rows_of(table.arrow()) == rows_of(people(1, 2, 3))
    result = table.overwrite(people(7), where="name = 'n1'")
    assert result.rows_deleted == 1
    assert rows_of(table.arrow()) == rows_of(people(2, 3, 7))
    table.overwrite(people(8))
    assert rows_of(table.arrow()) == rows_of(people(8))
    table.truncate()
    assert table.arrow().num_rows == 0


def test_null_in_a_required_column_is_refused(lake, path):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    table = lake.create_table(path, schema)
    with pytest.raises(SchemaMismatchError):
        table.append(pa.table({"id": pa.array([None], pa.int64()), "name": ["x"]}))
    assert lake.table(path).handle.snapshot_version == 0


def test_append_only_tables_keep_their_rows(lake, path, tmp_path):
    table = lake.create_table(path, people(1).schema, properties={"delta.appendOnly": "true"})
    table.append(people(1, 2))
    before = sorted((tmp_path / "t").rglob("*"))
    for change in (
        lambda: table.delete("id = 1"),
        lambda: table.update({"name": "'x'"}),
        lambda: table.overwrite(people(3)),
        lambda: table.truncate(),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"appendOnly"):
            change()
    assert sorted((tmp_path / "t").rglob("*")) == before


def test_a_replaced_table_keeps_its_id_and_history(lake, path):
    first = lake.create_table(path, "a string")
    first.append(pa.table({"a": ["x"]}))
    second = lake.create_table(path, people(1).schema, replace=True)
    assert second.handle.uuid == first.handle.uuid
    assert second.arrow().num_rows == 0
    assert second.arrow(snapshot_id=1).to_pylist() == [{"a": "x"}]


def test_batches_of_an_app_land_once(lake, path):
    table = lake.create_table(path, people(1).schema)
    assert not table.append(people(1), app_batch=AppBatch("a", 1)).skipped
    assert table.append(people(1), app_batch=AppBatch("a", 1)).skipped
    assert lake.table(path).append(people(1), app_batch=AppBatch("a", 0)).skipped
    assert actions(path, 1)["txn"][0]["appId"] == "a"
    assert table.arrow().num_rows == 1


def test_checkpoints_are_written_and_read_back(lake, path, tmp_path):
    table = lake.create_table(path, people(1).schema, properties=VECTORS)
    for number in range(12):
        table.append(people(*range(number * 10, number * 10 + 10)))
    assert (tmp_path / "t/_delta_log/00000000000000000010.checkpoint.parquet").exists()
    again = lake.table(path)
    again.delete("id = 5")  # of a file that only the checkpoint lists
    found = actions(path, 13)["add"][0]
    assert json.loads(found["stats"])["minValues"]["id"] == 0
    assert len(names(again)) == 119


def test_row_ids_go_on_from_the_mark(lake, path):
    properties = {"delta.enableRowTracking": "true", **VECTORS}
    table = lake.create_table(path, people(1).schema, properties=properties)
    table.append(people(1, 2, 3))
    table.append(people(4, 5, 6, 7))
    table.delete("id = 5", mode="merge-on-read")
    adds = [actions(path, version)["add"][0] for version in (1, 2, 3)]
    assert [one["baseRowId"] for one in adds] == [0, 3, 3]
    assert [one["defaultRowCommitVersion"] for one in adds] == [1, 2, 2]
    mark = actions(path, 2)["domainMetadata"][0]
    assert json.loads(mark["configuration"])["rowIdHighWaterMark"] == 6


def test_in_commit_times_only_rise(lake, path):
    properties = {"delta.enableInCommitTimestamps": "true"}
    table = lake.create_table(path, people(1).schema, properties=properties)
    for number in range(4):
        table.append(people(number))
    times = [actions(path, v)["commitInfo"][0]["inCommitTimestamp"] for v in range(5)]
    assert times == sorted(set(times))
    assert [one.timestamp_ms for one in table.snapshots()] == times


def test_user_metadata_and_properties_are_in_the_commit(lake, path):
    table = lake.create_table(path, people(1).schema)
    table.append(people(1), properties={"userMetadata": "why", "job": "7"})
    info = actions(path, 1)["commitInfo"][0]
    assert info["userMetadata"] == "why" and info["tags"]["job"] == "7"
    assert table.snapshots()[-1].summary["job"] == "7"


def test_transactions_take_no_delta_tables(lake, path):
    lake.create_table(path, people(1).schema)
    with (
        pytest.raises(UnsupportedFeatureError, match="transaction"),
        lake.transaction() as tx,
    ):
        tx.table(path).append(people(1))
    assert lake.table(path).arrow().num_rows == 0


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        ({"constraints.positive": "id > 0"}, -1, 5),
        ({"constraints.named": "name IS NOT NULL AND id < 100"}, 100, 5),
    ],
)
def test_rows_that_break_a_check_constraint_are_refused(lake, tmp_path, rule, bad, good):
    made = HandMade(tmp_path / "t").create(metadata(**rule))
    table = lake.table(made.name)
    for change in (
        lambda: table.append(people(good, bad)),
        lambda: table.upsert(people(bad), keys=["id"]),
    ):
        with pytest.raises(SchemaMismatchError, match="CHECK constraint"):
            change()
    table.append(people(good))
    with pytest.raises(SchemaMismatchError, match="CHECK constraint"):
        table.update({"id": str(bad)})
    assert rows_of(lake.table(made.name).arrow()) == rows_of(people(good))


def test_invariants_are_checked(lake, tmp_path):
    text = json.dumps({"expression": {"expression": "id > 3"}})
    fields = [column("id", "long", **{"delta.invariants": text}), column("name", "string")]
    table = lake.table(HandMade(tmp_path / "t").create(metadata(fields)).name)
    with pytest.raises(SchemaMismatchError, match="invariant of column id"):
        table.append(people(3))
    table.append(people(4))
    assert table.arrow().num_rows == 1


def test_a_constraint_that_only_spark_can_evaluate_refuses_every_write(lake, tmp_path):
    made = HandMade(tmp_path / "t").create(metadata(**{"constraints.x": "length(name) > id % 3"}))
    with pytest.raises(UnsupportedFeatureError, match="CHECK constraint x"):
        lake.table(made.name).append(people(1))
    assert lake.table(made.name).handle.snapshot_version == 0
