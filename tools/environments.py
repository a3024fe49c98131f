"""Environments of their own for tests that need packages which the development one must not have.

Each is a venv under `.cache` with pinned packages of its own, beside everything that `.venv` has.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def environment(name: str, packages: list[str], *, beside: bool = True) -> Path:
    """Return the interpreter of an environment with these packages; made where there is none.

    With `beside`, it also finds the packages of the environment that runs this.
    """
    home = ROOT / ".cache" / name
    python = home / "bin" / "python"
    ready = home / hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16]
    if ready.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    uv = Path(sys.executable).parent / "uv"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, home], check=True)
    subprocess.run([uv, "pip", "install", "-q", "--python", python, *packages], check=True)
    if beside:
        (own,) = home.glob("lib/python*/site-packages")
        folder = sysconfig.get_path("purelib")
        (own / "rowlake-development.pth").write_text(f"import site; site.addsitedir({folder!r})\n")
    ready.touch()
    return python
