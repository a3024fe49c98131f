"""Metadata tables: the columns, types and rows that Iceberg's Spark tables have."""

from __future__ import annotations

import pytest

from tests.parts.rows import rows_of

TABLES = [
    "snapshots", "history", "refs", "metadata_log_entries", "manifests", "all_manifests",
    "files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files",
    "entries", "all_entries", "partitions", "position_deletes",
]  # fmt: skip
SHAPES = {
    "plain": "",
    "partitioned": "PARTITIONED BY (p, bucket(4, id))",
}


@pytest.fixture(scope="module", params=[2, 3], ids=["v2", "v3"])
def made(request, lake, spark) -> dict[str, str]:
    """Tables with appends by both, deletes by Java, several specs, branches and tags."""
    found = {}
    for shape, layout in SHAPES.items():
        name = f"db.metadata_{shape}_{request.param}"
        spark.sql(
            f"CREATE TABLE java.{name} (id bigint, p int, s struct<x: double, y: string>, "
            f"l array<int>) USING iceberg {layout} TBLPROPERTIES ("
            f"'format-version'='{request.param}', 'write.delete.mode'='merge-on-read')"
        )
        spark.sql(
            f"INSERT INTO java.{name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int), "
            "named_struct('x', id / 2, 'y', 'text'), array(1, 2) FROM range(10)"
        )
        lake.sql(f"INSERT INTO {name} (id, p) VALUES (100, NULL), (101, 1)")
        spark.sql(f"DELETE FROM java.{name} WHERE id % 5 = 1")
        lake.sql(f"ALTER TABLE {name} CREATE TAG before")
        if layout:
            lake.sql(f"ALTER TABLE {name} DROP PARTITION FIELD p")
            lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(10, id)")
        lake.sql(f"INSERT INTO {name} (id, p) VALUES (200, 2)")
        spark.sql(f"DELETE FROM java.{name} WHERE id = 100")
        found[shape] = name
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("table", TABLES)
def test_same_columns_types_and_rows(lake, java, made, shape, table):
    theirs = java(f"SELECT * FROM java.{made[shape]}.{table}")
    ours = lake.sql(f"SELECT * FROM {made[shape]}.{table}")
    assert ours.columns == theirs.columns
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    assert rows_of(ours) == rows_of(theirs)
    assert rows_of(lake.table(made[shape]).inspect(table)) == rows_of(theirs)
