"""`Table.merge` and `Table.update`: what they ask for, without Spark."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rowlake import merge_builder
from rowlake.dml import change
from rowlake.dml.operations import Assignment, Merge, Update
from rowlake.errors import InvalidStatementError
from rowlake.model.result import Result
from rowlake.query.lookup import TableLookup
from rowlake.sources.rows import SourcePath
from rowlake.sql.parse.statement import parse
from rowlake.sqltext.literal_text import literal_text
from rowlake.sqltext.parameters import with_named_arguments
from tests.lakes import make_lake
from tests.unit.sql.lake_without_spark import lake_without_spark

DONE = Result("done")
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "qty": pa.array([5, 6], pa.int32())})


@pytest.fixture
def lake(tmp_path):
    with lake_without_spark(tmp_path) as found:
        found.create_namespace("ns")
        found.create_table("ns.t", ROWS.schema)
        found.create_table("ns.odd name", ROWS.schema)
        yield found


@pytest.fixture
def table(lake):
    return lake.table("ns.t")


@pytest.fixture
def ran(monkeypatch) -> list:
    """Every statement that was run or explained, with its lookup and options."""
    found: list = []

    def explain(lookup, statement, arguments=None, **options):
        found.append((lookup, statement, options))
        return DONE

    def run(lookup, statement, arguments=None, **options):
        return lookup.need(statement.name), explain(lookup, statement, arguments, **options)

    monkeypatch.setattr(merge_builder, "change_rows", run)
    monkeypatch.setattr(merge_builder, "explain_rows", explain)
    monkeypatch.setattr(change, "change_rows", run)
    return found


def as_written(text: str) -> Merge:
    found = parse(f"MERGE {text}")
    assert isinstance(found, Merge)
    return found


def test_every_step_is_a_clause(table) -> None:
    built = (
        table.merge(ROWS, on="t.id = s.id AND t.qty > 0")
        .when_matched_delete(condition="s.qty IS NULL")
        .when_matched_update({"qty": "s.qty + 1", "t.st.a": "DEFAULT"}, condition="s.qty < 9")
        .when_matched_update_all()
        .when_not_matched_insert(values={"id": "s.id", "qty": 0}, condition="s.qty > 0")
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update(set={"qty": None}, condition="t.qty = 1")
        .when_not_matched_by_source_delete()
        .with_schema_evolution()
    )
    written = as_written(
        "WITH SCHEMA EVOLUTION INTO ns.t AS t USING x AS s ON t.id = s.id AND t.qty > 0 "
        "WHEN MATCHED AND s.qty IS NULL THEN DELETE "
        "WHEN MATCHED AND s.qty < 9 THEN UPDATE SET qty = s.qty + 1, t.st.a = DEFAULT "
        "WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND s.qty > 0 THEN INSERT (id, qty) VALUES (s.id, 0) "
        "WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.qty = 1 THEN UPDATE SET qty = NULL "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"
    )
    assert replace(built.statement, source="x") == written
    assert built.statement.source is ROWS


def test_builders_are_frozen(table) -> None:
    start = table.merge(ROWS, on=["id"])
    one = start.when_matched_delete()
    assert (start.clauses, len(one.clauses)) == ((), 1)
    with pytest.raises(FrozenInstanceError):
        one.on = "x"
    assert repr(start) == "MergeBuilder(ns.t: no clause yet)"
    assert repr(one) == "MergeBuilder(ns.t: MATCHED DELETE)"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["id"], "t.`id` = s.`id`"),
        (["a", "b"], "t.`a` = s.`a` AND t.`b` = s.`b`"),
        (("order id",), "t.`order id` = s.`order id`"),
        (["a`b"], "t.`a``b` = s.`a``b`"),
        (["st.a"], "t.`st`.`a` = s.`st`.`a`"),
        (["`st.a`"], "t.`st.a` = s.`st.a`"),
        ([("st.a",)], "t.`st.a` = s.`st.a`"),
    ],
)
def test_columns_to_match_on(table, columns, expected) -> None:
    assert table.merge(ROWS, on=columns).on == expected


def test_execution_gets_the_source_and_the_options(lake, table, ran) -> None:
    built = table.merge(ROWS, on=["id"], branch="b", mode="auto", deletes="position")
    assert built.when_matched_delete().execute() == DONE
    ((where, statement, options),) = ran
    assert where.workspace is lake.workspace
    assert statement.source is ROWS
    assert (statement.alias, statement.source_alias, statement.name) == ("t", "s", ("ns", "t"))
    assert options == {"branch": "b", "mode": "auto", "deletes": "position"}


def test_nothing_is_read_before_execute_and_then_once(table, ran) -> None:
    def batches():
        read.append(True)
        yield from ROWS.to_batches()

    read: list[bool] = []
    reader = pa.RecordBatchReader.from_batches(ROWS.schema, batches())
    start = table.merge(reader, on=["id"])
    built = start.when_matched_delete()
    assert not read
    built.explain()
    built.when_not_matched_insert_all().execute()
    assert len(read) == 1
    assert all(statement.source.equals(ROWS) for _, statement, _ in ran)


@pytest.mark.parametrize("path", ["s3://bucket/a b.parquet", Path("/data/new.csv")])
def test_paths_are_told_from_texts_of_relations(table, ran, path) -> None:
    table.merge(path, on=["id"]).when_matched_delete().execute()
    assert ran[0][1].source == SourcePath(str(path))


def test_update_is_a_statement(lake, table, ran) -> None:
    table.update(
        {"qty": "qty * 2", "ns.t.id": 7, "t.x.y": "1"}, where="qty > 1 -- big", mode="auto"
    )
    lake.table(("ns", "odd name")).update({"order id": "1"})
    assert ran[0][1:] == (
        Update(
            ("ns", "t"),
            (
                Assignment(("qty",), "qty * 2"),
                Assignment(("id",), "7"),
                Assignment(("x", "y"), "1"),
            ),
            where="qty > 1",
        ),
        {"mode": "auto"},
    )
    assert ran[1][1] == Update(("ns", "odd name"), (Assignment(("order id",), "1"),))


@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_a_branch_is_a_part_of_the_name(monkeypatch, lake, verb) -> None:
    text = {
        "delete": "DELETE FROM ns.t WHERE a = 1",
        "update": "UPDATE ns.t SET a = 1",
        "merge": "MERGE INTO ns.t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
    }[verb]
    found = []

    def run(_lookup, operation, _arguments, options, *_):
        assert options.pop("properties")["rowlake.operation"] == verb.upper()
        found.append((operation, options))
        return None, Result(verb)

    monkeypatch.setattr(change, f"{verb}_rows", run)
    monkeypatch.setattr(change, "tidied", lambda landed, *_: landed)
    lookup = TableLookup(lake.workspace)
    change.change_rows(lookup, parse(text), branch="b", mode="auto")
    change.change_rows(lookup, parse(text), branch="main")
    first, options = found[0]
    assert (first.name, first.alias, options) == (("ns", "t", "branch_b"), "t", {"mode": "auto"})
    second, options = found[1]
    assert (second, options) == (parse(text), {"branch": "main"})


# --- mistakes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda t: t.merge(ROWS, on="id"),
            "on='id' is no condition; give the columns as a list: on=['id'].",
        ),
        (
            lambda t: t.merge(ROWS, on=[]),
            "on is a condition ('t.id = s.id') or a list of columns (['id']).",
        ),
        (
            lambda t: t.merge(ROWS, on=None),
            "on is a condition ('t.id = s.id') or a list of columns (['id']).",
        ),
        (lambda t: t.merge(ROWS, on=[1]), "The name of a column is a text, not 1."),
        (
            lambda t: t.merge(ROWS, on="t.id = "),
            "Expected an expression but found end of statement (line 1, column 8)\n"
            "  t.id = \n         ^",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"], brunch="b"),
            "Unknown option brunch (expected one of: app_batch, branch, deletes, isolation, mode, "
            "progress, properties, stage_only).",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"], isolation="none"),
            "Unknown isolation level 'none' (expected one of: serializable, snapshot).",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).when_matched_update({}),
            "set takes the columns and their values: set={'column': 'expression'}.",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).when_not_matched_insert(["id"]),
            "values takes the columns and their values: values={'column': 'expression'}.",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).when_matched_update({"a": "1", "t.a": "2"}),
            "Column a is assigned twice.",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).when_matched_update({"a": "1, 2"}),
            "Expected the end of the statement but found , (line 1, column 2)\n  1, 2\n   ^",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).when_matched_update({"a": [1]}),
            "A list cannot be a value here; write it as the text of an expression.",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).when_matched_delete(condition=True),
            "condition is the text of an SQL condition, not a bool.",
        ),
        (
            lambda t: t.merge(ROWS, on=["id"]).execute(),
            "MERGE into ns.t: MERGE needs at least one WHEN clause.",
        ),
        (
            lambda t: (
                t.merge(ROWS, on=["id"]).when_matched_delete().when_matched_update_all().explain()
            ),
            "MERGE into ns.t: Only the last MATCHED clause can be without a condition: those after "
            "this one would never be reached.",
        ),
        (
            lambda t: t.update("a = 1"),
            "set takes the columns and their values: set={'column': 'expression'}.",
        ),
        (
            lambda t: t.update({"a": 1}, where=5),
            "where is the text of an SQL condition, not a int.",
        ),
        (
            lambda t: t.update({"a": 1}, nope=True),
            "Unknown option nope (expected one of: app_batch, branch, deletes, isolation, mode, "
            "progress, properties, stage_only).",
        ),
    ],
)
def test_mistakes_are_told(table, ran, make, message) -> None:
    with pytest.raises(InvalidStatementError) as raised:
        make(table)
    assert str(raised.value) == message
    assert not ran


# --- values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (np.False_, "FALSE"),
        (5, "5"),
        (-(1 << 63), "-9223372036854775808"),
        (np.int32(7), "7"),
        (1.5, "1.5D"),
        (1e300, "1e+300D"),
        (-0.0, "-0.0D"),
        (float("nan"), "double('NaN')"),
        (float("-inf"), "double('-Infinity')"),
        (np.float64(2.5), "2.5D"),
        (decimal.Decimal("1.50"), "1.50BD"),
        (decimal.Decimal("1E+3"), "1000BD"),
        (decimal.Decimal("-0.001"), "-0.001BD"),
        ("it's\\", r"'it\'s\\'"),
        (b"\x00\xff", "X'00ff'"),
        (dt.date(2024, 2, 29), "DATE'2024-02-29'"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6), "TIMESTAMP_NTZ'2024-01-02 03:04:05.000006'"),
        (
            dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone.utc),
            "TIMESTAMP_LTZ'2024-01-02 03:00:00+00:00'",
        ),
        (dt.time(1, 2, 3), "TIME'01:02:03'"),
        (uuid.UUID(int=1), "'00000000-0000-0000-0000-000000000001'"),
    ],
)
def test_literals(value, text) -> None:
    assert literal_text(value) == text


@pytest.mark.parametrize("text", ["1E+40", "1E-39", "NaN", "Infinity", "1" * 39])
def test_decimals_that_spark_has_not(text) -> None:
    with pytest.raises(InvalidStatementError, match="does not fit a decimal of 38 digits"):
        literal_text(decimal.Decimal(text))


# --- arguments


def test_arguments_by_position_become_named() -> None:
    text = "UPDATE t SET a = ?, b = '?' /* ? */ WHERE c IN (?, ?)"
    named, arguments = with_named_arguments(text, [1, "x", None])
    first, second, third = (f"rowlake_argument_{n}" for n in range(3))
    assert named == f"UPDATE t SET a = :{first}, b = '?' /* ? */ WHERE c IN (:{second}, :{third})"
    assert arguments == {first: 1, second: "x", third: None}
    assert with_named_arguments(text, {"a": 1}) == (text, {"a": 1})
    assert with_named_arguments(text, None) == (text, None)
    with pytest.raises(InvalidStatementError, match=r"has 3 parameters \(\?\) but 1 arguments"):
        with_named_arguments(text, [1])


def test_a_dot_in_a_column_s_name_is_no_path(tmp_path):
    lake = make_lake(tmp_path)
    lake.create_namespace("ns")
    table = lake.create_table("ns.dots", pa.schema([("a.b", pa.int64()), ("c", pa.int64())]))
    assert table.merge([], on=["a.b", "c"]).statement.on == "t.`a.b` = s.`a.b` AND t.`c` = s.`c`"
