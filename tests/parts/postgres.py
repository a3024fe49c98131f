"""A PostgreSQL server of one's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.parts.process import LOOPBACK, free_port
from tests.parts.require import skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = "postgres"


@contextmanager
def postgres(*settings: str) -> Iterator[str]:
    """Yield the SQLAlchemy address of an empty database; settings are like `wal_level=logical`."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="rowlake-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER)  # the server refuses to run as root
    data, port = folder / "data", free_port()
    try:
        _run(programs / "initdb", "-D", data, "-A", "trust", "-U", USER, "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses={LOOPBACK} -c fsync=off"
        options += "".join(f" -c {setting}" for setting in settings)
        _run(programs / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield f"postgresql+psycopg2://{USER}@{LOOPBACK}:{port}/postgres"
        finally:
            _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = _installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "-q", "postgresql"]
        subprocess.run(install, env=environment, capture_output=True, timeout=280, check=False)
        found = _installed()
    return found or skip_or_fail("PostgreSQL is not installed")


def _installed() -> Path | None:
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return debian[-1].parent if debian else None


def _run(program: Path, *arguments: object) -> None:
    command = [str(program), *map(str, arguments)]
    user = USER if os.geteuid() == 0 else None
    done = subprocess.run(
        command,
        user=user,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=60,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        skip_or_fail(f"{program.name} failed: {done.stderr.strip()[-300:]}")
