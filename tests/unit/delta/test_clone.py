"""Clones of Delta tables: the rows of a version, in files of the source or in copies."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.delta_writing import WrittenTable
from tests.lakes import rows_of


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "a lake")) as found:
        found.create_namespace("ns")
        yield found


def people(*ids: int) -> pa.Table:
    names = pa.array([f"c {i % 2}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def make(lake, partition_by=(), **properties):
    properties = {f"delta.{key}": one for key, one in properties.items()}
    table = lake.create_table(
        "ns.t",
        people().schema,
        partition_by=partition_by,
        properties={"delta.enableDeletionVectors": "true", **properties},
        format="delta",
    )
    table.append(people(*range(20)))
    table.delete("id = 3", mode="merge-on-read")
    return table


def adds(table, version: int = 0) -> list[dict]:
    text = (Path(table.location) / "_delta_log" / f"{version:020d}.json").read_text()
    actions = [json.loads(line) for line in text.splitlines()]
    return [one["add"] for one in actions if "add" in one]


def data_files(table) -> list[Path]:
    root = Path(table.location)
    return [one for one in root.rglob("*") if one.is_file() and "_delta_log" not in one.parts]


@pytest.mark.parametrize("by_path", [True, False])
@pytest.mark.parametrize("partition_by", [(), "name"])
def test_a_shallow_clone_reads_the_files_of_its_source(lake, tmp_path, by_path, partition_by):
    source = make(lake, partition_by)
    name = f"delta.`{tmp_path}/b c`" if by_path else "ns.b"
    done = source.clone(name, shallow=True)
    clone = lake.table(name)
    assert (done.num_copied_files, done.copied_files_size) == (0, 0)
    assert rows_of(clone.arrow()) == rows_of(source.arrow())
    assert data_files(clone) == []
    assert all(one["path"].startswith("file:///") for one in adds(clone))
    vectors = [one["deletionVector"] for one in adds(clone) if "deletionVector" in one]
    assert {one["storageType"] for one in vectors} == {"p"}
    before = rows_of(source.arrow())
    clone.delete("id = 4", mode="merge-on-read")
    clone.append(people(50))
    clone.update({"name": "'x'"}, where="id = 7")
    clone.rewrite_data_files(options={"rewrite-all": "true"})
    assert sorted(row[0] for row in rows_of(clone.arrow())) == sorted({*range(20), 50} - {3, 4})
    assert rows_of(source.arrow()) == before
    clone.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert rows_of(source.arrow()) == before


@pytest.mark.parametrize("partition_by", [(), "name"])
def test_a_deep_clone_stands_alone(lake, tmp_path, partition_by):
    source = make(lake, partition_by)
    expected = rows_of(source.arrow())
    done = source.clone("ns.b")
    clone = lake.table("ns.b")
    assert done.num_copied_files == len(data_files(clone)) > 0
    assert done.copied_files_size == sum(one.stat().st_size for one in data_files(clone))
    for path in data_files(source):
        path.unlink()
    assert rows_of(clone.arrow()) == expected
    assert all("://" not in one["path"] for one in adds(clone))
    shallow_of_it = clone.clone(f"delta.`{tmp_path}/s`", shallow=True)
    assert shallow_of_it.num_copied_files == 0
    deep = lake.table(f"delta.`{tmp_path}/s`")
    deep.clone(f"delta.`{tmp_path}/d`")
    assert rows_of(lake.table(f"delta.`{tmp_path}/d`").arrow()) == expected


def test_an_older_version_with_properties_of_its_own(lake):
    source = make(lake, appendOnly="false")
    source.clone("ns.b", shallow=True, version=1, properties={"delta.appendOnly": "true", "a": "1"})
    clone = lake.table("ns.b")
    assert clone.arrow().num_rows == 20
    assert (clone.properties["delta.appendOnly"], clone.properties["a"]) == ("true", "1")
    assert clone.handle.uuid != source.handle.uuid
    told = clone.history().to_pylist()[0]
    assert told["operation"] == "CLONE"
    assert dict(told["operationParameters"])["sourceVersion"] == "1"
    assert dict(told["operationMetrics"])["sourceNumOfFiles"] == "1"


def test_rows_of_a_clone_have_ids_of_their_own(lake):
    source = make(lake, enableRowTracking="true")
    source.append(people(30, 31))
    source.clone("ns.b")
    clone = lake.table("ns.b")
    files = clone.handle.state.files
    assert sorted(files["base_row_id"].to_pylist()) in ([0, 2], [0, 20])
    clone.append(people(40))
    assert max(clone.handle.state.files["base_row_id"].to_pylist()) == 22


def test_what_is_refused(lake, tmp_path):
    source = make(lake)
    source.clone("ns.b")
    for wrong in ({"name": "ns.b"}, {"name": "ns.c", "version": 9}, {"name": "none.c"}):
        with pytest.raises(InvalidStatementError):
            source.clone(**wrong)
    with pytest.raises(InvalidStatementError, match="column mapping"):
        source.clone("ns.c", properties={"delta.columnMapping.mode": "name"})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(InvalidStatementError, match="holds files"):
        source.clone(f"delta.`{tmp_path}/full`")
    iceberg = lake.create_table("ns.i", people().schema)
    with pytest.raises(UnsupportedFeatureError, match="Delta"):
        iceberg.clone("ns.c")
    assert not lake.exists("ns.c")


def test_files_with_deleted_rows_are_purged(lake):
    table = make(lake)
    table.append(people(30, 31))
    kept = {one["path"] for one in adds(table, 3)}
    before = rows_of(table.arrow())
    done = table.reorg()
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (1, 1)
    assert rows_of(table.arrow()) == before
    files = table.handle.state.files
    assert files["storage_type"].null_count == files.num_rows == 2
    assert kept < {one.rpartition("/")[2] for one in files["location"].to_pylist()}
    assert all(one["dataChange"] is False for one in adds(table, 4))
    assert table.reorg().rewritten_data_files_count == 0


def test_a_copy_never_leaves_the_folder_of_its_clone(lake, tmp_path):
    source = WrittenTable(tmp_path / "x" / "source").create()
    written = source.write(people(1), file="../outside.parquet")
    source.append(written)
    log = source.log / f"{1:020d}.json"
    place = f"file://{tmp_path}/x/outside.parquet"
    assert place in log.read_text() or "../outside.parquet" in log.read_text()
    log.write_text(log.read_text().replace(place, "../outside.parquet"))
    lake.table(source.name).clone(f"delta.`{tmp_path}/y/clone`")
    assert [one.name for one in (tmp_path / "y").iterdir()] == ["clone"]
    assert rows_of(lake.table(f"delta.`{tmp_path}/y/clone`").arrow()) == rows_of(people(1))
