"""Changes of Delta tables in SQL, as streams, and streams into Delta tables."""

from __future__ import annotations

import pytest

import rowlake
from tests.delta_logs import people


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("delta-streams")), spark=spark) as found:
        found.create_namespace("ns")
        yield found


def change(table):
    table.append(people(*range(6)))
    table.update({"name": "'x'"}, where="id = 1")
    table.delete("id = 2")


def rows(lake, text):
    return sorted(tuple(row) for row in lake.sql(text).collect())


@pytest.mark.parametrize(
    ("switch", "types"),
    [("false", ("insert", "delete")), ("true", ("update_postimage", "update_preimage"))],
)
def test_statements_read_changes(lake, switch, types):
    properties = {"delta.enableChangeDataFeed": switch}
    name = f"ns.feed_{switch}"
    table = lake.create_table(name, people(1).schema, format="delta", properties=properties)
    change(table)
    columns = "_change_type, id, name, _commit_snapshot_id"
    expected = sorted([(types[0], 1, "x", 2), (types[1], 1, "n1", 2), ("delete", 2, "n2", 3)])
    assert rows(lake, f"SELECT {columns} FROM table_changes('{name}', 1)") == expected
    assert rows(lake, f"SELECT {columns} FROM table_changes('{name}', 2, 3)") == [
        ("delete", 2, "n2", 3)
    ]
    text = f"SELECT {columns} FROM {name}.changes WHERE _commit_snapshot_id > 1"
    assert rows(lake, text) == expected
    keyed = table.changes(start=1, keys=["id"], where="id = 1").collect()
    assert sorted(row._change_type for row in keyed) == ["update_postimage", "update_preimage"]


@pytest.mark.parametrize("switch", ["false", "true"])
def test_a_copy_follows_by_streams(lake, tmp_path, switch):
    properties = {"delta.enableChangeDataFeed": switch, "delta.enableDeletionVectors": "true"}
    source, copy = (
        lake.create_table(f"ns.{one}_{switch}", people(1).schema, format="delta", properties=given)
        for one, given in (("source", properties), ("copy", {}))
    )

    def follow():
        copy.stream_upsert(
            lake.read_stream(source.name, changes=True),
            keys=["id"],
            sequence_by="_change_ordinal",
            apply_as_deletes="_change_type = 'delete'",
            app_id="copy",
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        ).awaitTermination()

    source.append(people(*range(6)))
    follow()
    source.update({"name": "'x'"}, where="id = 1")
    source.delete("id = 2")
    source.delete("id = 4 AND name = 'n4'")
    follow()
    follow()
    held = {row["id"]: row["name"] for row in copy.arrow().to_pylist()}
    assert held == {row["id"]: row["name"] for row in source.arrow().to_pylist()}
    assert held[1] == "x" and 2 not in held
