"""Conditions of overwrites and maintenance are read as DELETE reads them; no Spark is needed."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import Leaf, Op
from rowlake.model.schema import Schema
from rowlake.query.row_condition import RowCondition, pushed_rows
from tests.unit.sql.lake_without_spark import Engine, lake_without_spark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rowlake import Lake

ZONE, CASE = "spark.sql.session.timeZone", "spark.sql.caseSensitive"
UTC = dt.timezone.utc
ROWS = pa.table(
    {
        "order id": pa.array([1, 2], pa.int64()),
        "day": ["a", "b"],
        "at": pa.array(
            [dt.datetime(2024, 1, 1, 3, tzinfo=UTC), dt.datetime(2024, 1, 2, 3, tzinfo=UTC)],
            pa.timestamp("us", tz="UTC"),
        ),
    }
)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lake_without_spark(tmp_path) as found:
        found.create_namespace("db")
        table = found.create_table("db.t", ROWS.schema)
        table.append(ROWS.slice(0, 1))
        table.append(ROWS.slice(1, 1))
        yield found


def replaced(lake: Lake, where: str) -> list[int]:
    """Return the rows that an overwrite of no rows leaves."""
    table = lake.table("db.t")
    table.overwrite(ROWS.slice(0, 0), where=where)
    return sorted(table.arrow()["order id"].to_pylist())


@pytest.mark.parametrize(
    "where",
    ["`order id` = 1", "t.`ORDER ID` = 1", "db.t.day = 'a'", "`db`.`t`.`day` IN ('a')", "DAY='a'"],
)
def test_overwrite_takes_quoted_and_qualified_names(lake: Lake, where: str) -> None:
    assert replaced(lake, where) == [2]


@pytest.mark.parametrize(("zone", "left"), [("UTC", [2]), ("Asia/Tokyo", [1, 2])])
def test_overwrite_means_times_in_the_zone_of_the_session(
    lake: Lake, zone: str, left: list[int]
) -> None:
    lake.spark.settings[ZONE] = zone
    assert replaced(lake, "at <= '2024-01-01 03:00:00'") == left


def test_overwrite_compares_names_as_a_case_sensitive_session_does(lake: Lake) -> None:
    lake.spark.settings[CASE] = "true"
    with pytest.raises(InvalidStatementError, match=r"no column DAY. Did you mean day\?"):
        replaced(lake, "DAY = 'a'")
    assert replaced(lake, "day = 'a'") == [2]


@pytest.mark.parametrize("where", ["dya = 'a'", "t.dya = 'a'", "db.t.dya = 'a'"])
def test_overwrite_by_a_wrong_column_names_the_nearest(lake: Lake, where: str) -> None:
    with pytest.raises(InvalidStatementError, match=r"no column .*dya. Did you mean day\?"):
        replaced(lake, where)


@pytest.mark.parametrize("where", ["day = 'a' day = 'b'", "day = ", "day = 'a' ORDER BY day", ""])
def test_overwrite_takes_one_whole_condition(lake: Lake, where: str) -> None:
    with pytest.raises(InvalidStatementError):
        replaced(lake, where)
    assert lake.table("db.t").arrow().num_rows == 2


def test_overwrite_says_what_to_do_about_a_subquery(lake: Lake) -> None:
    with pytest.raises(InvalidStatementError, match="Use DELETE and append for anything else"):
        replaced(lake, "`order id` IN (SELECT 1)")


@pytest.mark.parametrize("verb", ["rewrite_data_files", "convert_equality_deletes", "erase"])
def test_maintenance_follows_the_case_rules_of_the_session(lake: Lake, verb: str) -> None:
    run: Any = getattr(lake.table("db.t"), verb)
    run(where="db.t.DAY = 'a'", dry_run=True)
    lake.spark.settings[CASE] = "true"
    with pytest.raises(InvalidStatementError, match="no column DAY"):
        run(where="DAY = 'a'", dry_run=True)


class Sleeping(Engine):
    """An engine whose session is not started yet; counts how often its zone is asked for."""

    has_session = False
    starts = 0

    def setting(self, key: str) -> str | None:
        return None

    @property
    def time_zone(self) -> str:  # type: ignore[override]
        self.starts += 1
        return "Asia/Tokyo"


def _said(engine: Sleeping, text: str) -> Any:
    fields = [
        pa.field(name, ROWS.schema.field(name).type, metadata={"PARQUET:field_id": str(at)})
        for at, name in enumerate(ROWS.schema.names, 1)
    ]
    condition = RowCondition(text, Schema(pa.schema(fields)), "t")
    return pushed_rows(engine, condition)  # type: ignore[arg-type]


def test_a_session_is_started_only_for_a_time_without_a_zone() -> None:
    engine = Sleeping()
    assert _said(engine, "day = 'a'").predicate == Leaf(("day",), Op.EQ, ("a",))
    assert not _said(engine, "upper(day) = 'A'").exact
    assert engine.starts == 0
    assert _said(engine, "at > '2024-01-01 03:00:00'").exact
    assert engine.starts == 1
