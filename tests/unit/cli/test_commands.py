"""The command line without Spark: outputs, exit codes, what goes where."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowlake.cli import app as cli
from rowlake.cli.output import Output, show
from rowlake.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    EngineError,
    InternalError,
    InvalidStatementError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.lakes import SALES, make_lake, sales

LOOKS = ["describe", "history", "snapshots", "files"]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("cli") / "lake"
    with make_lake(folder) as lake:
        lake.create_namespace("shop")
        lake.create_namespace("other")
        table = lake.create_table(
            "shop.sales", SALES, partition_by=["store"], properties={"owner": "Jürgen 🐟"}
        )
        table.append(sales(8))
        table.append(sales(4, 8))
        table.create_tag("kept")
        lake.create_table("other.empty", pa.schema([("naïve", pa.string())]), comment="leer")
    return str(folder)


@pytest.fixture
def run(warehouse, monkeypatch, capfdbinary):
    """Run a command in this process; return (exit code, standard output, standard error)."""

    def call(*arguments: str, place: str | None = warehouse) -> tuple[int, bytes, str]:
        given = [*arguments, *(["--warehouse", place] if place else [])]
        monkeypatch.setattr(sys, "argv", ["rowlake", *given])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        out, err = capfdbinary.readouterr()
        return int(raised.value.code or 0), out, err.decode()

    return call


def test_tables_lists_rows_files_and_format(run) -> None:
    code, out, err = run("tables", "-o", "json")
    assert (code, err) == (0, "")
    found = {row["table"]: row for row in json.loads(out)}
    assert set(found) == {"shop.sales", "other.empty"}
    assert (found["shop.sales"]["rows"], found["shop.sales"]["files"]) == (12, 8)
    assert found["other.empty"]["rows"] == 0
    assert found["shop.sales"]["format"] == 2


def test_tables_of_one_namespace(run) -> None:
    code, out, _ = run("tables", "other", "-o", "csv")
    assert code == 0
    rows = list(csv.reader(io.StringIO(out.decode())))
    assert rows[0] == ["table", "format", "rows", "files", "last_changed"]
    assert [row[0] for row in rows[1:]] == ["other.empty"]
    assert rows[1][2] == "0"


def test_a_table_for_people_shows_null_and_unicode(run) -> None:
    code, out, err = run("history", "shop.sales")
    assert (code, err) == (0, "")
    text = out.decode()
    assert "NULL" in text
    assert "2 rows" in text
    code, out, _ = run("describe", "shop.sales")
    assert "Jürgen 🐟" in out.decode()
    assert "identity(store)" in out.decode()


@pytest.mark.parametrize("command", LOOKS)
def test_every_look_has_every_output(run, command) -> None:
    code, table, err = run(command, "shop.sales")
    assert (code, err) == (0, "")
    assert table.strip()
    _, as_json, _ = run(command, "shop.sales", "--output", "json")
    _, as_csv, _ = run(command, "shop.sales", "--output", "csv")
    _, as_parquet, _ = run(command, "shop.sales", "--output", "parquet")
    rows = json.loads(as_json)
    assert rows
    assert pq.read_table(pa.BufferReader(as_parquet)).num_rows == len(rows)
    names = next(csv.reader(io.StringIO(as_csv.decode())))
    assert names == list(rows[0])


def test_history_is_newest_first_and_names_refs(run) -> None:
    _, out, _ = run("history", "shop.sales", "-o", "json")
    rows = json.loads(out)
    assert [row["statement"] for row in rows] == ["APPEND", "APPEND"]
    assert [row["rows_inserted"] for row in rows] == [4, 8]
    assert [row["total_rows"] for row in rows] == [12, 8]
    assert rows[0]["refs"] == "kept, main"


def test_wrong_input_exits_with_its_code_and_one_message(run, tmp_path) -> None:
    code, out, err = run("describe", "shop.sale")
    assert (code, out) == (1, b"")
    assert err == "rowlake: There is no table shop.sale. Did you mean shop.sales?\n"
    code, out, err = run("describe", "sales")
    assert (code, out) == (1, b"")
    assert err == "rowlake: There is no table default.sales.\n"
    (tmp_path / "file").write_text("x")
    code, out, err = run("tables", place=str(tmp_path / "file"))
    assert (code, out) == (1, b"")
    assert "it is a file" in err
    code, out, err = run("sql", "DROP TABLE `shop.a")
    assert (code, out) == (2, b"")
    assert "not closed (line 1, column 12)" in err


@pytest.mark.parametrize(
    "arguments", [["nope"], ["describe"], ["tables", "-o", "xml"], ["demo", "--rows", "1"]]
)
def test_wrong_usage_exits_with_2(run, arguments) -> None:
    code, out, err = run(*arguments, place=None)
    assert (code, out) == (2, b"")
    assert "Error" in err or "Usage" in err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidStatementError("x"), 2),
        (SchemaMismatchError("x"), 2),
        (TableNotFoundError("x"), 1),
        (UnsupportedFeatureError("x"), 1),
        (StorageError("x", "y"), 1),
        (EngineError("x"), 1),
        (InternalError("x"), 1),
        (CommitConflictError("a", "b", "c"), 3),
        (CommitStateUnknownError("a", 1, "c"), 4),
    ],
    ids=lambda each: type(each).__name__,
)
def test_exit_codes_say_what_to_do(run, monkeypatch, error, code) -> None:
    def fail(*_):
        raise error

    monkeypatch.setattr(cli, "open_lake", fail)
    found, out, err = run("tables")
    assert (found, out) == (code, b"")
    assert err == f"rowlake: {error}\n"


def test_ctrl_c_exits_with_130(run, monkeypatch) -> None:
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "open_lake", stop)
    code, out, err = run("tables")
    assert (code, out) == (130, b"")
    assert err.startswith("rowlake: stopped")


def test_no_command_shows_help(run) -> None:
    _, out, err = run(place=None)
    assert "Usage" in out.decode() + err


def test_a_reader_that_leaves_early_is_no_error(warehouse) -> None:
    """`rowlake … | head -1` closes the pipe while rowlake still writes."""
    command = [sys.executable, "-m", "rowlake.cli.app", "files", "shop.sales", "-o", "csv"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        done = subprocess.run(
            [*command, "--warehouse", warehouse], stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert done.stderr == b""


def test_environment_names_the_warehouse(warehouse) -> None:
    command = [sys.executable, "-m", "rowlake.cli.app", "tables", "-o", "csv"]
    done = subprocess.run(
        command, capture_output=True, env=os.environ | {"ROWLAKE_WAREHOUSE": warehouse}, check=True
    )
    assert b"shop.sales" in done.stdout
    assert done.stderr == b""


class FakeLake:
    """Answers statements from a script, as a lake does."""

    def __init__(self) -> None:
        self.engine = type("Engine", (), {"progress": None})()
        self.statements: list[str] = []

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass

    def sql(self, statement: str):
        self.statements.append(statement)
        if "broken" in statement:
            raise InvalidStatementError("It is broken.")
        if "strange" in statement:
            raise ValueError("first line\nsecond line")
        rows = pa.table({"n": pa.array([1, None]), "text": ['ä,"q"', "[red]x[/red]"]})
        return type("Frame", (), {"toArrow": lambda _: rows})()


@pytest.fixture
def fake(monkeypatch) -> FakeLake:
    lake = FakeLake()
    monkeypatch.setattr(cli, "open_lake", lambda *_, **__: lake)
    return lake


def test_sql_reads_its_statement_from_a_pipe(run, fake, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 'ü'\nFROM t\n"))
    code, out, err = run("sql", "-", "-o", "csv", "--quiet")
    assert (code, err) == (0, "")
    assert fake.statements == ["SELECT 'ü'\nFROM t\n"]
    assert fake.engine.progress is False
    assert out.decode() == 'n,text\n1,"ä,""q"""\n,[red]x[/red]\n'


def test_markup_in_values_is_shown_as_it_is(run, fake) -> None:
    _, out, _ = run("sql", "SELECT 1")
    assert "[red]x[/red]" in out.decode()
    assert "NULL" in out.decode()


def test_the_shell_goes_on_after_errors_and_joins_lines(run, fake, monkeypatch) -> None:
    script = "SELECT 1,\n 2;\nbroken;\nstrange; SELECT ';' ;\n\nexit\nSELECT 9;\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(script))
    code, out, err = run("shell")
    assert code == 0
    assert [one.strip() for one in fake.statements] == [
        "SELECT 1,\n 2",
        "broken",
        "strange",
        "SELECT ';'",
    ]
    assert err.splitlines() == ["error: It is broken.", "error: first line"]
    assert out.decode().count("2 rows") == 2


def test_the_shell_ends_with_its_input(run, fake, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1"))
    code, _, err = run("shell")
    assert (code, err) == (0, "")
    assert [one.strip() for one in fake.statements] == ["SELECT 1"]


@pytest.mark.parametrize("output", list(Output))
def test_no_rows_and_no_columns_can_be_shown(output, capfdbinary) -> None:
    show(pa.table({"a": pa.array([], pa.int64())}), output)
    show(pa.table({}), output)
    assert capfdbinary.readouterr().err == b""


def test_values_of_every_type_can_be_shown(capfdbinary) -> None:
    import datetime
    import decimal

    rows = pa.table(
        {
            "bytes": pa.array([b"\x00\xff", None]),
            "day": pa.array([datetime.date(2024, 2, 29), None]),
            "at": pa.array(
                [datetime.datetime(2024, 2, 29, 1, 2, 3), None], pa.timestamp("us", "UTC")
            ),
            "time": pa.array([datetime.time(1, 2, 3), None], pa.time64("us")),
            "money": pa.array([decimal.Decimal("1.10"), None]),
            "list": pa.array([[1, None], None]),
            "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"a": "ö"}, None]),
            "float": pa.array([float("nan"), None]),
        }
    )
    for output in Output:
        show(rows, output)
    out, err = capfdbinary.readouterr()
    assert err == b""
    assert b"00ff" in out
    assert "ö".encode() in out


@pytest.mark.parametrize("command", ["tables", "history", "describe", "files", "health"])
def test_a_mistyped_warehouse_is_an_error_and_creates_nothing(run, tmp_path, command) -> None:
    arguments = [] if command == "tables" else ["shop.sales"]
    missing = tmp_path / "lakehosue"
    code, out, err = run(command, *arguments, place=str(missing))
    assert (code, out) == (2, b"")
    assert err.startswith(f"rowlake: There is no lake at {missing}. Check --warehouse")
    assert not missing.exists()


def test_a_folder_without_a_lake_stays_as_it_is(run, tmp_path) -> None:
    code, _, err = run("sql", "SELECT * FROM shop.sales", place=str(tmp_path))
    assert code == 2
    assert "There is no lake at" in err
    assert list(tmp_path.iterdir()) == []


def test_json_has_ids_as_texts_summaries_as_objects_and_times_with_zone(run) -> None:
    _, out, _ = run("snapshots", "shop.sales", "-o", "json")
    first, second = json.loads(out)
    assert isinstance(first["snapshot_id"], str)
    assert second["parent_id"] == first["snapshot_id"]
    assert first["parent_id"] is None
    assert first["summary"]["added-records"] == "8"
    assert first["committed_at"].endswith("+00:00")
    _, out, _ = run("tables", "-o", "json")
    assert all(row["last_changed"].endswith("+00:00") for row in json.loads(out))


def test_numbers_beyond_a_double_are_texts_in_json(capsys) -> None:
    show(pa.table({"n": [2**60, 1], "small": [1, 2]}), Output.JSON)
    rows = json.loads(capsys.readouterr().out)
    assert rows == [{"n": str(2**60), "small": 1}, {"n": "1", "small": 2}]


def test_help_shows_examples(run) -> None:
    code, out, _ = run("upsert", "--help", place=None)
    assert code == 0
    assert "rowlake upsert shop.sales new.csv --keys id" in " ".join(out.decode().split())


def test_a_statement_or_a_file_is_needed(run, tmp_path) -> None:
    assert run("sql")[0] == 2
    (tmp_path / "a.sql").write_text("SELECT 1;")
    assert run("sql", "SELECT 1", "-f", str(tmp_path / "a.sql"))[0] == 2
    code, _, err = run("sql", "-f", str(tmp_path / "missing.sql"))
    assert code == 2
    assert "cannot read" in " ".join(err.split())
