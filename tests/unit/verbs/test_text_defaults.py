"""Defaults in a schema that is text: the table has them, or says why not."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import InvalidStatementError, RowlakeError, UnsupportedFeatureError

V3 = {"format-version": "3"}
COLUMNS = (
    "id BIGINT, n INT DEFAULT 5, s STRING DEFAULT 'x', d DATE DEFAULT DATE '2024-01-02', "
    "o INT DEFAULT NULL"
)
ALLOWED = {"delta.feature.allowColumnDefaults": "supported"}


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as found:
        found.create_namespace("ns")
        yield found


@pytest.mark.parametrize(
    "options", [{"properties": V3}, {"format": "delta", "properties": ALLOWED}], ids=str
)
def test_rows_get_the_defaults_of_columns_that_they_lack(lake, options):
    table = lake.create_table("ns.t", COLUMNS, **options)
    table.append(pa.table({"id": [1]}))
    day = dt.date(2024, 1, 2)
    assert table.arrow().to_pylist() == [{"id": 1, "n": 5, "s": "x", "d": day, "o": None}]


def test_a_version_without_defaults_refuses_them(lake):
    with pytest.raises(RowlakeError, match="format-version"):
        lake.create_table("ns.t", "n INT DEFAULT 5", properties={"format-version": "2"})
    assert not lake.exists("ns.t")
    assert lake.create_table("ns.t", "n INT DEFAULT NULL", properties={"format-version": "2"})


def test_a_default_that_spark_must_evaluate_is_refused(lake):
    with pytest.raises(UnsupportedFeatureError, match="its default 1 \\+ 1 is no plain literal"):
        lake.create_table("ns.t", "n INT DEFAULT 1 + 1", properties=V3)
    assert not lake.exists("ns.t")


def test_a_default_of_another_type_is_refused(lake):
    with pytest.raises(InvalidStatementError, match="is not a value of type int"):
        lake.create_table("ns.t", "n INT DEFAULT 'x'", properties=V3)
