"""`rowlake delete | update | merge | upsert | explain`: what they ask for, without Spark."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.cli import app as cli
from rowlake.cli import options
from rowlake.dml import change
from rowlake.errors import CommitConflictError, CommitStateUnknownError
from rowlake.merge_builder import MergeBuilder
from rowlake.model.result import Result
from rowlake.sql.parse.statement import parse
from rowlake.table import Table
from tests.unit.sql.lake_without_spark import lake_without_spark

DONE = Result("merge", 7, rows_updated=2, rows_inserted=1, seconds=0.5, phases={"write": 0.25})
SCHEMA = pa.schema([("id", pa.int64()), ("qty", pa.int32())])


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A lake whose row-level statements are only written down, with their options."""
    lake = lake_without_spark(tmp_path / "lake")
    lake.create_namespace("ns")
    lake.create_table("ns.t", SCHEMA)
    lake.spark.answer = pa.table({"id": [1]})
    found: list = []

    def run(kind):
        def note(_lake, statement, _arguments=None, **given):
            found.append((kind, statement, given))
            return {"explain": "files 1\n  strategy", "change": (None, DONE)}.get(kind, DONE)

        return note

    monkeypatch.setattr(options, "open_lake", lambda *_, **__: lake)
    monkeypatch.setattr(change, "change_rows", run("change"))
    monkeypatch.setattr(change, "explain_rows", run("explain"))
    monkeypatch.setattr(
        MergeBuilder, "execute", lambda b: run("change")(0, b.statement, **b.options)[1]
    )
    monkeypatch.setattr(
        MergeBuilder, "explain", lambda b: run("explain")(0, b.statement, **b.options)
    )
    monkeypatch.setattr(
        Table, "upsert", lambda t, rows, **given: run("upsert")(t, rows, **given), raising=False
    )
    lake.asked = found
    return lake


@pytest.fixture
def run(asked, monkeypatch, capfdbinary):
    """Run a command; return (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rowlake", *arguments])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        out, err = capfdbinary.readouterr()
        return int(raised.value.code or 0), out.decode(errors="replace"), err.decode()

    return call


def test_delete(run, asked) -> None:
    code, out, err = run("delete", "ns.t", "--where", "qty > 1 -- many", "--mode", "auto", "-q")
    assert (code, err) == (0, "")
    assert asked.asked == [("change", parse("DELETE FROM ns.t WHERE qty > 1"), {"mode": "auto"})]
    assert asked.engine.progress is False
    assert out.splitlines()[0].split() == ["operation", "merge"]


def test_update(run, asked) -> None:
    code, _, err = run(
        *["update", "ns.t", "--set", "qty = qty + 1, t.st.a = 'x, y'", "--set", "id = DEFAULT"],
        *["--where", "id IN (SELECT 1)", "--branch", "b", "--deletes", "vector"],
        *["--isolation", "snapshot", "--property", "by=me = you", "--property", "empty="],
    )
    assert (code, err) == (0, "")
    statement = parse(
        "UPDATE ns.t SET qty = qty + 1, st.a = 'x, y', id = DEFAULT WHERE id IN (SELECT 1)"
    )
    given = {
        "branch": "b",
        "deletes": "vector",
        "isolation": "snapshot",
        "properties": {"by": "me = you", "empty": ""},
    }
    assert asked.asked == [("change", statement, given)]
    assert asked.engine.progress is True


def test_merge(run, asked, tmp_path) -> None:
    code, _, err = run(
        *["merge", "ns.t", "--using", "new.parquet", "--on", "t.id = s.id"],
        *["--when-matched", "AND s.qty IS NULL THEN DELETE", "--when-matched", "update-all"],
        *["--when-not-matched", "AND s.qty > 0 THEN INSERT (id, qty) VALUES (s.id, 1)"],
        *[
            "--when-not-matched",
            "Insert-All",
            "--when-not-matched-by-source",
            "AND t.qty = 1 THEN DELETE",
        ],
        *["--when-not-matched-by-source", "UPDATE SET t.qty = 0", "--schema-evolution"],
    )
    assert (code, err) == (0, "")
    ((kind, statement, given),) = asked.asked
    written = parse(
        "MERGE WITH SCHEMA EVOLUTION INTO ns.t AS t USING x AS s ON t.id = s.id "
        "WHEN MATCHED AND s.qty IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND s.qty > 0 THEN INSERT (id, qty) VALUES (s.id, 1) "
        "WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.qty = 1 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET qty = 0"
    )
    assert (kind, given, statement.source) == ("change", {}, "new.parquet")
    assert replace(statement, source="x") == written


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT 1 AS id", "SELECT 1 AS id"),
        ("(SELECT 1)", "(SELECT 1)"),
        ("values(1)", "values(1)"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("spark_catalog.default.u", "SELECT * FROM spark_catalog.default.u"),
        ("a.parquet", None),
        ("values.csv", None),
        ("some folder/x.JSON", None),
        ("x.jsonl", None),
        ("s3://bucket/folder", None),
        ("/tmp", None),
    ],
)
def test_sources_are_queries_tables_or_paths(run, asked, text, query) -> None:
    code, _, err = run(
        "merge", "ns.t", "--using", text, "--keys", "id, qty", "--when-matched", "delete"
    )
    assert (code, err) == (0, "")
    ((_, statement, _),) = asked.asked
    assert statement.on == "t.`id` = s.`id` AND t.`qty` = s.`qty`"
    assert asked.spark.asked == ([query] if query else [])
    assert (statement.source is asked.spark.answer) if query else (statement.source == text)


def test_upsert(run, asked) -> None:
    code, _, err = run("upsert", "ns.t", "new.csv", "--keys", "id,`a b`", "--deletes", "equality")
    assert (code, err) == (0, "")
    run("upsert", "ns.t", "n.csv", "--on-duplicates", "latest by qty", "--if-exists", "reject")
    assert asked.asked == [
        ("upsert", "new.csv", {"keys": ["id", "`a b`"], "deletes": "equality"}),
        (
            "upsert",
            "n.csv",
            {"keys": None, "on_duplicates": "latest by qty", "if_exists": "reject"},
        ),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["delete", "ns.t", "--where", "id = 1"],
        ["update", "ns.t", "--set", "id = 1"],
        ["merge", "ns.t", "--using", "x.csv", "--keys", "id", "--when-matched", "delete"],
    ],
)
def test_explain_writes_nothing(run, asked, arguments) -> None:
    code, out, err = run(*arguments, "--explain")
    assert (code, out, err) == (0, "files 1\n  strategy\n", "")
    assert [kind for kind, _, _ in asked.asked] == ["explain"]
    _, out, _ = run(*arguments, "--explain", "-o", "json")
    assert json.loads(out) == [{"plan": "files 1\n  strategy"}]


@pytest.mark.parametrize("text", ["DELETE FROM ns.t WHERE id = 1", "explain SELECT 1"])
def test_explain_of_a_statement(run, asked, monkeypatch, text) -> None:
    plans = pa.table({"plan": ["one\n  two"]})
    monkeypatch.setattr(
        asked, "sql", lambda sql: said.append(sql) or type("F", (), {"toArrow": lambda _: plans})()
    )
    said: list[str] = []
    code, out, _ = run("explain", text)
    assert (code, out) == (0, "one\n  two\n")
    assert said == [text if text.startswith("explain") else f"EXPLAIN {text}"]
    _, out, _ = run("explain", text, "-o", "csv")
    assert list(csv.reader(io.StringIO(out))) == [["plan"], ["one\n  two"]]


def test_results_for_programs_have_every_field(run, capfdbinary) -> None:
    command = ["delete", "ns.t", "--where", "id = 1", "-o"]
    _, out, _ = run(*command, "json")
    told = DONE.to_dict() | {"snapshot_id": str(DONE.snapshot_id)}
    assert json.loads(out) == [json.loads(json.dumps(told))]
    _, out, _ = run(*command, "csv")
    names, values = csv.reader(io.StringIO(out))
    assert dict(zip(names, values, strict=True))["phases"] == '{"write": 0.25}'


def test_results_as_parquet(asked, monkeypatch, capfdbinary) -> None:
    given = ["delete", "ns.t", "--where", "id = 1", "-o", "parquet"]
    monkeypatch.setattr(sys, "argv", ["rowlake", *given])
    with pytest.raises(SystemExit):
        cli.main()
    (row,) = pq.read_table(pa.BufferReader(capfdbinary.readouterr().out)).to_pylist()
    assert row | {"phases": dict(row["phases"])} == DONE.to_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["delete", "ns.t"], "Missing option '--where'"),
        (["update", "ns.t"], "Missing option '--set'"),
        (["update", "ns.t", "--set", "a"], "Expected = but found end of statement"),
        (["update", "ns.t", "--set", "a = 1; b"], "Expected the end of the statement but found ;"),
        (["update", "ns.t", "--set", "a = 1", "--set", "a = 2"], "Column a is assigned twice"),
        (["delete", "ns.t", "--where", "(a"], "A bracket is not closed"),
        (["delete", "ns.t", "--where", "a", "--property", "x"], "--property takes KEY=VALUE"),
        (["merge", "ns.t", "--using", "x.csv", "--keys", "a"], "at least one of --when-matched"),
        (
            ["merge", "ns.t", "--using", "x.csv", "--when-matched", "delete"],
            "give either --on or --keys",
        ),
        (
            ["merge", "ns.t", "--using", "x.csv", "--keys", "a,", "--when-matched", "delete"],
            "--keys takes columns separated by commas",
        ),
        (
            ["merge", "ns.t", "--using", "x", "--keys", "a", "--when-matched", "insert-all"],
            "A MATCHED clause cannot INSERT",
        ),
        (
            ["merge", "ns.t", "--using", "x", "--keys", "a", "--when-matched", "drop"],
            "Expected UPDATE or DELETE or INSERT but found drop",
        ),
        (["delete", "ns.t", "--where", "a", "--isolation"], "requires an argument"),
    ],
)
def test_wrong_usage_exits_with_2(run, asked, arguments, message) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.replace("│", " ").split())
    assert not asked.asked


@pytest.mark.parametrize(
    ("error", "code"),
    [(CommitConflictError("delete", "ns.t", "x"), 3), (CommitStateUnknownError("ns.t", 1, "x"), 4)],
)
def test_exit_codes_of_failed_commits(run, asked, monkeypatch, error, code) -> None:
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(change, "change_rows", fail)
    assert run("delete", "ns.t", "--where", "id = 1") == (code, "", f"rowlake: {error}\n")
