"""remove_orphan_files beside Iceberg's own, on the same tables; VACUUM in SQL."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError
from rowlake.model.partition import PartitionBy
from tests.lakes import files_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.table import Table

DAY = 24 * 60 * 60
ROWS = pa.schema([pa.field("id", pa.int64()), pa.field("_day", pa.string())])
ORPHANS = (
    "data/left.parquet",
    "data/_day=a+b/é %20.parquet",
    "data/_day=_x/more.parquet",
    "metadata/left-m0.avro",
    "metadata/left.stats",
    "deep/er/and/deeper/still/x",
)
KEPT = ("data/_SUCCESS", "_hidden/x", "data/.dot", "metadata/.tmp.crc", "data/_days=1/x")


def rows(first: int) -> pa.Table:
    ids = list(range(first, first + 4))
    return pa.table({"id": ids, "_day": ["a b" if i % 2 else "_x" for i in ids]}, schema=ROWS)


def plant(table: Table) -> None:
    """Make all files old, and put orphans, hidden files and a young file beside them."""
    folder = Path(table.location.removeprefix("file:"))
    for name in (*ORPHANS, *KEPT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    when = time.time() - 10 * DAY
    for path in folder.rglob("*"):
        os.utime(path, (when, when))
    (folder / "data/young").write_bytes(b"")


def paths(frame: Any) -> set[str]:
    """Return the one column of a procedure, without the schemes."""
    found = {row[0] for row in frame.collect()}
    assert [field.simpleString() for field in frame.schema] == ["orphan_file_location:string"]
    return {one.removeprefix("file:").replace("///", "/") for one in found}


@pytest.fixture
def table(lake: Lake, name: str, java: Callable[[str], Any]) -> Table:
    made = lake.create_table(
        name,
        ROWS,
        partition_by=[PartitionBy(("_day",))],
        properties={"format-version": "3"},
    )
    made.append(rows(0))
    made.create_tag("first")
    made.create_branch("audit")
    made.append(rows(10), branch="audit")
    made.append(rows(20), stage_only=True)
    made.delete("id = 1", mode="merge-on-read")
    java(f"CALL java.system.compute_table_stats(table => '{name}')")
    java(f"INSERT INTO java.{name} VALUES (40, 'a b')")
    return lake.table(name)


def test_both_find_and_remove_the_same_files(
    table: Table, name: str, java: Callable[[str], Any], lake: Lake
) -> None:
    plant(table)
    before = files_in(table.location)
    expected = {f"{table.location}/{orphan}".removeprefix("file:") for orphan in ORPHANS}
    theirs = paths(
        java(f"CALL java.system.remove_orphan_files(table => '{name}', dry_run => true)")
    )
    ours = paths(lake.sql(f"CALL system.remove_orphan_files(table => '{name}', dry_run => true)"))
    assert ours == theirs == expected
    assert files_in(table.location) == before
    assert paths(lake.sql(f"CALL system.remove_orphan_files('{name}')")) == expected
    assert paths(java(f"CALL java.system.remove_orphan_files('{name}')")) == set()
    assert java(f"SELECT count(*) FROM java.{name}").collect()[0][0] == 4
    plant(table)
    assert paths(java(f"CALL java.system.remove_orphan_files('{name}')")) == expected
    assert paths(lake.sql(f"CALL system.remove_orphan_files('{name}')")) == set()
    assert table.arrow().num_rows == 4
    assert table.arrow(ref="audit").num_rows == 8


def test_both_take_a_location_a_list_and_modes(
    lake: Lake, name: str, java: Callable[[str], Any], spark: Any
) -> None:
    table = lake.create_table(name, ROWS)
    table.append(rows(0))
    plant(table)
    calls = "java.system.remove_orphan_files", "system.remove_orphan_files"
    runs = java, lake.sql
    folder = table.location.removeprefix("file:")
    live = sorted(one.removeprefix("file:") for one in files_in(f"{folder}/data"))
    listed = [f"file:{folder}/data/left.parquet", *(f"file:{one}" for one in live)]
    spark.sql("SELECT timestamp '2020-01-01' AS last_modified").crossJoin(
        spark.createDataFrame([(one,) for one in listed], "file_path string")
    ).createOrReplaceTempView("listed_files")
    answers = []
    for run, call in zip(runs, calls, strict=True):
        there = f"location => '{folder}/data', dry_run => true"
        found = [
            paths(run(f"CALL {call}(table => '{name}', {there})")),
            paths(run(f"CALL {call}(table => '{name}', prefix_listing => true, {there})"))
            if call.startswith("system")
            else None,
            paths(
                run(
                    f"CALL {call}(table => '{name}', dry_run => true, "
                    f"file_list_view => 'listed_files', location => 'file:{folder}')"
                )
            ),
        ]
        answers.append(found)
    (theirs, _, their_list), (ours, flat, our_list) = answers
    assert theirs == ours == flat
    assert len(ours) == 1
    assert our_list == their_list
    assert (
        len(our_list)
        == 1
        + sum(name.startswith("data/") for name in KEPT)
        + len([name for name in ORPHANS if name.startswith("data/_day")])
        + 1
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "older_than => current_timestamp()",
        "max_concurrent_deletes => 0",
        "prefix_mismatch_mode => 'NONE'",
    ],
)
def test_both_refuse(lake: Lake, name: str, java: Callable[[str], Any], arguments: str) -> None:
    lake.create_table(name, ROWS)
    with pytest.raises(Exception, match=r"24 hours|value > 0|Invalid mode"):
        java(f"CALL java.system.remove_orphan_files(table => '{name}', {arguments})")
    with pytest.raises(InvalidStatementError):
        lake.sql(f"CALL system.remove_orphan_files(table => '{name}', {arguments})")


def test_vacuum(lake: Lake, name: str, java: Callable[[str], Any]) -> None:
    table = lake.create_table(name, ROWS)
    table.append(rows(0))
    plant(table)
    planned = lake.sql(f"VACUUM {name} RETAIN 100 HOURS DRY RUN")
    assert planned.columns == ["path"]
    assert len(planned.collect()) == len(ORPHANS) - 2
    done = lake.sql(f"VACUUM {name}").collect()
    assert [row.path for row in done] == [table.location]
    assert lake.sql(f"VACUUM {name} DRY RUN").count() == 0
    assert java(f"SELECT count(*) FROM java.{name}").collect()[0][0] == 4
    with pytest.raises(InvalidStatementError, match="24 hours"):
        lake.sql(f"VACUUM {name} RETAIN 0 HOURS")
