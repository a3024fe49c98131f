"""UPDATE, MERGE and upsert by us, read and gone on with by Iceberg Java, and by us on top of that.

Every mode takes the same steps; after ours both libraries (and PyIceberg) see equal rows.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.parts.rows import rows_of

MODES = {
    "rewritten": (2, {"mode": "copy-on-write"}),
    "file_deletes": (2, {"mode": "merge-on-read", "granularity": "file"}),
    "partition_deletes": (2, {"mode": "merge-on-read", "granularity": "partition"}),
    "vectors": (3, {"mode": "merge-on-read"}),
    "auto": (3, {}),
}
LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


@pytest.fixture(params=MODES)
def table(request, lake, java, name):
    """A table that Java made, of 60 rows in two files in each of two partitions."""
    version, chosen = MODES[request.param]
    properties = {"format-version": str(version)}
    if "mode" in chosen:
        properties |= {f"write.{verb}.mode": chosen["mode"] for verb in ("update", "merge")}
    # Java has no mode of its own that chooses.
    properties["write.delete.mode"] = chosen.get("mode", "merge-on-read")
    if "granularity" in chosen:
        properties["write.delete.granularity"] = chosen["granularity"]
    listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    java(
        f"CREATE TABLE java.{name} (id bigint, p int, v string, s struct<a: int, b: double>) "
        f"USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({listed})"
    )
    for first in (0, 30):
        java(
            f"INSERT INTO java.{name} SELECT id, CAST(id % 2 AS int), concat('old ', id), "
            f"named_struct('a', CAST(id AS int), 'b', id / 4D) FROM range({first}, {first + 30})"
        )
    return lake.table(name)


def agree(table, java) -> dict[int, tuple]:
    """Check that all libraries read the same rows; return them by id."""
    ours = rows_of(table.arrow())
    assert rows_of(java(f"SELECT * FROM java.{table.name}")) == ours
    assert rows_of(table.evolve().scan().to_arrow()) == ours
    assert len({row[0] for row in ours}) == len(ours)
    if table.format_version >= 3:
        columns = ", ".join(LINEAGE)
        seen = rows_of(java(f"SELECT {columns} FROM java.{table.name}"))
        assert rows_of(table.arrow(LINEAGE)) == seen
        assert len({row_id for _, row_id, _ in seen}) == len(seen)
    return {row[0]: row for row in ours}


def row_ids(table) -> dict[int, int]:
    if table.format_version < 3:
        return {}
    return {row[0]: row[1] for row in rows_of(table.arrow(LINEAGE[:2]))}


def source(*ids: int, v: str) -> pa.Table:
    numbers = pa.array(ids, pa.int32())
    struct = pa.struct([("a", pa.int32()), ("b", pa.float64())])
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([i % 2 for i in ids], pa.int32()),
            "v": [f"{v} {i}" for i in ids],
            "s": pa.array([{"a": n, "b": -1.0} for n in numbers.to_pylist()], struct),
        }
    )


@pytest.mark.timeout(240)
def test_both_libraries_change_one_table_by_turns(table, lake, java):
    name, ids = table.name, row_ids(table)
    changed = lake.sql(f"UPDATE {name} SET v = concat(v, '!'), s.b = 0 WHERE id % 10 = 3")
    assert changed.first()["num_updated_rows"] == 6
    found = agree(table, java)
    assert found[13][2:] == ("old 13!", (("a", 13), ("b", "0.0")))
    assert row_ids(table) == ids

    java(f"UPDATE java.{name} SET v = 'java' WHERE id IN (4, 13, 44)")
    result = (
        table.merge(source(*range(12, 20), 60, 61, v="merged"), on=["id"])
        .when_matched_delete(condition="s.id = 12")
        .when_matched_update({"v": "s.v"}, condition="t.v <> 'old 15'")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"p": "1"}, condition="t.id = 58")
        .execute()
    )
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (7, 1, 2)
    found = agree(table, java)
    assert (found[15][2], found[13][2], found[60][2]) == ("old 15", "merged 13", "merged 60")
    assert 12 not in found
    assert found[58][1] == 1
    kept = row_ids(table)
    assert {i: kept[i] for i in kept if i < 60} == {i: ids[i] for i in ids if i != 12}

    java(
        f"MERGE INTO java.{name} t USING (SELECT id, 'joint' AS v FROM range(10, 70, 5)) s "
        "ON t.id = s.id WHEN MATCHED AND s.id = 20 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, 0, s.v)"
    )
    found = {row[0]: row for row in rows_of(table.arrow())}
    assert (20 in found, found[15][2], found[65][1:]) == (False, "joint", (0, "joint", None))
    result = table.upsert(source(*range(15, 25), 65, 66, v="upserted"), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (10, 2)
    agree(table, java)
    java(f"DELETE FROM java.{name} WHERE id % 3 = 0 AND id > 20")
    again = table.upsert(source(15, 66, 70, v="upserted"), ["id"])
    assert (again.rows_unchanged, again.rows_updated, again.rows_inserted) == (1, 0, 2)
    found = agree(table, java)
    assert (found[70][2], found[66][2], 63 in found) == ("upserted 70", "upserted 66", False)
