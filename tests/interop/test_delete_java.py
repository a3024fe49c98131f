"""DELETE by us, read and gone on with by Iceberg Java; and on top of Java's own deletes."""

from __future__ import annotations

import pytest

from tests.parts.java_tables import GRANULARITIES
from tests.parts.rows import rows_of


def make(java, name: str, version: int, *properties: str) -> None:
    extra = "".join(f", {pair}" for pair in properties)
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string) USING iceberg PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version'='{version}'{extra})"
    )
    java(
        f"INSERT INTO java.{name} SELECT id, CAST(id % 2 AS int), CAST(id AS string) "
        "FROM range(0, 200)"
    )


def check(lake, java, name: str, expected: int) -> None:
    java(f"REFRESH TABLE java.{name}")
    theirs = rows_of(java(f"SELECT * FROM java.{name}"))
    assert len(theirs) == expected
    assert rows_of(lake.table(name).arrow()) == theirs


@pytest.mark.parametrize("mode", ["auto", "copy-on-write", "merge-on-read"])
def test_java_reads_what_we_deleted_and_deletes_on(lake, java, name, version, mode):
    make(java, name, version, "'write.delete.mode'='merge-on-read'")
    table = lake.table(name)
    assert table.delete("id >= 10 AND id < 20", mode=mode).rows_deleted == 10
    check(lake, java, name, 190)
    java(f"DELETE FROM java.{name} WHERE id = 30 OR id = 31")
    check(lake, java, name, 188)
    assert table.delete("id = 32 OR v = '33'", mode=mode).rows_deleted == 2
    check(lake, java, name, 186)
    assert lake.sql(f"DELETE FROM {name} WHERE id % 20 = 5").first()["num_deleted_rows"] == 10
    check(lake, java, name, 176)
    assert table.delete("p = 1", mode=mode).rows_deleted == 83
    check(lake, java, name, 93)


@pytest.mark.parametrize(("version", "granularity"), GRANULARITIES)
def test_java_maintains_tables_that_we_deleted_from(lake, java, name, version, granularity):
    make(java, name, version, f"'write.delete.granularity'='{granularity}'")
    lake.table(name).delete("id < 4 OR v = '100'", mode="merge-on-read")
    check(lake, java, name, 195)
    java(
        f"CALL java.system.rewrite_position_delete_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    check(lake, java, name, 195)
    java(
        f"CALL java.system.rewrite_data_files(table => '{name}', "
        "options => map('rewrite-all', 'true'))"
    )
    check(lake, java, name, 195)


def test_row_ids_survive_a_rewrite_as_java_sees_them(lake, java, name):
    make(java, name, 3)
    query = f"SELECT id, _row_id FROM java.{name} WHERE id <> 7"
    before = rows_of(java(query))
    lake.table(name).delete("id = 7", mode="copy-on-write")
    java(f"REFRESH TABLE java.{name}")
    assert rows_of(java(query)) == before
