"""`rowlake doctor`: what a machine lacks to run rowlake, and how to mend it.

Each check returns one line: `ok`, `warn` (works, but not all of it) or `fail`, and what to do.
Nothing is started or written but a file in the warehouse, which is removed again.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.cli.json_rows import Rows
from rowlake.engine.java import java_home, java_version
from rowlake.errors import RowlakeError
from rowlake.secrets import without_passwords, without_secrets
from rowlake.storage.files import Storage
from rowlake.storage.locations import is_remote
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

OK, WARN, FAIL = "ok", "warn", "fail"
OLDEST_PYTHON = (3, 10)
PACKAGES = {"pyspark": "4.0", "pyiceberg": "0.12", "pyarrow": "22", "pandas": "2"}


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    verdict: str
    found: str
    fix: str = ""


def examine(warehouse: str | None) -> list[Check]:
    """Return all checks, for a warehouse or for the one that would be made here."""
    place = warehouse or "lakehouse"
    return [
        _python(),
        *(_package(name, least) for name, least in PACKAGES.items()),
        _java(),
        worker_python(os.environ, sys.executable),
        _s3(place) if is_remote(place) else _writable(Path(place)),
    ]


def as_rows(checks: list[Check]) -> Rows:
    """Return the checks as rows to show."""
    names = ("check", "verdict", "found", "fix")
    schema = pa.schema([(name, pa.string()) for name in names])
    return Rows(schema, [(one.name, one.verdict, one.found, one.fix) for one in checks])


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("Python", FAIL, found, "Install Python 3.10 or newer.")
    return Check("Python", OK, f"{found} at {sys.executable}; rowlake {__version__}")


def _package(name: str, least: str) -> Check:
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, FAIL, "not installed", f"pip install '{name}>={least}'")
    numbers = [int(part) for part in re.findall(r"\d+", found)[:2]]
    needed = [int(part) for part in least.split(".")]
    if numbers[: len(needed)] < needed:
        return Check(name, FAIL, found, f"pip install --upgrade '{name}>={least}'")
    return Check(name, OK, found)


def _java() -> Check:
    try:
        home = java_home() or os.environ.get("JAVA_HOME", "")
        program = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
        return Check("Java", OK, f"{java_version(program)} at {program}")
    except (RowlakeError, OSError) as error:
        fix = "Install Java 17 or newer and set JAVA_HOME, or: pip install 'rowlake[java]'"
        return Check("Java", FAIL, str(error), fix)


def worker_python(environment: Mapping[str, str], driver: str) -> Check:
    """Return whether Spark's workers would run the driver's Python."""
    named = environment.get("PYSPARK_PYTHON", "")
    path = shutil.which(named) if named else None
    if not named:
        return Check("workers' Python", OK, f"the driver's, {driver}")
    if path is None:
        fix = f"unset PYSPARK_PYTHON, or set it to {driver}"
        return Check("workers' Python", FAIL, f"PYSPARK_PYTHON={named} is not there", fix)
    if Path(path).resolve() == Path(driver).resolve() or Path(path) == Path(driver):
        return Check("workers' Python", OK, path)
    fix = f"export PYSPARK_PYTHON={driver}"
    return Check("workers' Python", WARN, f"PYSPARK_PYTHON={path}, the driver runs {driver}", fix)


def _writable(folder: Path) -> Check:
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        return Check("warehouse", FAIL, f"{there} is a file", "Give a folder: --warehouse FOLDER")
    if not os.access(there, os.W_OK):
        return Check("warehouse", FAIL, f"{there} cannot be written", f"chmod u+w {there}")
    return Check("warehouse", OK, f"{folder.absolute()} can be written")


def _s3(place: str) -> Check:
    """Write, read and remove a small file."""
    shown = without_passwords(place)
    location = f"{place.rstrip('/')}/rowlake-doctor-{uuid.uuid4()}"
    storage = Storage({})
    try:
        _round_trip(storage, location)
    except (RowlakeError, OSError) as error:
        fix = (
            "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (AWS_ENDPOINT_URL for "
            "stores other than AWS), or give them as catalog properties (s3.endpoint, …)."
        )
        first = without_secrets(str(error)).splitlines()[0]
        return Check("warehouse", FAIL, f"{shown}: {first}", fix)
    return Check("warehouse", OK, f"{shown} can be written")


def _round_trip(storage: Storage, location: str) -> None:
    storage.write(location, b"rowlake")
    storage.delete([location])


def worst(checks: list[Check]) -> int:
    """Return the exit code: 1 where something is missing."""
    return int(any(one.verdict == FAIL for one in checks))
