"""`Table`'s row-level verbs do what statements do: same checks, zone, case rules, subqueries."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rowlake
from rowlake.errors import InvalidStatementError, RowlakeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ZONE, CASE = "spark.sql.session.timeZone", "spark.sql.caseSensitive"
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("qty", pa.int32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("x", pa.int32()),
    ]
)
START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
ROWS = [{"id": n, "qty": n * 10, "at": START + dt.timedelta(hours=n), "x": n} for n in range(1, 9)]


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[rowlake.Lake]:
    with rowlake.connect(str(tmp_path), spark=spark) as found:
        found.create_namespace("db")
        for name in ("db.said", "db.called", "db.q"):
            found.create_table(name, SCHEMA).append(ROWS[:3] if name == "db.q" else ROWS)
        before = {key: spark.conf.get(key) for key in (ZONE, CASE)}
        yield found
        for key, value in before.items():
            spark.conf.set(key, value)


def outcome(lake: rowlake.Lake, name: str, run: Any) -> Any:
    """Return the rows after a change, or the error in place of it."""
    try:
        run()
    except RowlakeError as error:
        return type(error), str(error).replace(name, "db.t").replace(name[3:], "t")
    return sorted(lake.table(name).arrow().to_pylist(), key=lambda row: row["id"])


def both(lake: rowlake.Lake, where: str) -> tuple[Any, Any]:
    """Return what DELETE and `Table.delete` come to."""
    said = outcome(lake, "db.said", lambda: lake.sql(f"DELETE FROM db.said WHERE {where}"))
    where = where.replace("said", "called")
    return said, outcome(lake, "db.called", lambda: lake.table("db.called").delete(where))


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id > 4", 4),
        ("said.id > 4", 4),
        ("db.said.id > 4", 4),
        ("db.said.id % 2 = 0", 4),
        ("id IN (SELECT id FROM db.q)", 5),
        ("EXISTS (SELECT 1 FROM db.q AS q WHERE q.id = said.id AND q.qty > 10)", 6),
        ("qty > (SELECT max(qty) FROM db.q)", 3),
        ("ID % 2 = 0 AND Qty > 20", 5),
        ("db.said.id IN (SELECT max(id) FROM db.said.branch_main)", 7),
        ("id IN (SELECT max(db.said.id) FROM db.said)", 7),
        ("id = (SELECT count(*) FROM db.said.snapshots)", 7),
        ("at >= '2024-01-01 05:00:00'", 4),
    ],
)
def test_the_same_rows_are_deleted(lake: rowlake.Lake, where: str, left: int) -> None:
    lake.spark.conf.set(ZONE, "UTC")
    said, called = both(lake, where)
    assert said == called
    assert len(said) == left


@pytest.mark.parametrize(
    "where",
    [
        "rand() < 0.5",
        "nothing = 1",
        "nothing % 2 = 1",
        "id IN (SELECT id FROM db.missing)",
        "id = 1 id = 2",
        "id = 1 ORDER BY id",
        "id > 0 LIMIT 1",
        "id = ",
        "sum(id) > 1",
    ],
)
def test_the_same_mistakes_are_refused(lake: rowlake.Lake, where: str) -> None:
    said, called = both(lake, where)
    assert isinstance(said, tuple)
    assert said[0] is called[0]


def test_a_random_condition_is_refused_in_both(lake: rowlake.Lake) -> None:
    for run in (
        lambda: lake.sql("DELETE FROM db.said WHERE rand() < 0.5"),
        lambda: lake.table("db.called").delete("rand() < 0.5"),
    ):
        with pytest.raises(InvalidStatementError, match="rand\\(\\) cannot be used"):
            run()


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Tokyo"])
def test_times_are_in_the_zone_of_the_session(lake: rowlake.Lake, zone: str) -> None:
    lake.spark.conf.set(ZONE, zone)
    local = (START + dt.timedelta(hours=4)).astimezone(dt.timezone.utc)
    (text,) = lake.spark.sql(
        f"SELECT CAST(timestamp_micros({int(local.timestamp() * 1_000_000)}) AS STRING)"
    ).first()
    said, called = both(lake, f"at > '{text}'")
    assert said == called
    assert [row["id"] for row in said] == [1, 2, 3, 4]


def test_names_are_compared_as_the_session_does(lake: rowlake.Lake) -> None:
    lake.spark.conf.set(CASE, "true")
    said, called = both(lake, "ID > 4")
    assert said[0] is called[0] is InvalidStatementError
    lake.spark.conf.set(CASE, "false")
    said, called = both(lake, "ID > 4")
    assert said == called
    assert len(said) == 4


def test_updates_and_merges_name_other_tables(lake: rowlake.Lake) -> None:
    where = "id IN (SELECT id FROM db.q)"
    said = outcome(
        lake, "db.said", lambda: lake.sql(f"UPDATE db.said SET qty = -qty WHERE {where}")
    )
    called = lake.table("db.called")
    assert outcome(lake, "db.called", lambda: called.update({"qty": "-qty"}, where)) == said
    said = outcome(
        lake,
        "db.said",
        lambda: lake.sql(
            "MERGE INTO db.said t USING db.q s ON t.id = s.id "
            "WHEN MATCHED AND t.id > (SELECT min(id) FROM db.q) THEN DELETE"
        ),
    )
    merge = called.merge(lake.table("db.q"), ["id"]).when_matched_delete(
        "t.id > (SELECT min(id) FROM db.q)"
    )
    assert outcome(lake, "db.called", merge.execute) == said
    assert [row["id"] for row in said] == [1, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("value", ["0", "qty + 1", "CAST('x' AS INT)"])
def test_columns_may_be_qualified_by_the_whole_name(lake: rowlake.Lake, value: str) -> None:
    where = "db.called.id > 7 AND db.called.qty > 900"
    lake.sql(f"UPDATE db.called SET db.called.x = {value} WHERE {where}")
    lake.table("db.called").update({"x": value}, where)
    lake.table("db.called").create_branch("b")
    done = lake.table("db.called").delete("db.called.id % 2 = 0", branch="b")
    assert (done.rows_deleted, lake.table("db.called").arrow().to_pylist()) == (4, ROWS)


def test_a_transaction_sees_its_own_tables_in_conditions(lake: rowlake.Lake) -> None:
    with lake.transaction() as tx:
        tx.table("db.q").delete("id > 1")
        assert tx.table("db.called").delete("id IN (SELECT id FROM db.q)").rows_deleted == 1
    assert lake.table("db.called").arrow().num_rows == 7


def test_names_in_conditions_are_those_of_the_current_namespace(lake: rowlake.Lake) -> None:
    lake.sql("USE db")
    assert lake.table("db.called").delete("id IN (SELECT id FROM q)").rows_deleted == 3


def read_both(lake: rowlake.Lake, where: str, **at: Any) -> tuple[Any, Any]:
    """Return the ids that a SELECT and `Table.df` find, or the class of the error."""
    table = lake.table("db.said")

    def ids(run: Any) -> Any:
        try:
            return sorted(row.id for row in run().collect())
        except RowlakeError as error:
            return type(error)

    said = ids(lambda: lake.sql(f"SELECT id FROM db.said WHERE {where}"))
    return said, ids(lambda: table.df(["id"], where=where, **at))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("said.ID > 6", [7, 8]),
        ("db.said.id % 4 = 0", [4, 8]),
        ("`id` IN (SELECT id FROM db.q WHERE qty > 10)", [2, 3]),
        ("EXISTS (SELECT 1 FROM db.q AS q WHERE q.id = said.id)", [1, 2, 3]),
        ("`_pos` = 0", [1]),
        ("at = '2024-01-01 14:00:00'", [5]),
        ("at = '2024-01-01 14:00:00' AND id % 1 = 0", [5]),
        ("id = 1 id = 2", InvalidStatementError),
        ("id = 1 ORDER BY id", InvalidStatementError),
        ("id IN (SELECT id FROM db.missing)", rowlake.errors.TableNotFoundError),
    ],
)
def test_a_filtered_read_finds_what_delete_would_delete(
    lake: rowlake.Lake, where: str, found: Any
) -> None:
    lake.spark.conf.set(ZONE, "Asia/Tokyo")
    assert read_both(lake, where)[1] == found


def test_a_filtered_read_compares_names_as_the_session_does(lake: rowlake.Lake) -> None:
    lake.spark.conf.set(CASE, "true")
    assert read_both(lake, "ID > 6") == (InvalidStatementError, InvalidStatementError)
    assert read_both(lake, "id > 6") == ([7, 8], [7, 8])


@pytest.mark.parametrize("where", ["qyt > 1", "abs(qyt) > 1"])
def test_a_wrong_column_is_told_with_the_nearest_of_the_table(
    lake: rowlake.Lake, where: str
) -> None:
    table = lake.table("db.said")
    for run in (table.df, table.delete):
        with pytest.raises(InvalidStatementError, match=r"no column qyt. Did you mean qty\?"):
            run(where=where)


def test_a_filtered_read_sees_the_snapshot_that_is_asked_for(lake: rowlake.Lake) -> None:
    table = lake.table("db.said")
    (first,) = table.snapshots()
    table.create_tag("whole")
    table.create_branch("b")
    table.delete("id <= 6")
    table.delete("id = 1", branch="b")
    where = "id % 2 = 1 AND id IN (SELECT id FROM db.q)"
    assert read_both(lake, where)[1] == []
    assert read_both(lake, where, snapshot_id=first.snapshot_id)[1] == [1, 3]
    assert read_both(lake, where, as_of=first.timestamp_ms)[1] == [1, 3]
    assert read_both(lake, where, ref="whole")[1] == [1, 3]
    assert read_both(lake, where, ref="b")[1] == [3]
    assert table.df([], where="id > 6").count() == 2
    assert table.df(["QTY", "id"], where="id > 7").columns == ["qty", "id"]
