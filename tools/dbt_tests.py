"""Run the tests of dbt-rowlake: the example project, built and changed by dbt itself.

Comes in: arguments for pytest. Goes out: an exit code. The environment is `.cache/dbt`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from environments import ROOT, environment

PACKAGES = [
    "dbt-core==1.11.16",
    "dbt-adapters==1.24.5",
    "dbt-common==1.39.0",
    "dbt-spark==1.11.0",
    "dbt-tests-adapter==1.20.0",
]
PROJECT = ROOT / "dbt-rowlake"


def main() -> None:
    python = environment("dbt", PACKAGES)
    uv = Path(sys.executable).parent / "uv"
    install = [uv, "pip", "install", "-q", "--python", python, "--no-deps", "--reinstall"]
    subprocess.run([*install, PROJECT], check=True)
    given = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    command = [python, ROOT / "tools" / "run_tests.py", "--rootdir", PROJECT, "-c", "/dev/null"]
    tests = [] if any("test_" in one for one in sys.argv[1:]) else [str(PROJECT / "tests")]
    sys.exit(subprocess.run([*command, *sys.argv[1:], *tests], cwd=ROOT, env=given).returncode)


if __name__ == "__main__":
    main()
