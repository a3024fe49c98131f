"""Delta tables that make values of columns: defaults and generated columns, in statements."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import InvalidStatementError, SchemaMismatchError, UnsupportedFeatureError

ALLOWED = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark) as found:
        yield found


@pytest.fixture
def name(tmp_path):
    return f"delta.`{tmp_path / 't'}`"


def rows(lake, text):
    return sorted((tuple(row) for row in lake.sql(text).collect()), key=str)


def fields(tmp_path, version):
    text = (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").read_text()
    found = [json.loads(line) for line in text.splitlines()]
    (metadata,) = [one["metaData"] for one in found if "metaData" in one]
    return json.loads(metadata["schemaString"])["fields"]


def today(spark):
    return spark.sql("SELECT current_date()").collect()[0][0]


# --- defaults


@pytest.fixture
def defaults(lake, name):
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, n INT DEFAULT 2 + 3, s STRING DEFAULT 'x', "
        f"d DATE DEFAULT current_date()) USING delta {ALLOWED}"
    )
    return name


def test_statements_fill_in_defaults(lake, spark, defaults):
    day = today(spark)
    lake.sql(f"INSERT INTO {defaults} (id) VALUES (1)")
    lake.sql(
        f"INSERT INTO {defaults} VALUES (2, DEFAULT, NULL, DATE '2024-01-01'), (3, 7, 'y', NULL)"
    )
    lake.sql(f"INSERT INTO {defaults} BY NAME SELECT 4 AS id, 'z' AS s")
    lake.table(defaults).append(pa.table({"id": [5]}))
    lake.table(defaults).append(spark.createDataFrame([(6, 9)], "id BIGINT, n INT"))
    assert rows(lake, f"SELECT * FROM {defaults}") == [
        (1, 5, "x", day),
        (2, 5, None, datetime.date(2024, 1, 1)),
        (3, 7, "y", None),
        (4, 5, "z", day),
        (5, 5, "x", day),
        (6, 9, "x", day),
    ]


def test_default_is_a_value_of_update_and_merge(lake, spark, defaults):
    lake.sql(f"INSERT INTO {defaults} VALUES (1, 1, 'a', NULL), (2, 2, 'b', NULL)")
    lake.sql(f"UPDATE {defaults} SET n = DEFAULT, d = DEFAULT WHERE id = 1")
    lake.sql(
        f"MERGE INTO {defaults} t USING (SELECT 2 AS id UNION ALL SELECT 3) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET s = DEFAULT WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    lake.table(defaults).upsert([{"id": 4}], keys=["id"])
    day = today(spark)
    assert rows(lake, f"SELECT * FROM {defaults}") == [
        (1, 5, "a", day),
        (2, 2, "x", None),
        (3, 5, "x", day),
        (4, 5, "x", day),
    ]


def test_defaults_are_set_and_dropped(lake, defaults, tmp_path):
    lake.sql(f"ALTER TABLE {defaults} ALTER COLUMN s SET DEFAULT upper('q')")
    assert fields(tmp_path, 1)[2]["metadata"] == {"CURRENT_DEFAULT": "upper('q')"}
    lake.sql(f"ALTER TABLE {defaults} ALTER COLUMN n DROP DEFAULT")
    assert fields(tmp_path, 2)[1]["metadata"] == {}
    lake.sql(f"INSERT INTO {defaults} (id, d) VALUES (1, NULL)")
    assert rows(lake, f"SELECT * FROM {defaults}") == [(1, None, "Q", None)]
    (text,) = lake.sql(f"SHOW CREATE TABLE {defaults}").collect()[0]
    assert "`s` STRING DEFAULT upper('q')" in text


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN c INT DEFAULT 4",
        "ADD COLUMN c INT GENERATED ALWAYS AS (n)",
        "ALTER COLUMN n SET DEFAULT 'text'",
        "ALTER COLUMN x SET DEFAULT 1",
    ],
)
def test_defaults_that_cannot_be_are_refused(lake, defaults, change, tmp_path):
    with pytest.raises((InvalidStatementError, UnsupportedFeatureError)):
        lake.sql(f"ALTER TABLE {defaults} {change}")
    assert not (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").exists()


def test_defaults_need_the_feature(lake, name, tmp_path):
    with pytest.raises(InvalidStatementError, match="allowColumnDefaults"):
        lake.sql(f"CREATE TABLE {name} (id BIGINT, n INT DEFAULT 5) USING delta")
    assert not (tmp_path / "t").exists()


# --- generated columns


@pytest.fixture
def events(lake, name):
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, at TIMESTAMP, n INT, "
        "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
        "twice INT NOT NULL GENERATED ALWAYS AS (coalesce(n, 0) * 2)) "
        "USING delta PARTITIONED BY (day)"
    )
    return name


def moment(day, hour=0):
    return datetime.datetime(2024, 5, day, hour, tzinfo=UTC)


def held(lake, name):
    found = lake.sql(f"SELECT id, n, string(day), twice FROM {name}").collect()
    return {row[0]: tuple(row)[1:] for row in found}


def test_generated_columns_are_computed_where_rows_lack_them(lake, spark, events, tmp_path):
    assert fields(tmp_path, 0)[3]["metadata"] == {"delta.generationExpression": "CAST(at AS DATE)"}
    lake.sql(f"INSERT INTO {events} (id, at, n) VALUES (1, TIMESTAMP '2024-05-01 10:00:00', 4)")
    table = lake.table(events)
    table.append(pa.table({"id": [2], "at": [moment(2)], "n": pa.array([None], pa.int32())}))
    table.append(spark.sql("SELECT 3L AS id, 5 AS n, 10 AS twice"))
    Path(tmp_path / "rows.csv").write_text("id,n\n4,6\n")
    table.append(str(tmp_path / "rows.csv"))
    assert held(lake, events) == {
        1: (4, "2024-05-01", 8),
        2: (None, "2024-05-02", 0),
        3: (5, None, 10),
        4: (6, None, 12),
    }


def test_a_given_value_must_be_what_the_expression_gives(lake, events, tmp_path):
    with pytest.raises(SchemaMismatchError, match=r"column twice .*coalesce.*\"twice\":9"):
        lake.sql(f"INSERT INTO {events} (id, n, twice) VALUES (1, 4, 8), (2, 4, 9)")
    with pytest.raises(SchemaMismatchError, match="column day"):
        lake.table(events).append([{"id": 1, "n": 1, "day": datetime.date(2024, 1, 1)}])
    assert not list((tmp_path / "t").rglob("*.parquet"))
    lake.sql(f"INSERT INTO {events} (id, n, twice) VALUES (1, 4, 8)")
    assert held(lake, events) == {1: (4, None, 8)}


def test_updates_compute_generated_columns_again(lake, events):
    lake.sql(
        f"INSERT INTO {events} (id, at, n) VALUES "
        "(1, TIMESTAMP '2024-05-01 10:00:00', 4), (2, NULL, 1)"
    )
    lake.sql(f"UPDATE {events} SET n = n + 1 WHERE id = 1")
    lake.sql(f"UPDATE {events} SET at = TIMESTAMP '2024-05-03 00:00:00' WHERE id = 2")
    assert held(lake, events) == {1: (5, "2024-05-01", 10), 2: (1, "2024-05-03", 2)}
    lake.sql(f"UPDATE {events} SET n = 3, twice = 6 WHERE id = 1")
    with pytest.raises(SchemaMismatchError, match="column twice"):
        lake.sql(f"UPDATE {events} SET twice = 7 WHERE id = 1")
    lake.sql(f"UPDATE {events} SET id = 9 WHERE id = 2")
    assert held(lake, events) == {1: (3, "2024-05-01", 6), 9: (1, "2024-05-03", 2)}


def test_merges_compute_generated_columns(lake, events):
    lake.sql(f"INSERT INTO {events} (id, n) VALUES (1, 4), (2, 5), (3, 6)")
    source = "(SELECT * FROM VALUES (1, 7), (4, 8), (5, NULL) AS s(id, n))"
    lake.sql(
        f"MERGE INTO {events} t USING {source} s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED AND s.n IS NULL THEN "
        "INSERT (id, at) VALUES (s.id, TIMESTAMP '2024-05-05') "
        "WHEN NOT MATCHED THEN INSERT (id, n, twice) VALUES (s.id, s.n, s.n * 2) "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE"
    )
    assert held(lake, events) == {
        1: (7, None, 14),
        3: (6, None, 12),
        4: (8, None, 16),
        5: (None, "2024-05-05", 0),
    }
    with pytest.raises(SchemaMismatchError, match="column twice"):
        lake.sql(
            f"MERGE INTO {events} t USING {source} s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET n = s.n, twice = 1"
        )


def test_upserts_compute_generated_columns(lake, events):
    table = lake.table(events)
    table.upsert([{"id": 1, "n": 4}, {"id": 2, "n": 5}], keys=["id"])
    table.upsert(pa.table({"id": [2, 3], "at": [moment(2), moment(3)]}), keys=["id"])
    assert held(lake, events) == {
        1: (4, None, 8),
        2: (5, "2024-05-02", 10),
        3: (None, "2024-05-03", 0),
    }


def test_streams_into_tables_that_compute_columns_are_refused(lake, events):
    with pytest.raises(UnsupportedFeatureError, match="day, twice"):
        lake.table(events).apply_changes(pa.table({"id": [1], "n": [1]}), keys=["id"])


@pytest.mark.parametrize(
    "column",
    [
        "g INT GENERATED ALWAYS AS (nothing + 1)",
        "g INT GENERATED ALWAYS AS (id)",
        "g DOUBLE GENERATED ALWAYS AS (rand())",
        "g DATE GENERATED ALWAYS AS (current_date())",
        "f INT GENERATED ALWAYS AS (n), g INT GENERATED ALWAYS AS (f)",
    ],
)
def test_expressions_that_no_column_can_have_are_refused(lake, name, column, tmp_path):
    with pytest.raises(InvalidStatementError):
        lake.sql(f"CREATE TABLE {name} (id BIGINT, n INT, {column}) USING delta")
    assert not (tmp_path / "t").exists()


def test_what_an_expression_reads_is_not_dropped(lake, name):
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, n INT, g INT GENERATED ALWAYS AS (n + 1)) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    for change in ("DROP COLUMN n", "RENAME COLUMN n TO m"):
        with pytest.raises(InvalidStatementError, match="generated column g"):
            lake.sql(f"ALTER TABLE {name} {change}")
    lake.sql(f"INSERT INTO {name} (n) VALUES (1)")
    assert rows(lake, f"SELECT * FROM {name}") == [(None, 1, 2)]


# --- identity columns


@pytest.fixture
def numbered(lake, name):
    lake.sql(
        f"CREATE TABLE {name} (i BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY "
        "10), j BIGINT GENERATED BY DEFAULT AS IDENTITY, id BIGINT) USING delta"
    )
    return name


def identities(lake, name):
    return {row.id: (row.i, row.j) for row in lake.sql(f"SELECT * FROM {name}").collect()}


def marks(lake, name):
    fields = lake.table(name).handle.state.metadata.schema["fields"]
    return [one["metadata"].get("delta.identity.highWaterMark") for one in fields[:2]]


def test_every_row_gets_another_identity(lake, spark, numbered):
    lake.sql(f"INSERT INTO {numbered} (id) VALUES (1), (2)")
    assert identities(lake, numbered) == {1: (100, 1), 2: (110, 2)}
    assert marks(lake, numbered) == [110, 2]
    table = lake.table(numbered)
    table.append(spark.range(3, 30))
    lake.sql(
        f"MERGE INTO {numbered} t USING (SELECT id FROM range(20, 40)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 20 THEN DELETE "
        "WHEN NOT MATCHED AND s.id < 35 THEN INSERT (id) VALUES (s.id) "
        "WHEN NOT MATCHED THEN INSERT (id, j) VALUES (s.id, -s.id)"
    )
    table.upsert([{"id": 1}, {"id": 40}], keys=["id"])
    found = identities(lake, numbered)
    assert sorted(found) == [*range(1, 20), *range(21, 41)]
    assert len({i for i, _ in found.values()}) == len({j for _, j in found.values()}) == 39
    assert all(i >= 100 and i % 10 == 0 for i, _ in found.values())
    assert (found[1], found[36][1]) == ((100, 1), -36)
    assert marks(lake, numbered) == [max(one) for one in zip(*found.values(), strict=True)]


def test_identities_are_given_by_the_table(lake, numbered):
    with pytest.raises(SchemaMismatchError, match="column i"):
        lake.sql(f"INSERT INTO {numbered} (i, id) VALUES (5, 1)")
    with pytest.raises(SchemaMismatchError, match="column i"):
        lake.sql(
            f"MERGE INTO {numbered} t USING (SELECT 1 AS i, 1 AS j, 1 AS id) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *"
        )
    lake.sql(f"INSERT INTO {numbered} (j, id) VALUES (7, 1)")
    assert marks(lake, numbered) == [100, None]
    with pytest.raises(InvalidStatementError, match=r"j .*identity"):
        lake.sql(f"UPDATE {numbered} SET j = 8 WHERE id = 1")
    lake.sql(f"ALTER TABLE {numbered} ALTER COLUMN j SYNC IDENTITY")
    assert marks(lake, numbered) == [100, 7]
    lake.sql(f"UPDATE {numbered} SET id = 2 WHERE id = 1")
    lake.sql(f"INSERT INTO {numbered} (id) VALUES (3)")
    assert identities(lake, numbered) == {2: (100, 7), 3: (110, 8)}
    with pytest.raises(InvalidStatementError, match="no identity column"):
        lake.sql(f"ALTER TABLE {numbered} ALTER COLUMN id SYNC IDENTITY")


# --- constraints


def test_constraints_are_added_checked_and_dropped(lake, name, tmp_path):
    lake.sql(f"CREATE TABLE {name} (id BIGINT, n INT) USING delta")
    lake.sql(f"INSERT INTO {name} VALUES (1, 5), (2, -5)")
    with pytest.raises(SchemaMismatchError, match="'id': 2"):
        lake.sql(f"ALTER TABLE {name} ADD CONSTRAINT Positive CHECK (n > 0)")
    lake.sql(f"DELETE FROM {name} WHERE id = 2")
    lake.sql(f"ALTER TABLE {name} ADD CONSTRAINT Positive CHECK (n > 0)")
    state = lake.table(name).handle.state
    assert state.metadata.configuration == {"delta.constraints.positive": "n > 0"}
    assert (state.protocol.reader_version, state.protocol.writer_version) == (1, 3)
    assert state.protocol.writer_features == ()
    with pytest.raises(SchemaMismatchError, match="n > 0"):
        lake.sql(f"INSERT INTO {name} VALUES (3, NULL)")
    with pytest.raises(InvalidStatementError, match="already"):
        lake.sql(f"ALTER TABLE {name} ADD CONSTRAINT POSITIVE CHECK (id > 0)")
    lake.sql(f"ALTER TABLE {name} DROP CONSTRAINT positive")
    lake.sql(f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS positive")
    with pytest.raises(InvalidStatementError, match="no constraint"):
        lake.sql(f"ALTER TABLE {name} DROP CONSTRAINT positive")
    lake.sql(f"INSERT INTO {name} VALUES (3, NULL)")
    assert rows(lake, f"SELECT id FROM {name}") == [(1,), (3,)]
    history = lake.sql(f"DESCRIBE HISTORY {name} LIMIT 3").collect()
    assert [one.operation for one in history[1:]] == ["DROP CONSTRAINT", "ADD CONSTRAINT"]
    assert history[2].operationParameters == {"name": "Positive", "expr": "n > 0"}


def test_iceberg_tables_have_no_constraints(lake):
    lake.sql("CREATE TABLE plain_rows (id BIGINT) USING iceberg")
    for change in ("ADD CONSTRAINT c CHECK (id > 0)", "DROP CONSTRAINT c"):
        with pytest.raises(UnsupportedFeatureError, match="constraints"):
            lake.sql(f"ALTER TABLE plain_rows {change}")
