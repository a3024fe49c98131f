"""`rowlake doctor`: what is missing is named, with what to do."""

from __future__ import annotations

import sys

import pytest

from rowlake.cli import doctor
from rowlake.engine.failures import translated
from rowlake.errors import EngineError


def named(checks, name):
    return next(one for one in checks if one.name == name)


def test_a_machine_that_has_all_is_well(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    checks = doctor.examine(str(tmp_path / "lake"))
    assert {one.verdict for one in checks} == {"ok"}
    assert doctor.worst(checks) == 0
    assert not (tmp_path / "lake").exists()


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", {"no-such-package": "1.0", "pyarrow": "9999"})
    checks = doctor.examine(None)
    assert named(checks, "no-such-package").fix == "pip install 'no-such-package>=1.0'"
    assert named(checks, "pyarrow").verdict == "fail"
    assert doctor.worst(checks) == 1


def test_workers_of_another_python_are_told_with_both_paths(tmp_path):
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    found = doctor.worker_python({"PYSPARK_PYTHON": str(other)}, sys.executable)
    assert found.verdict == "warn"
    assert str(other) in found.found
    assert sys.executable in found.found
    assert found.fix == f"export PYSPARK_PYTHON={sys.executable}"
    missing = doctor.worker_python({"PYSPARK_PYTHON": "/no/such/python"}, sys.executable)
    assert missing.verdict == "fail"
    assert doctor.worker_python({"PYSPARK_PYTHON": sys.executable}, sys.executable).verdict == "ok"


def test_a_file_in_place_of_the_warehouse_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    found = named(doctor.examine(str(tmp_path / "file" / "lake")), "warehouse")
    assert found.verdict == "fail"
    assert "is a file" in found.found


def test_the_error_of_a_job_names_both_pythons_and_the_variable(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3.9")
    cause = Exception("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9")
    found = translated(cause, "writing shop.sales")
    assert isinstance(found, EngineError)
    assert "/usr/bin/python3.9" in str(found)
    assert f"PYSPARK_PYTHON={sys.executable}" in str(found)


@pytest.mark.parametrize("verdict", ["ok", "fail"])
def test_checks_are_shown_as_rows(verdict):
    rows = doctor.as_rows([doctor.Check("Java", verdict, "17")])
    assert rows.values == [("Java", verdict, "17", "")]
