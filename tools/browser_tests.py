"""Run the tests of `rowlake ui` in Chromium, in an environment of their own.

Comes in: arguments for pytest; `--screenshots` refills docs/images. Goes out: an exit code. The
environment (`.cache/browser`) has Playwright beside everything that `.venv` has. A Chromium of the
system is used where there is one (or ROWLAKE_CHROMIUM); else Playwright downloads its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
HOME = ROOT / ".cache" / "browser"
PLAYWRIGHT = "playwright==1.65.2"


def main() -> None:
    arguments = [one for one in sys.argv[1:] if one != "--screenshots"]
    python = environment()
    given = {**os.environ, "ROWLAKE_BROWSER": "1"}
    if "--screenshots" in sys.argv:
        images = ROOT / "docs" / "images"
        images.mkdir(exist_ok=True)
        given["ROWLAKE_SCREENSHOTS"] = str(images)
    tests = [] if any(one.startswith("tests") for one in arguments) else ["tests/browser"]
    command = [str(python), str(ROOT / "tools" / "run_tests.py"), *arguments, *tests]
    sys.exit(subprocess.run(command, cwd=ROOT, env=given).returncode)


def environment() -> Path:
    """Return the interpreter of an environment that has Playwright and a Chromium."""
    python = HOME / "bin" / "python"
    ready = HOME / PLAYWRIGHT
    if not ready.exists():
        shutil.rmtree(HOME, ignore_errors=True)
        venv.create(HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PLAYWRIGHT], check=True)
        own = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        )
        beside = Path(own.stdout.strip()) / "rowlake-development.pth"
        folder = sysconfig.get_path("purelib")
        beside.write_text(f"import site; site.addsitedir({folder!r})\n")
        if not has_chromium():
            install_chromium(python)
        ready.touch()
    return python


def install_chromium(python: Path) -> None:
    """Install Debian's package where that is allowed, else the build that Playwright downloads."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=False)
        packages = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
        subprocess.run(packages, check=False)
    if not has_chromium():
        subprocess.run([python, "-m", "playwright", "install", "chromium"], check=True)


def has_chromium() -> bool:
    from tests.browser.conftest import CHROMIUM

    return bool(os.environ.get("ROWLAKE_CHROMIUM") or any(map(shutil.which, CHROMIUM)))


if __name__ == "__main__":
    main()
