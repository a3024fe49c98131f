"""Jars of the peers that tests run against, fetched once into the project's cache folder.

Maven fetches where it is installed, else Spark's own package resolver does. Both use the
registry that the machine is configured for.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.parts.require import skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "jars"

SPARK_RUNTIME = ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0")
REST_FIXTURE = ("org.apache.iceberg", "iceberg-open-api", "1.10.1")


def fetch_jar(group: str, artifact: str, version: str, classifier: str | None = None) -> Path:
    """Return the jar without its dependencies, fetching it when it is not in the cache."""
    ending = f"-{classifier}" if classifier else ""
    target = CACHE / f"{artifact}-{version}{ending}.jar"
    if target.exists():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(), tempfile.TemporaryDirectory(dir=CACHE) as folder:
        if not target.exists():
            _fetch(group, artifact, version, classifier, Path(folder))
            found = sorted(Path(folder).rglob(f"*{artifact}-{version}{ending}.jar"))
            if not found:
                skip_or_fail(f"the resolver gave no jar for {group}:{artifact}:{version}")
            found[0].replace(target)
    return target


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(group: str, artifact: str, version: str, classifier: str | None, folder: Path) -> None:
    maven = shutil.which("mvn")
    command = (
        _maven_command(maven, group, artifact, version, classifier, folder)
        if maven
        else _spark_command(group, artifact, version, classifier, folder)
    )
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        tail = (done.stdout + done.stderr).strip().splitlines()[-3:]
        skip_or_fail(f"cannot fetch {group}:{artifact}:{version}: {' / '.join(tail)}")


def _maven_command(
    maven: str, group: str, artifact: str, version: str, classifier: str | None, folder: Path
) -> list[str]:
    coordinates = f"{group}:{artifact}:{version}:jar" + (f":{classifier}" if classifier else "")
    return [
        maven,
        "-q",
        "-B",
        "dependency:copy",
        f"-Dartifact={coordinates}",
        f"-DoutputDirectory={folder}",
    ]


def _spark_command(
    group: str, artifact: str, version: str, classifier: str | None, folder: Path
) -> list[str]:
    if classifier:
        skip_or_fail(f"a jar with the classifier {classifier} needs Maven, which is not installed")
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    nothing = folder / "nothing.py"
    nothing.write_text("")
    return [
        str(home / "bin" / "spark-submit"),
        "--packages",
        f"{group}:{artifact}:{version}",
        "--conf",
        f"spark.jars.ivy={folder}",
        # A local Maven repository that has a POM without its jar would make Ivy give up.
        "--driver-java-options",
        f"-Duser.home={folder}",
        str(nothing),
    ]
