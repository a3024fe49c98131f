"""Build the site of docs/ into build/site with mkdocs, in an environment of its own.

A page that links to nothing, or that is in no navigation, fails the build (strict mode).
"""

from __future__ import annotations

import os
import subprocess
import sys

from environments import ROOT, environment

PACKAGES = ["mkdocs==1.6.1", "mkdocs-material==9.8.1", "mkdocstrings[python]==1.0.8"]


def main() -> None:
    python = environment("docs", PACKAGES, beside=False)
    command = [python, "-m", "mkdocs", "build", "-q", *sys.argv[1:]]
    given = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    sys.exit(subprocess.run(command, cwd=ROOT, env=given).returncode)


if __name__ == "__main__":
    main()
