"""Row ids of Delta tables: Delta on Spark and rowlake see the same ones, whoever rewrites rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowlake
from tests.parts.delta_spark import run_by_spark

TRACKED = {"delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
NAMES = {"_row_id": "row_id", "_last_updated_sequence_number": "row_commit_version"}


def people(*ids: int) -> pa.Table:
    cities = [f"c{one % 2}" for one in ids]
    names = [f"n{one}" for one in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "city": cities})


def by_spark(folder) -> str:
    read = ", ".join(f"_metadata.{name}" for name in NAMES.values())
    return f"SELECT *, {read} FROM delta.`{folder}`"


def by_rowlake(lake, folder) -> list[dict]:
    table = lake.table(("delta", str(folder)))
    found = table.arrow(columns=["id", "name", "city", *NAMES])
    named = found.rename_columns([NAMES.get(one, one) for one in found.column_names])
    return named.sort_by("id").to_pylist()


@pytest.mark.parametrize("kind", ["plain", "vectors", "mapped", "backfilled"])
def test_both_rewrite_rows_and_see_the_same_ids(tmp_path, kind):
    folder = tmp_path / "t"
    properties = {
        "plain": TRACKED,
        "vectors": TRACKED | VECTORS,
        "mapped": TRACKED | VECTORS | {"delta.columnMapping.mode": "name"},
        "backfilled": VECTORS,
    }[kind]
    with rowlake.connect(tmp_path / "warehouse") as lake:
        table = lake.create_table(
            ("delta", str(folder)), people(1).schema, partition_by="city", properties=properties
        )
        table.append(people(*range(10)))
        table.append(people(*range(10, 20)))
        if kind == "backfilled":
            table.delete("id = 17")
            table.set_properties(TRACKED)
            table = lake.table(("delta", str(folder)))
        table.update({"name": "'u'"}, where="id in (1, 2, 13)")
        table.delete("id in (3, 14)")
        table.upsert(people(5, 15, 30), keys=["id"])
        ours = [by_rowlake(lake, folder)]
        (theirs,) = run_by_spark([by_spark(folder)])
        assert sorted(theirs, key=lambda row: row["id"]) == ours[0]
        name = f"delta.`{folder}`"
        run_by_spark(
            [
                f"UPDATE {name} SET name = 's' WHERE id IN (1, 4, 15)",
                f"MERGE INTO {name} t USING (SELECT id, 'm' AS name FROM VALUES 6, 16 v(id)) s "
                "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name",
                f"INSERT INTO {name} VALUES (40, 'i', 'c0')",
                f"OPTIMIZE {name}",
            ]
        )
        lake.table(("delta", str(folder))).update({"name": "'v'"}, where="id in (1, 40, 7)")
        lake.table(("delta", str(folder))).rewrite_data_files(options={"rewrite-all": "true"})
        ours = by_rowlake(lake, folder)
        (theirs,) = run_by_spark([by_spark(folder)])
        assert sorted(theirs, key=lambda row: row["id"]) == ours
        assert len({row["row_id"] for row in ours}) == len(ours)
