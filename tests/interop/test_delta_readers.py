"""Delta tables: rowlake, DuckDB, delta-rs and Delta on Spark read the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import duckdb
import duckdb_extensions
import pyarrow as pa
import pytest

import rowlake
from tests.parts.delta_spark import read_by_spark
from tests.plain_values import in_order

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "delta"
# DuckDB 1.5.5 has neither void nor the old layout of lists, variants come in its own type, and
# partition values of mapped columns are null.
NOT_DUCKDB = {"legacy_lists", "types", "variants", "vectors"}
# delta-rs 1.6 refuses type widening, and INT96 times beyond the nanoseconds of 64 bits overflow.
NOT_DELTA_RS = {"types", "widened"}
TABLES = sorted(one.parent.name for one in GOLDEN.glob("*/expected.json"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake"))) as found:
        yield found


@pytest.fixture
def duck():
    duckdb_extensions.import_extension("delta")
    with duckdb.connect() as found:
        found.execute("SET TimeZone = 'UTC'")
        found.execute("LOAD delta")
        yield found


def ours(lake, folder):
    return in_order(lake.table(f"delta.`{folder}`").arrow().to_pylist())


@pytest.mark.parametrize("name", [one for one in TABLES if one not in NOT_DUCKDB])
def test_duckdb_reads_the_same_rows(lake, duck, name):
    found = duck.execute(f"SELECT * FROM delta_scan('{GOLDEN / name}')").to_arrow_table()
    assert in_order(found.to_pylist()) == ours(lake, GOLDEN / name)


@pytest.mark.parametrize("name", [one for one in TABLES if one not in NOT_DELTA_RS])
def test_delta_rs_reads_the_same_rows(lake, name):
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(GOLDEN / name)))
    found = pa.table(query.execute("SELECT * FROM t").read_all())
    assert in_order(found.to_pylist()) == ours(lake, GOLDEN / name)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table that delta-rs wrote, with a checkpoint, a delete and odd names."""
    folder = tmp_path_factory.mktemp("rs") / "t"
    for number in range(3):
        rows = pa.table(
            {
                "id": pa.array(range(number * 5, number * 5 + 5)),
                "p": ["a b", "c/d", "é%", "", "x=y"],
            }
        )
        deltalake.write_deltalake(str(folder), rows, mode="append", partition_by=["p"])
    table = deltalake.DeltaTable(str(folder))
    table.create_checkpoint()
    table.delete("id = 7")
    return folder


def test_delta_on_spark_reads_the_same_rows(lake, written):
    folders = [written, GOLDEN / "vectors", GOLDEN / "sidecars_json", GOLDEN / "mapped_by_id"]
    theirs = read_by_spark(folders)
    for folder, rows in zip(folders, theirs, strict=True):
        assert ours(lake, folder) == rows
    assert json.loads(json.dumps(ours(lake, written))) == theirs[0]
