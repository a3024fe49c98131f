"""Iceberg Java reads, and goes on with, tables whose marks were merged with those of others."""

from __future__ import annotations

import pytest

from rowlake.commit.phases import Phase
from tests.parts.rows import rows_of
from tests.parts.stopping import stopped_at


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_java_reads_marks_that_were_merged_on_a_retry(
    lake, java, name, version, granularity, monkeypatch
):
    java(
        f"CREATE TABLE java.{name} (id bigint, p int) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='merge-on-read', "
        f"'write.delete.granularity'='{granularity}')"
    )
    java(
        f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int) "
        "FROM range(0, 200)"
    )
    java(f"DELETE FROM java.{name} WHERE id < 4")

    def overtake() -> None:
        java(f"DELETE FROM java.{name} WHERE id = 10 OR id = 11")
        lake.table(name).delete("id = 20 OR id = 21", mode="merge-on-read")

    table = lake.table(name)
    with stopped_at(Phase.WRITTEN, overtake):
        assert table.delete("id >= 30 AND id < 34", mode="merge-on-read").retries == 1
    gone = {0, 1, 2, 3, 10, 11, 20, 21, 30, 31, 32, 33}
    java(f"REFRESH TABLE java.{name}")
    theirs = rows_of(java(f"SELECT id FROM java.{name}"))
    assert sorted(row[0] for row in theirs) == sorted(set(range(200)) - gone)
    assert rows_of(table.arrow(["id"])) == theirs
    if version == 3:
        assert table.inspect("delete_files")["record_count"].to_pylist() == [6, 6]
    java(f"DELETE FROM java.{name} WHERE id = 100 OR id = 101")
    java(f"REFRESH TABLE java.{name}")
    assert java(f"SELECT count(*) FROM java.{name}").first()[0] == 200 - len(gone) - 2
    assert lake.table(name).arrow().num_rows == 200 - len(gone) - 2
