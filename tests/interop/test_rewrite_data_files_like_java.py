"""rewrite_data_files beside Iceberg Java on the same table state: rows, counts, lineage, files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowlake.commit.phases import Phase
from tests.parts.java_tables import commit_equality_deletes, load
from tests.parts.rows import rows_of
from tests.parts.stopping import stopped_at

OUTPUT = {
    "rewritten_data_files_count": "int",
    "added_data_files_count": "int",
    "rewritten_bytes_count": "bigint",
    "failed_data_files_count": "int",
    "removed_delete_files_count": "int",
}
ALL = "'rewrite-all', 'true'"
CALLS = [
    "",
    f"where => 'p = 1', options => map({ALL}, 'remove-dangling-deletes', 'true')",
    f"strategy => 'sort', sort_order => 'v DESC NULLS LAST, id', options => map({ALL})",
    f"strategy => 'sort', sort_order => 'zorder(id, v)', options => map({ALL}, "
    "'var-length-contribution', '4', 'max-output-size', '64', 'compression-factor', '1.2')",
]
OF_ALL_VERSIONS = [
    "options => map('min-input-files', '20')",
    "options => map('min-input-files', '100', 'delete-file-threshold', '1')",
    f"where => 'id < 150 AND v IS NOT NULL', options => map({ALL})",
    f"options => map({ALL}, 'max-file-group-size-bytes', '1')",
    f"options => map({ALL}, 'partial-progress.enabled', 'true', "
    "'partial-progress.max-commits', '2', 'rewrite-job-order', 'bytes-asc')",
    f"options => map({ALL}, 'use-starting-sequence-number', 'false')",
]


def make(spark, java, name: str, version: int) -> None:
    """A table of two partitions in six inserts, with position and equality deletes."""
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        "'write.update.mode'='merge-on-read')"
    )
    for number in range(6):
        insert(java, name, 100 * number)
    java(f"DELETE FROM java.{name} WHERE id % 100 IN (3, 51) AND id < 300")
    equality_delete(spark, java, name, [7, 101, 550], "p=1")
    insert(java, name, 550, 20)


def insert(java, name: str, first: int, count: int = 100) -> None:
    java(
        f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int), "
        f"CAST(id * 7 % 100 AS string) FROM range({first}, {first + count})"
    )


def equality_delete(spark, java, name: str, ids: list[int], partition: str) -> None:
    location = java(f"DESCRIBE EXTENDED java.{name}").where("col_name = 'Location'").first()[1]
    keys = pa.table({"id": pa.array(ids, pa.int64())})
    commit_equality_deletes(spark, load(spark, location), keys, [1], partition)


def columns_of(version: int) -> str:
    return "*" if version < 3 else "*, _row_id, _last_updated_sequence_number"


def check(lake, java, name: str, version: int, expected: list[tuple] | None = None) -> list[tuple]:
    """Both libraries read the same rows, with their lineage."""
    java(f"REFRESH TABLE java.{name}")
    theirs = rows_of(java(f"SELECT {columns_of(version)} FROM java.{name}"))
    more = ["_row_id", "_last_updated_sequence_number"] if version > 2 else []
    table = lake.table(name)
    assert rows_of(table.arrow(columns=["id", "p", "v", *more])) == theirs
    assert expected is None or theirs == expected
    return theirs


def call(run, catalog: str, name: str, arguments: str) -> dict[str, Any]:
    more = f", {arguments}" if arguments else ""
    found = run(f"CALL {catalog}system.rewrite_data_files(table => '{name}'{more})")
    assert dict(found.dtypes) == OUTPUT
    assert found.columns == list(OUTPUT)
    return found.first().asDict()


def live(java, name: str) -> list[tuple]:
    """Return content, spec, partition and rows of each live file, as Java sees them."""
    java(f"REFRESH TABLE java.{name}")
    return rows_of(
        java(
            "SELECT data_file.content, data_file.spec_id, data_file.partition.p, "
            "data_file.record_count, sequence_number "
            f"FROM java.{name}.entries WHERE status < 2 AND data_file.content = 0"
        )
    )


def both(
    lake, java, name: str, version: int, before: list[tuple], arguments: str
) -> tuple[dict, dict, list, list]:
    """Run Java's procedure, go back, run ours: what each answers, and the files it leaves."""
    start = lake.table(name).handle.metadata.current_snapshot_id
    theirs = call(java, "java.", name, arguments)
    check(lake, java, name, version, before)
    left = live(java, name)
    lake.table(name).rollback_to(snapshot_id=start)
    java(f"REFRESH TABLE java.{name}")
    ours = call(lake.sql, "", name, arguments)
    check(lake, java, name, version, before)
    mine = live(java, name)
    lake.table(name).rollback_to(snapshot_id=start)
    return theirs, ours, left, mine


def test_the_same_calls_do_the_same(lake, java, spark, name, version):
    make(spark, java, name, version)
    before = check(lake, java, name, version)
    for arguments in [*CALLS, *(OF_ALL_VERSIONS if version == 2 else [])]:
        theirs, ours, left, mine = both(lake, java, name, version, before, arguments)
        if "starting-sequence" in arguments:  # theirs is a snapshot earlier
            left, mine = [row[:-1] for row in left], [row[:-1] for row in mine]
        assert mine == left, arguments
        # Java counts vectors and, where asked, dangling deletes; we count all that the table lost.
        assert ours.pop("removed_delete_files_count") >= theirs.pop("removed_delete_files_count")
        assert ours == theirs, arguments


@pytest.mark.parametrize("version", [3])
def test_rows_of_old_specs_go_where_they_are_told(lake, java, spark, name, version):
    make(spark, java, name, version)
    for number, change in enumerate(
        ("ADD PARTITION FIELD bucket(2, id)", "DROP PARTITION FIELD p")
    ):
        java(f"ALTER TABLE java.{name} {change}")
        insert(java, name, 700 + 100 * number)
    before = check(lake, java, name, version)
    for arguments in ("", f"options => map({ALL})"):
        theirs, ours, left, mine = both(lake, java, name, version, before, arguments)
        assert sorted({row[1] for row in left}) == sorted({row[1] for row in mine})
        assert sum(row[3] for row in left) == sum(row[3] for row in mine)
        names = ["rewritten_data_files_count", "rewritten_bytes_count"]
        assert [ours[each] for each in names] == [theirs[each] for each in names]
    # 14 files of the first spec, four of the second, two of the third; then nothing is left to do.
    # Java groups by the table's spec also where another is written, and would begin anew each time.
    start = lake.table(name).handle.metadata.current_snapshot_id
    for arguments, counts in (("options => map('output-spec-id', '0')", (20, 4)), ("", (18, 2))):
        lake.table(name).rollback_to(snapshot_id=start)
        done = call(lake.sql, "", name, arguments)
        assert (done["rewritten_data_files_count"], done["added_data_files_count"]) == counts
        assert call(lake.sql, "", name, arguments)["rewritten_data_files_count"] == 0
        check(lake, java, name, version, before)
    assert call(java, "java.", name, "")["rewritten_data_files_count"] == 0


@pytest.mark.parametrize("version", [2])
def test_sorted_files_say_by_which_order(lake, java, spark, name, version):
    make(spark, java, name, version)
    java(f"ALTER TABLE java.{name} WRITE ORDERED BY v, id DESC")
    call(lake.sql, "", name, f"strategy => 'sort', options => map({ALL})")
    java(f"REFRESH TABLE java.{name}")
    assert rows_of(java(f"SELECT DISTINCT sort_order_id FROM java.{name}.data_files")) == [(1,)]
    rows = java(f"SELECT v, id, p FROM java.{name}").collect()
    for partition in (0, 1):
        keys = [(row.v, -row.id) for row in rows if row.p == partition]
        assert keys == sorted(keys)


@pytest.mark.parametrize(("version", "order"), [(2, "binpack"), (3, "zorder")])
def test_java_applies_deletes_that_land_while_we_compact(
    lake, java, spark, name, version, order, monkeypatch
):
    make(spark, java, name, version)
    before = check(lake, java, name, version)

    def overtake() -> None:
        equality_delete(spark, java, name, [11, 333, 565], "p=1")
        java(f"REFRESH TABLE java.{name}")
        java(f"DELETE FROM java.{name} WHERE id IN (20, 21, 400)")

    columns = ["id", "v"] if order == "zorder" else None
    with stopped_at(Phase.WRITTEN, overtake):
        report = lake.table(name).rewrite_data_files(
            order, columns, options={"rewrite-all": "true"}
        )
    # Ordered rows are found again by their ids, which version 3 has.
    assert (report.given_up_files_count, report.rewritten_data_files_count) == (0, 14)
    gone = {11, 333, 565, 20, 21, 400}
    check(lake, java, name, version, [row for row in before if row[0] not in gone])
    java(f"DELETE FROM java.{name} WHERE id = 30")
    check(lake, java, name, version, [row for row in before if row[0] not in gone | {30}])
