"""Folders of Parquet files that become Delta tables, and lists of files for other engines."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.lakes import rows_of


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        yield found


def people(*ids: int) -> pa.Table:
    names = pa.array([f"c{i}" for i in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def write(folder: Path, rows: pa.Table, name: str = "a b.parquet") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)


def test_a_folder_becomes_a_table_in_place(lake, tmp_path):
    folder = tmp_path / "plain"
    write(folder, people(1, 2))
    write(folder / "sub", people(3), "c.parquet")
    (folder / "_SUCCESS").write_text("")
    before = {one: one.stat().st_mtime_ns for one in folder.rglob("*.parquet")}
    table = lake.convert_to_delta(str(folder))
    assert rows_of(table.arrow()) == rows_of(people(1, 2, 3))
    assert {
        one: one.stat().st_mtime_ns
        for one in folder.rglob("*.parquet")
        if "_delta_log" not in one.parts
    } == before
    told = table.history().to_pylist()
    assert [one["operation"] for one in told] == ["CONVERT"]
    assert dict(told[0]["operationMetrics"]) == {"numConvertedFiles": "2"}
    table.delete("id = 1")
    table.append(people(9))
    again = lake.table(f"delta.`{folder}`")
    assert rows_of(again.arrow()) == rows_of(people(2, 3, 9))
    with pytest.raises(InvalidStatementError, match="already"):
        lake.convert_to_delta(str(folder))


def test_partition_columns_have_the_types_that_are_given(lake, tmp_path):
    folder = tmp_path / "plain"
    for day, code in (("2024-01-01", "01"), ("2024-01-02", "__HIVE_DEFAULT_PARTITION__")):
        write(folder / f"day={day}" / f"code={code}", people(int(day[-1])))
    for wrong in (None, "day DATE", "day DATE, code STRING, x INT"):
        with pytest.raises(InvalidStatementError, match="partition columns"):
            lake.convert_to_delta(str(folder), partition_by=wrong)
    assert not (folder / "_delta_log").exists()
    table = lake.convert_to_delta(str(folder), partition_by="day DATE, code STRING")
    assert [one.name for one in table.spec.fields] == ["day", "code"]
    found = {row["id"]: (str(row["day"]), row["code"]) for row in table.arrow().to_pylist()}
    assert found == {1: ("2024-01-01", "01"), 2: ("2024-01-02", None)}


def test_statistics_can_be_left_out(lake, tmp_path):
    write(tmp_path / "plain", people(1, 2))
    table = lake.convert_to_delta(str(tmp_path / "plain"), statistics=False)
    stats = table.handle.state.files["stats"].to_pylist()
    assert stats == ['{"numRecords":2,"minValues":{},"maxValues":{},"nullCount":{}}']


def test_what_is_no_folder_of_parquet_files_is_refused(lake, tmp_path):
    with pytest.raises(InvalidStatementError):
        lake.convert_to_delta(str(tmp_path / "none"))
    write(tmp_path / "plain", people(1))
    with pytest.raises(InvalidStatementError, match="not a folder"):
        lake.convert_to_delta(str(tmp_path / "plain" / "a b.parquet"))


def manifests(table) -> dict[str, set[str]]:
    root = Path(table.location) / "_symlink_format_manifest"
    return {
        str(one.parent.relative_to(root)): set(one.read_text().split("\n")) - {""}
        for one in root.rglob("manifest")
    }


def locations(table) -> set[str]:
    return {f"file:{one}" for one in table.handle.state.files["location"].to_pylist()}


def test_manifests_list_the_live_files(lake, tmp_path):
    table = lake.create_table(f"delta.`{tmp_path}/t`", people().schema)
    table.generate()
    assert manifests(table) == {".": set()}
    table.append(people(1))
    table.append(people(2))
    table.delete("id = 1")
    table.generate("symlink_format_manifest")
    assert manifests(table) == {".": locations(table)}
    with pytest.raises(InvalidStatementError, match="symlink_format_manifest"):
        table.generate("other")


def test_manifests_follow_commits_where_the_table_says_so(lake, tmp_path):
    enabled = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
    table = lake.create_table(
        f"delta.`{tmp_path}/t`", people().schema, partition_by="name", properties=enabled
    )
    table.append(people(1, 2))
    assert set(manifests(table)) == {"name=c1", "name=c2"}
    table.delete("name = 'c1'")
    assert manifests(table) == {"name=c2": locations(table)}


def test_manifests_of_tables_with_vectors_are_refused(lake, tmp_path):
    vectors = {"delta.enableDeletionVectors": "true"}
    table = lake.create_table(f"delta.`{tmp_path}/t`", people().schema, properties=vectors)
    table.append(people(1, 2))
    table.delete("id = 1", mode="merge-on-read")
    with pytest.raises(UnsupportedFeatureError, match="PURGE"):
        table.generate()
    table.reorg()
    table.generate()
    assert manifests(table) == {".": locations(table)}
