"""`rowlake health | optimize | rewrite-data-files | …`: what they ask for and how they answer."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from dataclasses import dataclass

import pytest
import typer

from rowlake.cli import amounts, options
from rowlake.cli import app as cli
from rowlake.cli.output import Output
from rowlake.cli.watch import keep_watch, pause
from rowlake.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidStatementError,
    StorageError,
    TableNotFoundError,
)
from rowlake.maintain.autopilot.advice import COMMANDS
from rowlake.model.report import Report
from rowlake.table import Table
from tests.lakes import SALES, make_lake, sales
from tests.unit.sql.lake_without_spark import lake_without_spark


@dataclass(frozen=True)
class Done(Report):
    files: int = 3
    names: tuple[str, ...] = ("a", "b")
    text: str = "Jürgen"


@pytest.fixture
def call(monkeypatch, capfdbinary):
    """Run a command; return (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rowlake", *arguments])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        out, err = capfdbinary.readouterr()
        return int(raised.value.code or 0), out.decode(errors="replace"), err.decode()

    return run


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A lake whose tables only write down what maintenance is asked of them."""
    lake = lake_without_spark(tmp_path / "lake")
    lake.create_namespace("ns")
    lake.create_table("ns.t", SALES)
    found: list = []

    def fake(verb):
        def note(_, *given, **named):
            found.append((verb, given, named))
            return Done()

        return note

    for verb in [
        *COMMANDS,
        "compute_partition_stats",
        "vacuum",
        "erase",
        "optimize",
    ]:
        monkeypatch.setattr(Table, verb, fake(verb))
    monkeypatch.setattr(options, "open_lake", lambda *_, **__: lake)
    lake.asked = found
    return lake


BRANCH = {"branch": "main"}
DRY = {"dry_run": True}
CALLS = [
    (
        "rewrite-data-files ns.t --strategy sort --order id,store --where id>1 --option a=b=c "
        "--option x= --dry-run --max-bytes 1kB --max-seconds 2",
        (
            "rewrite_data_files",
            ("sort", "id,store", "id>1", {"a": "b=c", "x": ""}),
            BRANCH | DRY | {"max_bytes": 1000, "max_seconds": 2.0},
        ),
    ),
    (
        "rewrite-data-files ns.t --branch b",
        (
            "rewrite_data_files",
            ("binpack", None, None, {}),
            {"branch": "b", "dry_run": False, "max_bytes": None, "max_seconds": None},
        ),
    ),
    (
        "rewrite-position-deletes ns.t --where store=1 --option rewrite-all=true --dry-run",
        (
            "rewrite_position_delete_files",
            ({"rewrite-all": "true"}, "store=1"),
            BRANCH | DRY,
        ),
    ),
    (
        "convert-equality-deletes ns.t --where id=1",
        ("convert_equality_deletes", ("id=1", {}), BRANCH | {"dry_run": False}),
    ),
    (
        "rewrite-manifests ns.t --spec-id 0 --dry-run",
        ("rewrite_manifests", (), BRANCH | DRY | {"spec_id": 0}),
    ),
    (
        "expire ns.t --older-than 1970-01-01T00:00:01+00:00 --retain-last 3 --dry-run "
        "--snapshot-id 7 --snapshot-id 8 --clean-expired-metadata --also-below /x --also-below /y",
        (
            "expire_snapshots",
            (1000, 3),
            DRY
            | {
                "snapshot_ids": [7, 8],
                "clean_expired_metadata": True,
                "also_below": ["/x", "/y"],
            },
        ),
    ),
    (
        "orphans ns.t --location /x --force",
        ("remove_orphan_files", (None, "/x"), DRY | {"force": True, "also_below": None}),
    ),
    (
        "orphans ns.t --delete --also-below /x",
        (
            "remove_orphan_files",
            (None, None),
            {"force": False, "dry_run": False, "also_below": ["/x"]},
        ),
    ),
    (
        "vacuum ns.t --retain-hours 200 --delete",
        ("vacuum", (200.0,), {"dry_run": False, "also_below": None}),
    ),
    (
        "erase ns.t --where id=7",
        ("erase", (), DRY | {"where": "id=7", "drop_tags": False}),
    ),
    (
        "erase ns.t --where id=7 --drop-tags --delete",
        ("erase", (), {"where": "id=7", "drop_tags": True, "dry_run": False}),
    ),
    (
        "stats ns.t --columns id,store --dry-run",
        ("compute_table_stats", (), DRY | {"columns": ["id", "store"]}),
    ),
    ("stats ns.t --partitions", ("compute_partition_stats", (), {"dry_run": False})),
    (
        "optimize ns.t --dry-run --max-bytes 2MiB --max-seconds 9 --where id=1 --branch b",
        ("optimize", (True, 2 << 20, 9.0, "id=1"), {"branch": "b"}),
    ),
    ("optimize ns.t", ("optimize", (False, None, None, None), BRANCH)),
]


@pytest.mark.parametrize(("line", "expected"), CALLS, ids=[line[:40] for line, _ in CALLS])
def test_options_become_arguments(call, asked, line, expected) -> None:
    code, out, err = call(*line.split(), "--quiet")
    assert (code, err) == (0, "")
    assert asked.asked == [expected]
    assert asked.engine.progress is False
    assert out.splitlines()[0].split() == ["files", "3"]


def test_reports_are_shown_as_json_and_csv(call, asked) -> None:
    _, out, _ = call("expire", "ns.t", "-o", "json")
    place = {"ran_on": "driver", "spark_jobs": 0, "spark_tasks": 0}
    assert json.loads(out) == [{"files": 3, "names": ["a", "b"], "text": "Jürgen", **place}]
    _, out, _ = call("expire", "ns.t", "-o", "csv")
    assert list(csv.reader(io.StringIO(out))) == [
        ["files", "names", "text", *place],
        ["3", '["a", "b"]', "Jürgen", "driver", "0", "0"],
    ]
    assert asked.engine.progress is True


@pytest.mark.parametrize(
    "line",
    [
        "rewrite-data-files ns.t --option nothing",
        "expire ns.t --older-than yesterday",
        "optimize ns.t --max-bytes much",
        "optimize ns.t --watch --dry-run",
        "stats ns.t --columns id --partitions",
        "rollback ns.t",
        "rollback ns.t --snapshot-id 1 --as-of 2024-01-01",
        "optimize",
        "optimize ns.t --interval 0",
    ],
)
def test_wrong_usage_is_exit_code_2(call, asked, line) -> None:
    code, _, err = call(*line.split())
    assert code == 2
    assert err
    assert asked.asked == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommitConflictError("x", "ns.t", "late"), 3),
        (CommitStateUnknownError("ns.t", 1, "504"), 4),
        (InvalidStatementError("no"), 2),
        (StorageError("s3://b", "gone"), 1),
    ],
)
def test_errors_end_in_a_line_and_a_code(call, asked, monkeypatch, error, code) -> None:
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Table, "expire_snapshots", fail)
    assert call("expire", "ns.t")[0] == code


# --- sizes and times


@pytest.mark.parametrize(
    ("text", "size"),
    [("7", 7), ("1kB", 1000), ("1.5MB", 1_500_000), ("2GiB", 2 << 30), ("1 t", 10**12), ("3b", 3)],
)
def test_sizes(text, size) -> None:
    assert amounts.size_in_bytes("--max-bytes", text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1 PB", "1e3"])
def test_what_is_no_size(text) -> None:
    with pytest.raises(typer.BadParameter, match="takes a size"):
        amounts.size_in_bytes("--max-bytes", text)


def test_times_and_ages() -> None:
    assert amounts.moment("1970-01-02T00:00:00+00:00") == 86_400_000
    assert abs(amounts.moment("2d") - (time.time() - 172_800) * 1000) < 5_000
    assert abs(amounts.moment("36h") - (time.time() - 129_600) * 1000) < 5_000


# --- watching


class Round:
    def __init__(self, text):
        self.text = text

    def summary(self):
        return self.text

    def to_dict(self):
        return {"text": self.text}


def watched(rounds, output=Output.TABLE, interval=10.0):
    """Run rounds; the last thing that happens is Ctrl-C. Return the pauses between them."""
    left, pauses = list(rounds), []

    def run():
        if not left:
            raise KeyboardInterrupt
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return Round(found)

    keep_watch(run, interval, output, pauses.append)
    return pauses


def test_watching_says_a_line_a_round_until_interrupted(capsys) -> None:
    assert watched(["ns.t: nothing to do", "ns.t: rewrite_data_files done"]) == [10.0, 10.0]
    out, err = capsys.readouterr()
    assert [line.split("  ", 1)[1] for line in out.splitlines()] == [
        "ns.t: nothing to do",
        "ns.t: rewrite_data_files done",
    ]
    assert err == "rowlake: stopped watching; commits are kept\n"


def test_watching_survives_what_may_pass(capsys) -> None:
    lost, gone = CommitConflictError("x", "ns.t", "late"), StorageError("s3://b", "503")
    unknown = CommitStateUnknownError("ns.t", 1, "504")
    assert watched([lost, gone, unknown, "well", lost, "well"]) == [20, 40, 80, 10, 20, 10]
    assert capsys.readouterr().out.count("failed, will try again") == 4
    assert pause(60.0, 50) == 600.0
    assert pause(3_600.0, 3) == 3_600.0


def test_watching_ends_with_what_stays_wrong() -> None:
    with pytest.raises(TableNotFoundError):
        watched([TableNotFoundError("ns.t")])


def test_watching_as_json_is_an_object_a_line(capsys) -> None:
    watched(["one", StorageError("s3://b", "503")], Output.JSON)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["report"] for each in told] == [{"text": "one"}, None]
    assert all(each["at"] and each["said"] for each in told)


def test_interrupting_a_watch_is_exit_code_0(call, asked, monkeypatch) -> None:
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "optimize", stop)
    code, out, err = call("optimize", "ns.t", "--watch", "--interval", "5")
    assert (code, out) == (0, "")
    assert "stopped watching" in err


def test_interrupting_one_run_says_so(call, asked, monkeypatch) -> None:
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Table, "rewrite_data_files", stop)
    code, _, err = call("rewrite-data-files", "ns.t")
    assert (code, err.startswith("rowlake: stopped")) == (130, True)


# --- for real


@pytest.fixture
def warehouse(tmp_path) -> str:
    with make_lake(tmp_path / "lake") as lake:
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", SALES)
        for number in range(6):
            table.append(sales(4, number * 4))
    return str(tmp_path / "lake")


def test_health_optimize_and_health_again(call, warehouse) -> None:
    place = ["--warehouse", warehouse]
    code, out, err = call("health", "ns.t", *place)
    assert (code, err) == (0, "")
    assert out.startswith("ns.t: act (1 act")
    assert "run: rowlake rewrite-data-files ns.t" in out
    _, out, _ = call("health", "ns.t", *place, "-o", "json")
    (told,) = json.loads(out)
    assert (told["verdict"], told["data_files"]) == ("act", 6)
    _, out, _ = call("health", "ns.t", *place, "-o", "csv")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0][:4] == ["name", "value", "shown", "verdict"]
    assert rows[1][3] == "act"
    _, out, _ = call("optimize", "ns.t", *place, "--dry-run", "-o", "json")
    (dry,) = json.loads(out)
    assert [s["state"] for s in dry["steps"] if s["verb"] == "rewrite_data_files"] == ["planned"]
    code, out, _ = call("optimize", "ns.t", *place, "-q")
    assert code == 0
    assert "6 data files" in out
    _, out, _ = call("health", "ns.t", *place)
    assert out.startswith("ns.t: ok")


def test_rollback(call, warehouse) -> None:
    place = ["--warehouse", warehouse]
    with make_lake(warehouse) as lake:
        snapshots = lake.table("ns.t").snapshots()
    code, out, _ = call("rollback", "ns.t", "--snapshot-id", str(snapshots[0].snapshot_id), *place)
    assert code == 0
    assert out.splitlines() == [
        f"previous snapshot id  {snapshots[-1].snapshot_id}",
        f"current snapshot id   {snapshots[0].snapshot_id}",
    ]
    with make_lake(warehouse) as lake:
        assert lake.table("ns.t").arrow().num_rows == 4


def test_commands_that_are_advised_exist() -> None:
    known = {command.name or command.callback.__name__ for command in cli.app.registered_commands}
    known = {name.replace("_", "-") for name in known}
    assert set(COMMANDS.values()) <= known
