"""Environments of their own for what must not meet the project's packages.

Created with uv on first use, under the cache; the stamp names what they hold, so that a change of
versions recreates them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = {
    "deltalake": ("deltalake==1.6.6", "pyarrow==26.0.1"),
    "plots": ("matplotlib==3.11.2",),
}
ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 600


def interpreter(name: str, cache: Path) -> Path:
    """Return the Python of an environment, making it when the cache has none."""
    folder = cache / "venvs" / name
    python, stamp = folder / "bin" / "python", folder / "packages.txt"
    wanted = "\n".join(PACKAGES[name])
    if not (stamp.exists() and stamp.read_text() == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        uv = Path(sys.executable).parent / "uv"
        _run(str(uv), "venv", "-q", "--python", sys.executable, str(folder))
        _run(str(uv), "pip", "install", "-q", "--python", str(python), *PACKAGES[name])
        stamp.write_text(wanted)
    return python


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-300:]}")


def run_script(
    name: str, cache: Path, script: Path, *arguments: str, timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """Run a script in an environment and return the JSON object on its last line."""
    done = subprocess.run(
        [str(interpreter(name, cache)), str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
