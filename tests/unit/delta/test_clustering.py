"""Clustered Delta tables: CLUSTER BY, what the log says of it, and OPTIMIZE that clusters files."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from tests.delta_logs import actions, people


@pytest.fixture
def lake(tmp_path):
    with rowlake.connect(tmp_path / "warehouse") as made:
        yield made


@pytest.fixture
def path(tmp_path):
    return ("delta", str(tmp_path / "t"))


def domain(path, version: int):
    found = [
        one
        for one in actions(path, version).get("domainMetadata", ())
        if one["domain"] == "delta.clustering"
    ]
    return json.loads(found[0]["configuration"])["clusteringColumns"] if found else None


def detail(lake, path):
    return lake.sql(f"DESCRIBE DETAIL delta.`{path[1]}`").toArrow().to_pylist()[0]


def test_cluster_by_is_in_the_log_and_in_the_detail(lake, path):
    name = f"delta.`{path[1]}`"
    lake.sql(f"CREATE TABLE {name} (id BIGINT, name STRING) USING delta CLUSTER BY (ID, name)")
    assert domain(path, 0) == [["id"], ["name"]]
    protocol = actions(path, 0)["protocol"][0]
    assert {"clustering", "domainMetadata"} <= set(protocol["writerFeatures"])
    assert protocol["minReaderVersion"] == 1 and protocol["minWriterVersion"] == 7
    assert detail(lake, path)["clusteringColumns"] == ["id", "name"]
    text = lake.sql(f"SHOW CREATE TABLE {name}").toArrow()["createtab_stmt"][0].as_py()
    assert "CLUSTER BY (`id`, `name`)" in text
    lake.sql(f"ALTER TABLE {name} CLUSTER BY (name)")
    assert domain(path, 1) == [["name"]]
    assert actions(path, 1)["commitInfo"][0]["operation"] == "CLUSTER BY"
    lake.sql(f"ALTER TABLE {name} CLUSTER BY NONE")
    assert domain(path, 2) == [] and detail(lake, path)["clusteringColumns"] == []


def test_optimize_clusters_new_files_and_leaves_clustered_ones(lake, path):
    table = lake.create_table(path, people(1).schema, cluster_by=["id"])
    for start in range(3):
        table.append(people(*range(start, 30, 3)))
    name = f"delta.`{path[1]}`"
    lake.sql(f"OPTIMIZE {name}")
    found = actions(path, 4)
    assert len(found["add"]) == 1 and len(found["remove"]) == 3
    (add,) = found["add"]
    assert add["clusteringProvider"] == "liquid" and not add["dataChange"]
    assert add["tags"]["ZCUBE_ZORDER_BY"] == '["id"]'
    assert json.loads(found["commitInfo"][0]["operationParameters"]["clusterBy"]) == ["id"]
    ids = lake.table(path).arrow()["id"].to_pylist()
    assert ids == sorted(ids) == list(range(30))
    before = lake.table(path).handle.snapshot_version
    lake.sql(f"OPTIMIZE {name}")
    assert lake.table(path).handle.snapshot_version == before
    lake.table(path).append(people(99))
    lake.sql(f"OPTIMIZE {name}")  # one file that is not clustered is reason enough
    assert lake.table(path).handle.snapshot_version == before + 2
    lake.sql(f"ALTER TABLE {name} CLUSTER BY (name)")
    lake.sql(f"OPTIMIZE {name}")
    assert actions(path, before + 4)["add"][0]["tags"]["ZCUBE_ZORDER_BY"] == '["name"]'
    lake.sql(f"OPTIMIZE {name} FULL")
    assert lake.table(path).handle.snapshot_version == before + 5
    assert sorted(lake.table(path).arrow()["id"].to_pylist()) == [*range(30), 99]


def test_clustered_columns_have_statistics_whatever_properties_say(lake, path):
    table = lake.create_table(path, people(1).schema, cluster_by="name")
    table.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    lake.table(path).append(people(1, 2))
    stats = json.loads(actions(path, 2)["add"][0]["stats"])
    assert stats["minValues"] == {"name": "n1"}


def test_a_table_made_from_rows_is_clustered(lake, path):
    lake.create_table_as(path, people(1, 2), cluster_by=["id"])
    assert domain(path, 0) == [["id"]]
    assert lake.table(path).handle.view().cluster_by


def test_a_renamed_column_stays_a_clustering_column(lake, path):
    properties = {"delta.columnMapping.mode": "name"}
    lake.create_table(path, people(1).schema, cluster_by=["id"], properties=properties)
    name = f"delta.`{path[1]}`"
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN id TO number")
    assert detail(lake, path)["clusteringColumns"] == ["number"]
    with pytest.raises(InvalidStatementError, match="clustered by it"):
        lake.sql(f"ALTER TABLE {name} DROP COLUMN number")


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["nothing"], "nothing"),
        (["flag"], "no statistics"),
        (["id", "id"], "twice"),
        (["id", "name", "a", "b", "c"], "more than 4"),
    ],
)
def test_columns_that_cannot_cluster_are_refused(lake, path, columns, match):
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("flag", pa.bool_()),
            *((one, pa.int32()) for one in "abc"),
        ]
    )
    with pytest.raises(rowlake.errors.RowlakeError, match=match):
        lake.create_table(path, schema, cluster_by=columns)


def test_clustering_excludes_partitions_and_z_order(lake, path):
    with pytest.raises(InvalidStatementError, match="exclude each other"):
        lake.create_table(path, people(1).schema, cluster_by=["id"], partition_by="name")
    lake.create_table(path, people(1).schema, cluster_by=["id"])
    with pytest.raises(InvalidStatementError, match="it is clustered"):
        lake.sql(f"OPTIMIZE delta.`{path[1]}` ZORDER BY (id)")


def test_iceberg_tables_say_what_takes_the_place_of_clustering(lake):
    lake.sql("CREATE NAMESPACE ns")
    with pytest.raises(UnsupportedFeatureError, match="WRITE ORDERED BY id"):
        lake.sql("CREATE TABLE ns.t (id BIGINT) CLUSTER BY (id)")
    lake.sql("CREATE TABLE ns.t (id BIGINT)")
    with pytest.raises(UnsupportedFeatureError, match="ZORDER BY"):
        lake.sql("ALTER TABLE ns.t CLUSTER BY (id)")
    with pytest.raises(InvalidStatementError, match="FULL"):
        lake.sql("OPTIMIZE ns.t FULL")
