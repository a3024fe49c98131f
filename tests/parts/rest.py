"""A REST catalog of one's own: the server that Iceberg tests its clients with."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.parts.jars import CACHE, REST_FIXTURE, fetch_jar
from tests.parts.process import LOOPBACK, free_port, server
from tests.parts.require import require_program, skip_or_fail

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parent / "java" / "RestCatalogMain.java"


@contextmanager
def rest_catalog(folder: Path, **properties: str) -> Iterator[str]:
    """Yield the address of a catalog whose tables are below `folder`/warehouse."""
    java = require_program("java")
    jar = fetch_jar(*REST_FIXTURE)
    classes = _compiled(jar)
    port = free_port()
    command = [
        java,
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        f"{classes}:{jar}",
        SOURCE.stem,
        str(port),
        f"jdbc:sqlite:file:{folder}/rest.db",
        str(folder / "warehouse"),
        *(f"{name}={value}" for name, value in properties.items()),
    ]
    with server(command, port, folder / "rest.log", seconds=90):
        yield f"http://{LOOPBACK}:{port}"


def _compiled(jar: Path) -> Path:
    classes = CACHE / "classes"
    made = classes / f"{SOURCE.stem}.class"
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        javac = require_program("javac")
        done = subprocess.run(
            [javac, "-cp", str(jar), "-d", str(classes), str(SOURCE)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0:
            skip_or_fail(f"{SOURCE.name} does not compile: {done.stderr[-500:]}")
    return classes
