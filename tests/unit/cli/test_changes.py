"""`rowlake changes`: a span at once, and a tail that Ctrl-C ends."""

from __future__ import annotations

import json
import sys

import pytest

from rowlake.cli import app as cli
from rowlake.cli.changes import Follower, keep_following
from rowlake.cli.output import Output
from rowlake.errors import StorageError
from tests.lakes import SALES, make_lake, sales


@pytest.fixture
def table(tmp_path):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("ns")
        table = lake.create_table("ns.t", SALES)
        table.append(sales(2))
        table.delete("id = 1")
        yield table


@pytest.fixture
def call(monkeypatch, capfdbinary, tmp_path, table):
    def run(*arguments: str) -> tuple[int, str, str]:
        command = ["rowlake", "changes", "ns.t", "--warehouse", str(tmp_path), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as raised:
            cli.main()
        out, err = capfdbinary.readouterr()
        return int(raised.value.code or 0), out.decode(), err.decode()

    return run


def test_a_span_is_shown(call, table):
    code, out, _ = call("--output", "json")
    kinds = [(row["id"], row["_change_type"]) for row in json.loads(out)]
    assert (code, kinds) == (0, [(0, "insert"), (1, "insert"), (1, "delete")])
    first, second = (each.snapshot_id for each in table.snapshots())
    code, out, _ = call("--start", str(first), "--end", str(second), "-o", "csv")
    assert (code, len(out.splitlines()), "delete" in out) == (0, 2, True)
    code, out, _ = call("--net", "-o", "json", "--key", "id")
    assert [row["id"] for row in json.loads(out)] == [0]
    assert call("--start", "2001-01-01")[0] == 0


def test_wrong_usage_is_refused(call):
    assert call("--start", "17")[0] == 2
    assert call("--follow", "--net")[0] == 2
    assert call("--start", "some time")[0] == 2


def follow(table, output, rounds, first, capsys, **asked):
    """Follow a table; each round's function runs before the next look, then Ctrl-C comes."""
    steps = iter(rounds)

    def sleep(_seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    given = {"keys": None, "net": False, "branch": "main", **asked}
    keep_following(Follower(table, given, first).poll, 1.0, output, sleep)
    return capsys.readouterr()


def test_following_prints_each_change_once(table, capsys):
    head = {"start": table.snapshots()[-1].snapshot_id}
    rounds = [
        lambda: table.append(sales(1, first=5)),
        lambda: None,
        lambda: table.rewrite_data_files(options={"rewrite-all": "true"}),
        lambda: table.append(sales(1, first=6)),
    ]
    out, err = follow(table, Output.JSON, rounds, head, capsys)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [5, 6]
    assert err == "rowlake: stopped following\n"


@pytest.mark.parametrize("output", [Output.TABLE, Output.CSV])
def test_other_forms_have_a_line_each(table, capsys, output):
    rounds = [lambda: table.append(sales(1, first=5)), lambda: table.append(sales(1, first=6))]
    out, _ = follow(table, output, rounds, {}, capsys)
    lines = out.splitlines()
    assert len(lines) == 5 + (output is Output.CSV)
    assert "delete" in lines[2 + (output is Output.CSV)]


def test_failures_that_may_pass_do_not_end_it(table, capsys):
    answers = iter([StorageError("s3://b/f", "out of reach"), table.changes_arrow()])

    def poll():
        found = next(answers, KeyboardInterrupt())
        if isinstance(found, BaseException):
            raise found
        return found

    pauses: list[float] = []
    keep_following(poll, 1.0, Output.JSON, pauses.append)
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert "will try again" in err and "out of reach" in err
    assert pauses == [2.0, 1.0]
