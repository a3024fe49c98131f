"""The same checks on a cluster of processes, through Spark Connect and on the newest PySpark.

Each in a process of its own, since a process has one JVM.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowlake.engine.java import java_home
from tests.parts.require import require_program, skip_or_fail
from tests.spark.other_session_suite import JAVA_ROWS, JAVA_TABLES
from tests.spark_session import INTERPRETED, ROOT, worker_environment

SUITE = ROOT / "tests" / "spark" / "other_session_suite.py"
NEWEST_PYSPARK = "4.3.0"
pytestmark = pytest.mark.timeout(600)


def environment(python: str = sys.executable) -> dict[str, str]:
    home = java_home()
    settings = {"PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1", **worker_environment()}
    return {**os.environ, **settings, **({"JAVA_HOME": home} if home else {})}


@pytest.fixture(scope="module")
def java_tables(spark, java_catalog, java_warehouse) -> str:
    """The folder of a Hadoop catalog with tables whose rows Iceberg's Java library deleted."""
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {java_catalog}.sessions")
    for version, name in JAVA_TABLES.items():
        table = f"{java_catalog}.{name}"
        spark.sql(
            f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ('format-version' = '{version}', "
            "'write.delete.mode' = 'merge-on-read') "
            f"AS SELECT id, concat('row ', id) AS s FROM range({JAVA_ROWS})"
        )
        spark.sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    return str(java_warehouse)


def run_suite(kind: str, address: str, *folders: object, python: str = sys.executable) -> str:
    answer = subprocess.run(
        [python, str(SUITE), kind, address, *map(str, folders)],
        capture_output=True,
        text=True,
        env=environment(python),
        cwd=ROOT,
        timeout=500,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr[-6000:]
    return answer.stdout


def test_a_cluster_of_processes(tmp_path, java_tables):
    told = run_suite("master", "local-cluster[2,1,2048]", tmp_path / "lake", java_tables)
    assert "2 slots" in told


def test_spark_connect(tmp_path, java_tables):
    with connect_server(tmp_path) as address:
        run_suite("remote", address, tmp_path / "lake", java_tables)


def test_the_newest_pyspark(tmp_path, java_tables):
    folders = (tmp_path / "lake", java_tables)
    told = run_suite("master", "local[2]", *folders, python=newest_python())
    assert f"Spark {NEWEST_PYSPARK}" in told


@contextmanager
def connect_server(folder: Path):
    """Start a Spark Connect server on a free port of the loopback interface."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        **INTERPRETED,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    flags = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *flags]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = folder / "server.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            stdout=output,
            stderr=output,
            env=environment(),
            cwd=folder,
        )
    try:
        wait_for_port(port, server, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.3)
    pytest.fail(f"Spark Connect did not start:\n{log.read_text()[-4000:]}")


def newest_python() -> str:
    """Return a Python with the newest PySpark in front of this environment's packages."""
    folder = ROOT / ".cache" / "venvs" / f"pyspark-{NEWEST_PYSPARK}-{sys.version_info[1]}"
    python, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        beside = Path(sys.executable).with_name("uv")
        uv = str(beside) if beside.exists() else require_program("uv")
        install(uv, "venv", "-q", "--python", sys.executable, str(folder))
        wanted = [f"pyspark=={NEWEST_PYSPARK}"]
        install(uv, "pip", "install", "-q", "--python", str(python), *wanted)
        own = sysconfig.get_path("purelib")
        site = folder / Path(own).relative_to(sys.prefix)
        # A .pth file of ours: packages that are not in this folder come from the environment.
        (site / "beneath.pth").write_text(f"import site; site.addsitedir({own!r})\n")
        ready.touch()
    return str(python)


def install(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        skip_or_fail(f"cannot install PySpark {NEWEST_PYSPARK}: {done.stderr.strip()[-300:]}")
