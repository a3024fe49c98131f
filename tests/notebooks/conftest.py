"""Notebooks need nbclient and a kernel: `tools/notebook_tests.py` has an environment for them.

Without them there are no tests here, unless ROWLAKE_NOTEBOOKS says that there must be.
"""

from __future__ import annotations

import importlib.util
import os

if importlib.util.find_spec("nbclient") is None and not os.environ.get("ROWLAKE_NOTEBOOKS"):
    collect_ignore_glob = ["test_*.py"]
