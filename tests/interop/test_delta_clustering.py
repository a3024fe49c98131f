"""Clustered Delta tables: Delta on Spark and rowlake both write them, cluster them and agree."""

from __future__ import annotations

import pyarrow as pa

import rowlake
from tests.parts.delta_spark import run_by_spark


def rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    names = [f"n{one % 7}" for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "score": [1.5] * len(names)})


def test_both_cluster_one_table(tmp_path):
    folder = tmp_path / "t"
    name = f"delta.`{folder}`"
    with rowlake.connect(tmp_path / "warehouse") as lake:
        columns = "id BIGINT, name STRING, score DOUBLE"
        lake.sql(f"CREATE TABLE {name} ({columns}) USING delta CLUSTER BY (id, name)")
        table = lake.table(("delta", str(folder)))
        for start in range(0, 40, 10):
            table.append(rows(start, start + 10))
        lake.sql(f"OPTIMIZE {name}")
        detail, found, _, optimized, _, again, history = run_by_spark(
            [
                f"DESCRIBE DETAIL {name}",
                f"SELECT id FROM {name}",
                f"INSERT INTO {name} SELECT id, 'x', 0.0 FROM range(100, 120)",
                f"OPTIMIZE {name}",
                f"ALTER TABLE {name} CLUSTER BY (name)",
                f"DESCRIBE DETAIL {name}",
                f"DESCRIBE HISTORY {name}",
            ]
        )
        assert detail[0]["clusteringColumns"] == ["id", "name"]
        assert sorted(row["id"] for row in found) == list(range(40))
        assert optimized[0]["metrics"]["numFilesAdded"] >= 1
        assert again[0]["clusteringColumns"] == ["name"]
        told = {row["version"]: row for row in history}
        assert told[5]["operation"] == "OPTIMIZE"
        assert told[5]["operationParameters"]["clusterBy"] == '["id","name"]'
        lake.table(("delta", str(folder))).append(rows(200, 210))
        lake.sql(f"OPTIMIZE {name}")
        lake.sql(f"ALTER TABLE {name} CLUSTER BY NONE")
        detail, found = run_by_spark([f"DESCRIBE DETAIL {name}", f"SELECT id FROM {name}"])
        assert detail[0]["clusteringColumns"] == []
        ids = sorted(row["id"] for row in found)
        assert ids == [*range(40), *range(100, 120), *range(200, 210)]


def test_spark_reads_widened_columns_and_writes_empty_partitions_as_rowlake_does(tmp_path):
    with rowlake.connect(tmp_path / "warehouse") as lake:
        ours, theirs = (f"delta.`{tmp_path / one}`" for one in ("ours", "theirs"))
        properties = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        columns = "(n INT, p STRING) USING delta PARTITIONED BY (p)"
        lake.sql(f"CREATE TABLE {ours} {columns} {properties}")
        lake.sql(f"INSERT INTO {ours} VALUES (1, ''), (2, 'b'), (3, NULL)")
        lake.sql(f"ALTER TABLE {ours} ALTER COLUMN n TYPE BIGINT")
        lake.sql(f"INSERT INTO {ours} VALUES (5000000000, 'b')")
        _, _, found, same = run_by_spark(
            [
                f"CREATE TABLE {theirs} {columns}",
                f"INSERT INTO {theirs} VALUES (1, ''), (2, 'b'), (3, NULL)",
                f"SELECT n, p FROM {ours}",
                f"SELECT CAST(n AS BIGINT) AS n, p FROM {theirs}",
            ]
        )
        assert found == [*same, {"n": 5_000_000_000, "p": "b"}]
