"""The script by which Spark starts Python: the same interpreter, but rowlake's daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rowlake.engine import launcher
from rowlake.engine.launcher import VARIABLE, launching_quietly


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ROWLAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, sys.executable)


def started(*arguments: str) -> str:
    with launching_quietly():
        command = [os.environ[VARIABLE], *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_interpreter_is_the_drivers():
    assert started("-c", "import sys; print(sys.executable, sys.argv[1:])", "a b", "c'd") == (
        f"{sys.executable} ['a b', \"c'd\"]"
    )


def test_sparks_daemon_becomes_rowlakes(tmp_path, monkeypatch):
    fake = tmp_path / "fake" / "rowlake" / "engine"
    fake.mkdir(parents=True)
    for package in (fake.parent, fake):
        (package / "__init__.py").touch()
    (fake / "daemon.py").write_text("import sys; print('rowlake', sys.argv[1:])")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))
    worker = "pyspark.sql.worker.lookup_data_sources"
    assert started("-m", "pyspark.daemon", worker) == f"rowlake ['{worker}']"


def test_the_variable_is_as_before_afterwards():
    with pytest.raises(RuntimeError), launching_quietly():
        assert Path(os.environ[VARIABLE]).parent == Path(os.environ["ROWLAKE_CACHE"])
        raise RuntimeError
    assert os.environ[VARIABLE] == sys.executable


def test_another_python_of_the_users_is_started_as_it_is(monkeypatch):
    monkeypatch.setenv(VARIABLE, "/opt/python")
    with launching_quietly():
        assert os.environ[VARIABLE] == "/opt/python"


def test_a_cache_that_cannot_be_written_leaves_the_interpreter(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROWLAKE_CACHE", str(tmp_path / "file" / "below"))
    with launching_quietly():
        assert os.environ[VARIABLE] == sys.executable


def test_a_script_that_somebody_changed_is_written_again():
    with launching_quietly():
        path = Path(os.environ[VARIABLE])
    path.write_text("#!/bin/sh\necho other\n")
    assert started("-c", "print('right')") == "right"
    assert launcher._launcher() == str(path)
