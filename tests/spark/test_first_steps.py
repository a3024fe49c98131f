"""What a new user does first, through a real session: the README's example, types of sources."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pytest

import rowlake
from rowlake.errors import SchemaMismatchError

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"```(python)?\n(.*?)```", re.S)


def test_the_example_of_the_readme_prints_what_it_says(spark, tmp_path, monkeypatch, capsys):
    (_, code), (_, printed) = BLOCK.findall(README.read_text("utf-8"))[:2]
    monkeypatch.chdir(tmp_path)
    open_lake = rowlake.connect
    monkeypatch.setattr(rowlake, "connect", lambda: open_lake(spark=spark))
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() == printed.strip()


@pytest.fixture
def table(spark, tmp_path):
    with rowlake.connect(str(tmp_path / "lake"), spark=spark) as lake:
        lake.create_namespace("shop")
        yield lake.create_table(
            "shop.t", "id bigint, amount decimal(9, 2), at timestamp, local timestamp_ntz, day date"
        )


def test_texts_and_times_of_a_dataframe_are_cast_for_every_verb(spark, table):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        row = ("1", "12.3", "2026-01-31 10:30:00", "2026-01-31 10:30:00", "2026-01-31")
        texts = spark.createDataFrame(
            [row], "id string, amount string, at string, local string, day string"
        )
        table.append(texts)
        times = texts.selectExpr(
            "'2' id",
            "12.3D amount",
            "CAST(at AS timestamp_ntz) at",
            "CAST(local AS timestamp) local",
            "CAST(day AS timestamp) day",
        )
        table.upsert(times, keys=["id"])
        merge = table.merge(texts.selectExpr("'3' id", "amount", "at", "local", "day"), on=["id"])
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    found = sorted(table.arrow().to_pylist(), key=lambda each: each["id"])
    assert [each.pop("id") for each in found] == [1, 2, 3]
    assert found == 3 * [
        {
            "amount": Decimal("12.30"),
            "at": dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.timezone.utc),
            "local": dt.datetime(2026, 1, 31, 10, 30),
            "day": dt.date(2026, 1, 31),
        }
    ]


def test_a_text_of_a_dataframe_that_does_not_fit_is_named(spark, table):
    with pytest.raises(SchemaMismatchError, match="'x' to column id: STRING does not fit BIGINT"):
        table.append(spark.createDataFrame([("x",)], "id string"))
    assert table.snapshots() == []


def test_history_names_a_merge(table):
    table.append([{"id": 1}])
    table.merge([{"id": 1, "amount": 2}], on=["id"]).when_matched_update(
        {"amount": "s.amount"}
    ).execute()
    newest = table.history().to_pylist()[-1]
    assert (newest["statement"], newest["condition"]) == ("MERGE", "t.`id` = s.`id`")
    assert (newest["rows_updated"], newest["total_rows"]) == (1, 1)
