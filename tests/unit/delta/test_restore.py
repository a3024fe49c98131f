"""RESTORE of Delta tables: files, vectors and the definition of an earlier version come back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.commit.phases import Phase
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.any_format import changing
from tests.lakes import rows_of
from tests.parts.stopping import stopped_at

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        found.create_namespace("ns")
        yield found


def people(*ids: int) -> pa.Table:
    names = pa.array([f"c{i % 2}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def make(lake, **properties):
    properties = {f"delta.{key}": one for key, one in properties.items()}
    return lake.create_table("ns.t", people().schema, properties=properties, format="delta")


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_every_version_comes_back_as_it_was(lake, vectors):
    table = make(lake, enableDeletionVectors=vectors, checkpointInterval="3")
    table.append(people(*range(10)))
    table.append(people(*range(10, 20)))
    table.delete("id = 3")
    table.update({"name": "'x'"}, where="id = 12")
    table.delete("id > 4")
    table.truncate()
    before = [rows_of(table.arrow(snapshot_id=at)) for at in range(7)]
    for at in (3, 0, 5, 2, 4, 1):
        done = table.restore(version=at)
        assert done.snapshot_id == table.handle.snapshot_version
        assert rows_of(table.arrow()) == rows_of(lake.table("ns.t").arrow()) == before[at]
    table.append(people(99))
    assert table.arrow().num_rows == len(before[1]) + 1


def test_the_result_and_history_have_deltas_counts(lake):
    table = make(lake)
    table.append(people(1))
    table.append(people(2))
    size = sum(table.files()["file_size_in_bytes"].to_pylist())
    table.overwrite(people(3))
    new = sum(table.files()["file_size_in_bytes"].to_pylist())
    done = table.restore(version=2)
    assert done.num_of_files_after_restore == done.num_restored_files == 2
    assert done.table_size_after_restore == done.restored_files_size == size
    assert (done.num_removed_files, done.removed_files_size) == (1, new)
    told = table.history().to_pylist()[0]
    assert told["operation"] == "RESTORE"
    assert dict(told["operationParameters"]) == {"version": "2", "timestamp": "null"}
    assert dict(told["operationMetrics"])["numRestoredFiles"] == "2"


def test_the_head_itself_changes_nothing(lake):
    table = make(lake)
    table.append(people(1))
    done = table.restore(version=1)
    assert (done.snapshot_id, done.num_restored_files, done.num_of_files_after_restore) == (1, 0, 1)


def test_schema_and_properties_come_back_and_the_protocol_stays(lake):
    table = make(lake)
    table.append(people(1))
    table.set_properties({**VECTORS, "delta.columnMapping.mode": "name", "mine": "1"})
    with changing(table, "schema") as schema:
        schema.add_column("more", "string")
    table = lake.table("ns.t")
    high = table.properties["delta.columnMapping.maxColumnId"]
    protocol = table.handle.state.protocol
    table.restore(version=2)
    assert table.properties["delta.columnMapping.maxColumnId"] == high
    assert [one.name for one in table.schema.fields] == ["id", "name"]
    table.restore(version=1)
    assert "mine" not in table.properties
    assert table.handle.state.protocol == protocol
    assert rows_of(table.arrow()) == rows_of(people(1))


def test_by_time_and_by_rollback(lake):
    table = make(lake)
    table.append(people(1))
    table.append(people(2))
    table.append(people(3))
    times = [one.timestamp_ms for one in table.snapshots()]
    table.restore(as_of=times[2])
    assert rows_of(table.arrow()) == rows_of(people(1, 2))
    table.rollback_to(snapshot_id=1)
    assert rows_of(table.arrow()) == rows_of(people(1))
    with pytest.raises(UnsupportedFeatureError, match="branches"):
        table.rollback_to(snapshot_id=1, branch="b")


def test_missing_files_are_an_error_unless_ignored(lake):
    table = make(lake)
    table.append(people(1))
    table.append(people(2))
    gone = [Path(one) for one in table.files()["file_path"].to_pylist()]
    table.truncate()
    gone[0].unlink()
    with pytest.raises(InvalidStatementError, match=gone[0].name):
        table.restore(version=2)
    assert table.handle.snapshot_version == 3
    assert table.restore(version=2, ignore_missing_files=True).num_restored_files == 2


def test_wrong_versions_are_refused(lake):
    table = make(lake, appendOnly="true")
    table.append(people(1))
    for wrong in ({"version": 9}, {"version": "1"}, {}, {"version": 0, "as_of": 1}, {"as_of": 1}):
        with pytest.raises(InvalidStatementError):
            table.restore(**wrong)
    with pytest.raises(UnsupportedFeatureError, match="appendOnly"):
        table.restore(version=0)
    iceberg = lake.create_table("ns.i", people().schema)
    with pytest.raises(UnsupportedFeatureError, match="rollback_to"):
        iceberg.restore(version=0)


def test_rows_keep_their_ids(lake):
    table = make(lake, enableRowTracking="true", enableDeletionVectors="true")
    table.append(people(1, 2))
    table.delete("id = 1", mode="merge-on-read")
    ids = table.handle.state_at(1).files["base_row_id"].to_pylist()
    table.restore(version=1)
    assert table.handle.state.files["base_row_id"].to_pylist() == ids
    assert rows_of(table.arrow()) == rows_of(people(1, 2))


def test_a_change_that_races_with_it_is_planned_again(lake):
    table = make(lake, enableDeletionVectors="true")
    table.append(people(*range(20)))
    table.delete("id = 4", mode="merge-on-read")
    other = lake.table("ns.t")
    with stopped_at(Phase.PRODUCED, lambda: other.restore(version=1)):
        table.delete("id = 5", mode="merge-on-read")
    assert rows_of(table.arrow()) == rows_of(people(*(one for one in range(20) if one != 5)))
