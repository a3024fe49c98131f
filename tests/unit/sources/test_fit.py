"""One rule of types: every kind of source, append, upsert, overwrite and merge alike; no Spark."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.errors import SchemaMismatchError
from tests.lakes import make_lake

COLUMNS = (
    "id bigint, code string, amount decimal(9, 2), day date, at timestamp, local timestamp_ntz, "
    "share double, big boolean"
)
DAY = dt.date(2026, 1, 31)
LOCAL = dt.datetime(2026, 1, 31, 10, 30)
BERLIN = "Europe/Berlin"
INSTANT = dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.timezone.utc)
EXPECTED = {
    "id": 1,
    "code": "007",
    "amount": Decimal("12.30"),
    "day": DAY,
    "at": INSTANT,
    "local": LOCAL,
    "share": 0.1,
    "big": True,
}
TEXTS = {
    "id": "1",
    "code": "007",
    "amount": "12.3",
    "day": "2026-01-31",
    "at": "2026-01-31 10:30:00",
    "local": "2026-01-31T10:30:00",
    "share": "0.1",
    "big": "true",
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", BERLIN)
    with make_lake(tmp_path / "lake") as lake:
        lake.create_namespace("shop")
        yield lake.create_table("shop.sales", COLUMNS)


def csv_file(folder):
    path = folder / "new.csv"
    path.write_text(f"{','.join(TEXTS)}\n{','.join(TEXTS.values())}\n")
    return str(path)


def json_file(folder):
    path = folder / "new.json"
    typed = TEXTS | {"id": 1, "amount": 12.3, "share": 0.1, "big": True}
    path.write_text(json.dumps(typed) + "\n")
    return path


def frame_of_pandas(_):
    times = np.array(["2026-01-31T10:30:00"], "datetime64[ns]")
    days = np.array(["2026-01-31"], "datetime64[ns]")
    return pd.DataFrame(
        {
            "id": [1],
            "code": ["007"],
            "amount": [12.3],
            "day": days,
            "at": times,
            "local": times,
            "share": [0.1],
            "big": [True],
        }
    )


def parquet_of_nanoseconds(folder):
    path = folder / "new.parquet"
    pq.write_table(pa.Table.from_pandas(frame_of_pandas(folder)), path)
    assert pq.read_schema(path).field("at").type.unit == "ns"
    return str(path)


SOURCES = {
    "csv": csv_file,
    "json": json_file,
    "parquet": parquet_of_nanoseconds,
    "pandas": frame_of_pandas,
    "polars": lambda folder: pl.from_pandas(frame_of_pandas(folder)),
    "arrow texts": lambda _: pa.table({name: [text] for name, text in TEXTS.items()}),
    "dicts": lambda _: [EXPECTED | {"at": LOCAL, "amount": 12.3}],
    "dicts of texts": lambda _: [TEXTS],
}
VERBS = {
    "append": lambda table, rows: table.append(rows),
    "overwrite": lambda table, rows: table.overwrite(rows),
    "upsert": lambda table, rows: table.upsert(rows, keys=["id"]),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_is_cast_to_the_tables_types(table, tmp_path, kind, verb):
    VERBS[verb](table, SOURCES[kind](tmp_path))
    assert table.arrow().to_pylist() == [EXPECTED]


def test_an_instant_keeps_its_own_offset(table):
    table.append([{"id": 1, "at": "2026-01-31 10:30:00Z"}, {"id": 2, "at": "2026-01-31 10:30:00"}])
    found = sorted(table.arrow().to_pylist(), key=lambda row: row["id"])
    assert [row["at"].hour for row in found] == [10, 9]


def test_an_instant_becomes_local_time_in_the_sessions_zone(table):
    table.append(pa.table({"id": [1], "local": pa.array([INSTANT])}))
    assert table.arrow()["local"].to_pylist() == [LOCAL]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("amount", 12.345, "DOUBLE does not fit DECIMAL(9, 2)"),
        ("amount", "12.345", "STRING does not fit DECIMAL(9, 2)"),
        ("id", "one", "STRING does not fit BIGINT"),
        ("id", 1.5, "DOUBLE does not fit BIGINT"),
        ("day", LOCAL, "TIMESTAMP_NTZ does not fit DATE"),
        ("day", "yesterday", "STRING does not fit DATE"),
        ("big", "maybe", "STRING does not fit BOOLEAN"),
        ("share", 2**53 + 1, "BIGINT does not fit DOUBLE"),
    ],
)
def test_what_does_not_fit_is_named_with_its_row_both_types_and_a_fix(table, column, value, words):
    rows = pa.table({column: pa.array([None] * 6 + [value])})
    with pytest.raises(SchemaMismatchError) as raised:
        table.append(rows)
    message = str(raised.value)
    assert words in message
    assert repr(value) in message
    assert "(row 7)" in message
    assert (raised.value.column, raised.value.row) == (column, 7)
    assert table.snapshots() == []


def test_types_that_never_fit_are_refused_in_words_of_sql(table):
    with pytest.raises(SchemaMismatchError, match="Cannot write BIGINT values to column code of"):
        table.append([{"code": 7}])


def test_empty_fields_of_a_csv_are_null_and_quoted_ones_are_not(table, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text('id,code,amount\n1,"",\n2,,3\n')
    table.append(path)
    found = sorted(table.arrow(["id", "code", "amount"]).to_pylist(), key=lambda row: row["id"])
    assert [row["code"] for row in found] == ["", None]
    assert [row["amount"] for row in found] == [None, Decimal("3.00")]


def test_whole_numbers_that_pandas_wrote_with_a_point_are_read(table, tmp_path):
    path = tmp_path / "floats.csv"
    path.write_text("id\n12.0\n")
    table.append(path)
    assert table.arrow()["id"].to_pylist() == [12]


def test_a_merge_takes_the_texts_of_a_csv(table, tmp_path):
    table.append([EXPECTED | {"amount": Decimal("1.00")}])
    merge = table.merge(csv_file(tmp_path), on=["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.arrow().to_pylist() == [EXPECTED]
