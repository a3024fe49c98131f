"""Change feeds of Delta tables: rowlake, Delta on Spark and delta-rs tell the same changes."""

from __future__ import annotations

from collections import Counter

import deltalake
import pyarrow as pa
import pytest

import rowlake
from tests.parts.delta_spark import run_by_spark

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
OURS = {
    "plain": ({}, ()),
    "vectors": (VECTORS, ()),
    "partitioned": ({}, "city"),
    "mapped": ({"delta.columnMapping.mode": "name", **VECTORS}, "city"),
}
THEIRS = {"spark_plain": {}, "spark_vectors": VECTORS}


def people(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    cities = pa.array([f"c{i % 3}" for i in ids])
    return pa.table({"id": pa.array(ids, pa.int64()), "city": cities})


def write(lake, place, properties, partition_by):
    """Make every kind of change."""
    table = lake.create_table(
        place, people(0, 1).schema, properties={**FEED, **properties}, partition_by=partition_by
    )
    table.append(people(0, 20))
    table.update({"city": "'moved'"}, where="id in (3, 4)")
    table.delete("id = 7")
    table.upsert(pa.table({"id": [9, 40], "city": ["c9", "new"]}), keys=["id"])
    merge = table.merge(people(11, 13), on=["id"])
    merge.when_matched_delete().execute()
    table.delete("id >= 0")


def spark_statements(folder, properties):
    """Return statements that make every kind of change."""
    given = ", ".join(f"'{k}' = '{v}'" for k, v in {**FEED, **properties}.items())
    name = f"delta.`{folder}`"
    return [
        f"CREATE TABLE {name} (id BIGINT, city STRING) USING delta TBLPROPERTIES ({given})",
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('c', id % 3) FROM range(20)",
        f"UPDATE {name} SET city = 'moved' WHERE id IN (3, 4)",
        f"DELETE FROM {name} WHERE id = 7",
        f"DELETE FROM {name} WHERE id = 8",
        f"MERGE INTO {name} t USING (SELECT explode(array(9L, 40L)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET city = 'c9' "
        "WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, 'new')",
        f"OPTIMIZE {name}",
        f"RESTORE TABLE {name} TO VERSION AS OF 3",
    ]


def in_order(rows):
    """Return changes in order; Delta on Spark also tells rows that RESTORE took from file to file.

    Those are deleted and inserted by one version, and rowlake leaves them out.
    """
    names = ("_commit_version", "_change_type", "id", "city")
    found = Counter(tuple(row[name] for name in names) for row in rows)
    for version, kind, *row in list(found):
        both = [(version, one, *row) for one in ("delete", "insert")]
        if kind == "delete":
            found.subtract(dict.fromkeys(both, min(found[one] for one in both)))
    return sorted(found.elements())


def ours(lake, place):
    found = lake.table(place).changes_arrow(start=0).to_pylist()
    return in_order({**row, "_commit_version": row["_commit_snapshot_id"]} for row in found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("feeds")


@pytest.fixture(scope="module")
def lake(folder):
    with rowlake.connect(str(folder / "lake")) as found:
        for name, layout in OURS.items():
            write(found, ("delta", str(folder / name)), *layout)
        yield found


@pytest.fixture(scope="module")
def by_spark(folder, lake):
    """What Delta on Spark says of the changes of each table; it writes some of them first."""
    making = [
        text
        for name, properties in THEIRS.items()
        for text in spark_statements(folder / name, properties)
    ]
    names = [*OURS, *THEIRS]
    asking = [f"SELECT * FROM table_changes_by_path('{folder / name}', 1)" for name in names]
    found = run_by_spark([*making, *asking])[len(making) :]
    return {name: in_order(rows) for name, rows in zip(names, found, strict=True)}


@pytest.mark.parametrize("name", [*OURS, *THEIRS])
def test_delta_on_spark_tells_the_same_changes(lake, folder, by_spark, name):
    assert by_spark[name]
    assert ours(lake, ("delta", str(folder / name))) == by_spark[name]


@pytest.mark.parametrize("name", ["plain", "partitioned"])
def test_delta_rs_tells_the_same_changes(lake, folder, name):
    table = deltalake.DeltaTable(str(folder / name))
    found = pa.table(table.load_cdf(starting_version=1).read_all())
    assert in_order(found.to_pylist()) == ours(lake, ("delta", str(folder / name)))
