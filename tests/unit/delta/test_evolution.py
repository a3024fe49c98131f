"""Changes of a Delta table's definition, and compaction: the log, and the rows after them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.delta.type_widening import is_widening
from rowlake.errors import CommitConflictError, InvalidStatementError, UnsupportedFeatureError
from rowlake.model.predicate import Leaf, Op
from rowlake.verbs import write
from tests.any_format import changing
from tests.delta_logs import actions, people
from tests.lakes import rows_of

MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


@pytest.fixture
def path(tmp_path):
    return ("delta", str(tmp_path / "t"))


def test_an_added_column_is_null_in_older_rows(lake, path):
    table = lake.create_table(path, people(1).schema)
    table.append(people(1))
    with changing(table, "schema") as schema:
        schema.add_column("more", "double")
    table = lake.table(path)
    table.append(pa.table({"id": pa.array([2], pa.int64()), "name": ["b"], "more": [0.5]}))
    assert rows_of(table.arrow()) == [(1, "n1", None), (2, "b", 0.5)]
    assert actions(path, 2)["commitInfo"][0]["operation"] == "ADD COLUMNS"
    assert "protocol" not in actions(path, 2)


def test_columns_are_renamed_and_dropped_only_where_they_are_mapped(lake, path):
    table = lake.create_table(path, people(1).schema)
    table.append(people(1))
    with (
        pytest.raises(UnsupportedFeatureError, match="columnMapping"),
        changing(table, "schema") as schema,
    ):
        schema.rename_column("name", "label")
    lake.table(path).set_properties(MAPPED)
    table = lake.table(path)
    with changing(table, "schema") as schema:
        schema.rename_column("name", "label")
    table = lake.table(path)
    assert table.arrow().to_pylist() == [{"id": 1, "label": "n1"}]
    with changing(table, "schema") as schema:
        schema.delete_column("label")
        schema.add_column("label", "long")
    table = lake.table(path)
    assert table.arrow().to_pylist() == [{"id": 1, "label": None}]


def test_switching_to_column_mapping_raises_the_protocol_and_keeps_rows(lake, path):
    table = lake.create_table(path, people(1).schema, partition_by="name")
    table.append(people(1, 2))
    table.set_properties(MAPPED)
    protocol = actions(path, 2)["protocol"][0]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (2, 7)
    table = lake.table(path)
    table.append(people(3))
    assert rows_of(table.arrow()) == rows_of(people(1, 2, 3))
    with pytest.raises(UnsupportedFeatureError, match="only none can become name"):
        table.set_properties({"delta.columnMapping.mode": "none"})


def test_plain_properties_leave_the_protocol_alone(lake, path):
    table = lake.create_table(path, people(1).schema)
    table.set_properties({"a": "b", "delta.appendOnly": "false"})
    assert "protocol" not in actions(path, 1)
    table = lake.table(path)
    table.unset_properties(["a"])
    assert dict(lake.table(path).properties) == {"delta.appendOnly": "false"}


def test_vectors_are_written_once_a_property_allows_them(lake, path):
    table = lake.create_table(path, people(1).schema)
    table.append(people(*range(10)))
    table.set_properties({"delta.enableDeletionVectors": "true"})
    assert actions(path, 2)["protocol"][0]["readerFeatures"] == ["deletionVectors"]
    lake.table(path).delete("id = 1")
    assert actions(path, 3)["add"][0]["deletionVector"]["cardinality"] == 1


def test_constraints_are_not_set_as_properties(lake, path):
    table = lake.create_table(path, people(1).schema)
    with pytest.raises(InvalidStatementError, match="ADD CONSTRAINT"):
        table.set_properties({"delta.constraints.x": "id > 0"})


def test_compaction_changes_no_rows(lake, path):
    properties = {"delta.enableDeletionVectors": "true"}
    table = lake.create_table(path, people(1).schema, properties=properties)
    for first in range(0, 50, 10):
        table.append(people(*range(first, first + 10)))
    table.delete("id = 5")
    table.rewrite_data_files(options={"rewrite-all": "true"})
    found = actions(path, 7)
    assert found["commitInfo"][0]["operation"] == "OPTIMIZE"
    assert {one["dataChange"] for one in [*found["add"], *found["remove"]]} == {False}
    assert len(found["add"]) == 1 and "deletionVector" not in found["add"][0]
    assert table.snapshots()[-1].operation == "replace"
    assert rows_of(table.arrow()) == rows_of(people(*(i for i in range(50) if i != 5)))


@pytest.mark.parametrize(
    ("kind", "lands"),
    [
        ("a column at the end", True),
        ("a property of users", True),
        ("a property of the log", True),
        ("a column in front", False),
        ("another codec", False),
        ("a constraint", False),
    ],
)
def test_rows_land_after_changes_that_files_do_not_depend_on(lake, path, monkeypatch, kind, lands):
    table = lake.create_table(path, people(1).schema)
    table.append(people(1))
    commit = write.commit_or_raise

    def overtaken(*args, **kwargs):
        monkeypatch.setattr(write, "commit_or_raise", commit)
        other = lake.table(path)
        if "column" in kind:
            with changing(other, "schema") as schema:
                schema.add_column("more", "double")
                if "front" in kind:
                    schema.move_first("more")
        elif "constraint" in kind:
            lake.sql(f"ALTER TABLE delta.`{path[1]}` ADD CONSTRAINT c CHECK (id < 2)")
        else:
            names = {"another codec": "delta.parquet.compression.codec"}
            names["a property of the log"] = "delta.checkpointInterval"
            other.set_properties({names.get(kind, "owner"): "7" if "log" in kind else "gzip"})
        return commit(*args, **kwargs)

    monkeypatch.setattr(write, "commit_or_raise", overtaken)
    if lands:
        table.append(people(2))
    else:
        with pytest.raises(CommitConflictError, match="another writer changed"):
            table.append(people(2))
    found = sorted(lake.table(path).arrow()["id"].to_pylist())
    assert found == ([1, 2] if lands else [1])


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        ("byte", "short", True),
        ("integer", "long", True),
        ("long", "integer", False),
        ("integer", "double", True),
        ("long", "double", False),
        ("float", "double", True),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("decimal(5,2)", "decimal(7,3)", True),
        ("decimal(5,2)", "decimal(6,4)", False),
        ("decimal(5,2)", "decimal(5,2)", False),
        ("integer", "decimal(10,0)", True),
        ("integer", "decimal(12,3)", False),
        ("long", "decimal(20,0)", True),
        ("string", "long", False),
    ],
)
def test_types_widen_as_the_protocol_says(before, after, fits):
    assert is_widening(before, after) is fits


def test_a_widened_column_holds_old_and_new_values(lake, path):
    schema = pa.schema([("id", pa.int32()), ("part", pa.string())])
    table = lake.create_table(path, schema)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "part": [""]}))
    with (
        pytest.raises(UnsupportedFeatureError, match="enableTypeWidening"),
        changing(table, "schema") as change,
    ):
        change.update_column("id", pa.int64())
    table.set_properties({"delta.enableTypeWidening": "true"})
    with changing(lake.table(path), "schema") as change:
        change.update_column("id", pa.int64())
    table = lake.table(path)
    table.append(pa.table({"id": pa.array([2**40], pa.int64()), "part": ["b"]}))
    assert rows_of(table.arrow()) == [(1, ""), (2**40, "b")]
    field = json.loads(actions(path, 3)["metaData"][0]["schemaString"])["fields"][0]
    assert field["metadata"] == {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]}
    assert rows_of(table.arrow(where=Leaf(("id",), Op.GT, (5,)))) == [(2**40, "b")]


def test_an_empty_partition_value_is_null(lake, path):
    schema = pa.schema([("id", pa.int64()), pa.field("part", pa.string())])
    table = lake.create_table(path, schema, partition_by="part")
    table.append(pa.table({"id": [1, 2], "part": ["", "b"]}))
    values = [one["partitionValues"]["part"] for one in actions(path, 1)["add"]]
    assert sorted(values, key=str) == [None, "b"]
    assert rows_of(table.arrow()) == [(1, None), (2, "b")]
