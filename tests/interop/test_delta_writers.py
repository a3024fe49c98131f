"""Delta logs that rowlake writes: DuckDB, delta-rs and Delta on Spark read the same rows.

Each table exists twice: with all its commits, and with the commits before its checkpoint deleted,
so that readers depend on the checkpoint.
"""

from __future__ import annotations

import datetime
import json
import shutil
from decimal import Decimal

import deltalake
import duckdb
import duckdb_extensions
import pyarrow as pa
import pytest

import rowlake
from tests.delta_logs import column, features
from tests.delta_writing import WrittenTable
from tests.parts.delta_spark import run_by_spark
from tests.plain_values import in_order

UTC = datetime.timezone.utc
VECTORS = features("deletionVectors")
V2 = features("deletionVectors", "v2Checkpoint")
LONG = "long text, longer than thirty-two code points é𝄞"
TYPES = {
    "l": ("long", [1, None, 3]),
    "i": ("integer", [-5, 0, 2**31 - 1]),
    "h": ("short", [1, 2, None]),
    "b": ("byte", [-128, 127, 0]),
    "f": ("float", [1.5, float("nan"), -0.5]),
    "d": ("double", [1e300, float("inf"), None]),
    "de": ("decimal(12,4)", [Decimal("1.5000"), Decimal("-99999999.9999"), None]),
    "s": ("string", ['quo"te\\ \n', LONG * 2, ""]),
    "bo": ("boolean", [True, None, False]),
    "bi": ("binary", [b"\x00\xff", b"", None]),
    "da": ("date", [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
    "ts": ("timestamp", [datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, UTC), None, None]),
    "li": (
        {"type": "array", "elementType": "integer", "containsNull": True},
        [[1, None], [], None],
    ),
    "st": (
        {"type": "struct", "fields": [column("x", "long"), column("y", "string")]},
        [{"x": 1, "y": "a"}, {"x": None, "y": None}, None],
    ),
}


def rows_of(table, kinds):
    columns = table.columns.schema
    arrays = {
        name: pa.array(values, columns.find((name,)).type) for name, (_, values) in kinds.items()
    }
    return pa.table(arrays)


def types(folder):
    table = WrittenTable(folder).create(
        [column(name, kind) for name, (kind, _) in TYPES.items()], checkpointInterval="2"
    )
    rows = rows_of(table, TYPES)
    for start in (0, 1, 0, 2):
        table.rows(rows.slice(start, 2))
    return table


def partitioned(folder):
    fields = [("id", "long"), ("p", "string"), ("day", "date"), ("at", "timestamp")]
    table = WrittenTable(folder).create(fields, ("p", "day", "at"), checkpointInterval="3")
    at = datetime.datetime(2024, 5, 1, 12, 0, 0, 123456, UTC)
    values = ["a b", "c/d", "é%20", "x=y", None, 'quo"te']
    for number, value in enumerate(values):
        day = None if value is None else datetime.date(2024, 1, 1 + number)
        file = f"p={number} %25é/f {number}.parquet"
        ids = pa.table({"id": [number * 2, number * 2 + 1]})
        table.append(table.write(ids, file=file, p=value, day=day, at=None if number % 2 else at))
    table.remove(str(folder / "p=1 %25é/f 1.parquet"))
    return table


def with_vectors(folder, protocol=VECTORS, **configuration):
    table = WrittenTable(folder).create(
        protocol=protocol, enableDeletionVectors="true", checkpointInterval="3", **configuration
    )
    files = [
        table.write(pa.table({"id": range(n * 9, n * 9 + 9), "name": ["x"] * 9})) for n in (0, 1)
    ]
    table.append(*files)
    first, second = (one["location"][0].as_py() for one in files)
    table.delete({first: [0, 4], second: [8]})
    table.delete({first: [0, 4, 5]})
    table.rows(pa.table({"id": [100], "name": ["é"]}))
    return table


def with_sidecars(folder):
    return with_vectors(folder, V2, checkpointPolicy="v2")


def tracked(folder):
    listed = ["deletionVectors", "domainMetadata", "rowTracking", "appendOnly", "invariants"]
    protocol = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": listed,
        }
    }
    names = {
        "rowTracking.materializedRowIdColumnName": "_row-id-col-1",
        "rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
    }
    return with_vectors(folder, protocol, enableRowTracking="true", **names)


MAKERS = {
    "types": types,
    "partitioned": partitioned,
    "vectors": with_vectors,
    "sidecars": with_sidecars,
    "tracked": tracked,
}
# Conditions that statistics are asked about, with how many rows of `types` they select.
CONDITIONS = {
    "f > 100": 3,  # NaN is greater than every number
    "d > 1e308": 3,
    "ts >= TIMESTAMP '2024-05-01 12:00:00.123456 UTC'": 2,
    "ts < TIMESTAMP '2024-05-01 12:00:00.123456 UTC'": 0,
    "de = -99999999.9999": 3,
    f"s = '{LONG * 2}'": 3,
    "s = ''": 2,
    "da = DATE '9999-12-31'": 3,
    "i = 2147483647": 2,
    "l IS NULL": 3,
    "st.x = 1": 2,
    "st.x > 1": 0,
    "bo IS NULL": 3,
}
ALL = [(name, is_cut) for name in MAKERS for is_cut in (False, True)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Each table whole, and cut at its checkpoint; the same data files are in both."""
    base, found = tmp_path_factory.mktemp("written"), {}
    for name, make in MAKERS.items():
        found[name, False] = make(base / name)
        shutil.copytree(base / name, base / f"{name}_cut")
        found[name, True] = WrittenTable(base / f"{name}_cut")
        found[name, True].forget_commits()
    return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake"))) as found:
        yield found


@pytest.fixture(scope="module")
def by_spark(tables):
    """What Delta on Spark says: rows of every table, then commits of its own on some."""
    reads = {key: f"SELECT * FROM {table.name}" for key, table in tables.items()}
    history = {("history", name): f"DESCRIBE HISTORY {tables[name, False].name}" for name in MAKERS}
    # Parquet's own statistics know no NaN: only those of the log are in question here.
    settings = {"set": "SET spark.sql.parquet.filterPushdown = false"}
    conditions = {
        (condition, is_cut): f"SELECT l FROM {tables['types', is_cut].name} WHERE {condition}"
        for condition in CONDITIONS
        for is_cut in (False, True)
    }
    vectors, sidecars = tables["vectors", True].name, tables["sidecars", True].name
    tracked = tables["tracked", True].name
    more = {
        "row ids": f"SELECT id, _metadata.row_id AS row_id FROM {tracked}",
        "insert": f"INSERT INTO {vectors} VALUES (200, 'spark')",
        "delete": f"DELETE FROM {sidecars} WHERE id IN (1, 10)",
        "update": f"UPDATE {tracked} SET name = 'u' WHERE id = 2",
        "after insert": f"SELECT * FROM {vectors}",
        "after delete": f"SELECT * FROM {sidecars}",
        "after update": f"SELECT * FROM {tracked}",
    }
    statements = {**reads, **history, **settings, **conditions, **more}
    return dict(zip(statements, run_by_spark(list(statements.values())), strict=True))


def same(rows):
    return json.loads(
        json.dumps(in_order(rows)).replace("NaN", '"NaN"').replace("Infinity", '"inf"')
    )


def ours(lake, table):
    return same(lake.table(table.name).arrow().to_pylist())


@pytest.fixture(scope="module")
def before(lake, tables):
    """What rowlake reads before others write to the tables."""
    return {key: ours(lake, table) for key, table in tables.items()}


@pytest.mark.parametrize("key", ALL, ids=str)
def test_duckdb_reads_the_rows(before, tables, key):
    duckdb_extensions.import_extension("delta")
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        duck.execute("LOAD delta")
        found = duck.execute(f"SELECT * FROM delta_scan('{tables[key].folder}')").to_arrow_table()
    assert same(found.to_pylist()) == before[key]


@pytest.mark.parametrize("key", ALL, ids=str)
def test_delta_rs_reads_the_rows(before, tables, key):
    table = deltalake.DeltaTable(str(tables[key].folder))
    query = deltalake.QueryBuilder().register("t", table)
    found = pa.table(query.execute("SELECT * FROM t").read_all())
    assert same(found.to_pylist()) == before[key]


@pytest.mark.parametrize("key", ALL, ids=str)
def test_delta_on_spark_reads_the_rows(before, by_spark, key):
    assert same(by_spark[key]) == before[key]


def test_a_table_cut_at_its_checkpoint_has_the_same_rows(before):
    for name in MAKERS:
        assert before[name, True] == before[name, False]
        assert before[name, True]


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_statistics_lose_delta_on_spark_no_row(by_spark, condition, is_cut):
    assert len(by_spark[condition, is_cut]) == CONDITIONS[condition]


def test_histories_read_alike_in_delta_on_spark(by_spark):
    newest = max(by_spark["history", "vectors"], key=lambda one: one["version"])
    assert newest["operation"] == "WRITE"
    assert newest["operationParameters"] == {"mode": "Append", "partitionBy": "[]"}
    assert newest["isBlindAppend"] is True
    assert newest["readVersion"] == newest["version"] - 1
    assert newest["isolationLevel"] == "Serializable"
    assert newest["engineInfo"].startswith("rowlake/")


def test_delta_on_spark_finds_the_row_ids(by_spark):
    ids = {one["id"]: one["row_id"] for one in by_spark["row ids"]}
    assert ids[1] == 1
    assert ids[100] == 18
    assert len(set(ids.values())) == len(ids)


@pytest.mark.parametrize(
    ("key", "then"),
    [("vectors", "after insert"), ("sidecars", "after delete"), ("tracked", "after update")],
)
def test_delta_on_spark_commits_on_top(lake, by_spark, tables, key, then):
    table = tables[key, True]
    assert ours(lake, table) == same(by_spark[then])
    table.rows(pa.table({"id": [300], "name": ["ours"]}))
    assert {"id": 300, "name": "ours"} in ours(lake, table)
