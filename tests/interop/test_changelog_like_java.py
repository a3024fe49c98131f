"""create_changelog_view beside Iceberg Java on the same copy-on-write tables.

Java refuses tables with delete files, so that only copy-on-write is compared. It shows rows in the
current schema, ours are in the schema of the end: the spans end after the schema changed.
"""

from __future__ import annotations

import pytest

from tests.parts.rows import rows_of

PROCEDURE = "create_changelog_view"
CALLS = [
    "",
    "identifier_columns => array('id')",
    "identifier_columns => array('id'), compute_updates => false",
    "net_changes => true",
    "options => map('start-snapshot-id', '{1}', 'end-snapshot-id', '{4}')",
    "options => map('start-snapshot-id', '{2}'), identifier_columns => array('id', 'p')",
    "options => map('end-snapshot-id', '{5}'), net_changes => true",
]


def make(java, name: str, *, twice: bool) -> list[int]:
    """A table with each kind of change; some rows are there twice, if Java can take that."""
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string, f double) USING iceberg "
        "PARTITIONED BY (p) TBLPROPERTIES ('format-version'='2')"
    )
    insert(java, name, 0, 40)
    insert(java, name, 30 if twice else 50, 20)
    java(f"DELETE FROM java.{name} WHERE id IN (3, 35)")
    java(f"UPDATE java.{name} SET v = 'new', p = 1 - p WHERE id BETWEEN 8 AND 9")
    java(f"ALTER TABLE java.{name} ADD COLUMN more int")
    java(
        f"MERGE INTO java.{name} t USING (SELECT id FROM range(10, 14) UNION ALL SELECT 90) s "
        "ON t.id = s.id WHEN MATCHED AND s.id = 11 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET t.more = 5 "
        "WHEN NOT MATCHED THEN INSERT (id, p, v, f, more) VALUES (s.id, 0, 'x', 0.0, NULL)"
    )
    java(f"CALL java.system.rewrite_data_files('{name}', options => map('rewrite-all', 'true'))")
    java(f"DELETE FROM java.{name} WHERE id = 90")
    found = java(f"SELECT snapshot_id FROM java.{name}.snapshots ORDER BY committed_at")
    return [row[0] for row in found.collect()]


def insert(java, name: str, first: int, count: int) -> None:
    java(
        f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int), "
        f"CAST(id * 7 % 10 AS string), CAST('NaN' AS double) FROM range({first}, {first + count})"
    )


@pytest.mark.parametrize("twice", [True, False])
def test_changelogs_are_the_same(lake, java, name, twice):
    snapshots = make(java, name, twice=twice)
    for call in [each for each in CALLS if twice == ("identifier" not in each)]:
        arguments = ", ".join(filter(None, [f"'{name}'", call.format(*snapshots)]))
        if call:
            arguments = f"table => {arguments}"
        theirs = java(f"CALL java.system.{PROCEDURE}({arguments})")
        assert theirs.columns == ["changelog_view"]
        view = theirs.first()[0]
        wanted_columns = java(f"SELECT * FROM {view}").dtypes
        wanted = rows_of(java(f"SELECT * FROM {view}"))
        ours = lake.sql(f"CALL system.{PROCEDURE}({arguments})")
        assert (ours.columns, ours.first()[0]) == (["changelog_view"], view.strip("`"))
        found = lake.spark.table(view)
        assert found.dtypes == wanted_columns
        if "net_changes" in call:  # Java dates a row by the last rewrite that carried it over
            theirs = [row[:-2] for row in wanted]
            assert [row[:-2] for row in rows_of(found)] == theirs
        else:
            assert rows_of(found) == wanted, call
