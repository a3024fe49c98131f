"""Run the notebooks of docs/notebooks and the tests of the magics, in an environment of their own.

Comes in: arguments for pytest; `--screenshot` refills docs/images/notebook.png (needs Chromium).
Goes out: an exit code. The environment is `.cache/notebooks`.
"""

from __future__ import annotations

import os
import subprocess
import sys

from environments import ROOT, environment

PACKAGES = ["nbclient==0.11.0", "ipykernel==7.4.0", "nbconvert==7.17.2"]


def main() -> None:
    python = environment("notebooks", PACKAGES)
    given = {**os.environ, "ROWLAKE_NOTEBOOKS": "1"}
    if "--screenshot" in sys.argv:
        given["ROWLAKE_SCREENSHOTS"] = str(ROOT / "docs" / "images")
    arguments = [one for one in sys.argv[1:] if one != "--screenshot"]
    tests = [] if any(one.startswith("tests") for one in arguments) else ["tests/notebooks"]
    command = [python, ROOT / "tools" / "run_tests.py", *arguments, *tests]
    sys.exit(subprocess.run(command, cwd=ROOT, env=given).returncode)


if __name__ == "__main__":
    main()
