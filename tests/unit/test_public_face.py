"""`rowlake` itself: what it offers, and what importing it costs."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

import rowlake
from tests.lakes import SALES, make_lake, sales

HEAVY = ("pyspark", "pyiceberg", "pandas", "pyarrow", "numpy", "sqlalchemy", "datafusion", "rich")


LOOKS = ["tables", "describe ns.t", "history ns.t", "snapshots ns.t", "files ns.t"]
# What takes long to load, and what a look at a table has no need of.
NOT_FOR_LOOKS = {
    *("pyspark", "pandas", "sqlalchemy", "datafusion", "rich", "obstore", "requests"),
    *("pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet"),
    *(f"rowlake.{room}" for room in ("sql", "sqltext", "conditions", "query", "dml")),
    *(
        f"rowlake.{room}"
        for room in ("rowlevel", "stream", "verbs", "commit", "plan", "scan", "write")
    ),
}
# Manifests are read by more of rowlake than metadata files are.
NOT_FOR_FILES = {"pyspark", "pandas", "sqlalchemy", "datafusion", "rich", "requests"}


def loaded_after(code: str) -> set[str]:
    """Return all modules that a new process has loaded after some code."""
    text = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def modules_after(code: str) -> set[str]:
    """Return the top-level modules that a new process has loaded after some code."""
    return {name.partition(".")[0] for name in loaded_after(code)}


def test_names_are_sorted_and_there() -> None:
    assert rowlake.__all__ == sorted(rowlake.__all__)
    assert len(set(rowlake.__all__)) == len(rowlake.__all__)
    for name in rowlake.__all__:
        assert getattr(rowlake, name).__name__ == name


def test_nothing_else_is_public() -> None:
    offered = {name for name in vars(importlib.import_module("rowlake")) if name[0] != "_"}
    modules = {name for name in offered if isinstance(getattr(rowlake, name), type(rowlake))}
    extra = offered - set(rowlake.__all__) - modules
    assert extra <= {"TYPE_CHECKING", "Any", "annotations"}
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = rowlake.nope


def test_star_import_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from rowlake import *", names)
    assert set(names) - {"__builtins__"} == set(rowlake.__all__)


def test_every_error_that_users_may_catch_is_public() -> None:
    from rowlake import errors

    kinds = {name for name in vars(errors) if name.endswith("Error")}
    assert kinds - set(rowlake.__all__) == {"MissingFileError"}


def test_importing_rowlake_loads_nothing_heavy() -> None:
    assert modules_after("import rowlake").isdisjoint(HEAVY)


def test_opening_a_lake_and_looking_at_metadata_loads_no_spark(tmp_path) -> None:
    code = f"import rowlake\nwith rowlake.connect({str(tmp_path)!r}) as lake: lake.tables()"
    assert "pyspark" not in modules_after(code)


@pytest.mark.parametrize("command", LOOKS)
def test_looks_from_the_command_line_load_what_they_need(tmp_path, command) -> None:
    with make_lake(tmp_path) as lake:
        lake.create_namespace("ns")
        lake.create_table("ns.t", SALES).append(sales(3))
    code = (
        "import sys\nfrom contextlib import suppress\nfrom rowlake.cli import app\n"
        f"sys.argv = ['rowlake', *{command.split()!r}, '--warehouse', {str(tmp_path)!r}]\n"
        "with suppress(SystemExit): app.main()"
    )
    loaded = loaded_after(code)
    assert "pyiceberg.table" in loaded
    assert loaded & (NOT_FOR_FILES if "files" in command else NOT_FOR_LOOKS) == set()


def test_rows_are_deleted_without_loading_spark_or_statements(tmp_path) -> None:
    with make_lake(tmp_path) as lake:
        lake.create_namespace("ns")
        lake.create_table("ns.t", SALES).append(sales(3))
    code = (
        f"import rowlake\nwith rowlake.connect({str(tmp_path)!r}) as lake:\n"
        "    assert lake.table('ns.t').delete('ns.t.id = 1').rows_deleted == 1"
    )
    assert loaded_after(code) & {"pyspark", "rowlake.sql"} == set()


def test_errors_are_caught_without_loading_the_rest() -> None:
    assert modules_after("from rowlake import CommitConflictError").isdisjoint(HEAVY)
