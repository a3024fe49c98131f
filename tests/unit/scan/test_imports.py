"""What a worker has to import to run the kernel."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pandas", "pyiceberg", "datafusion", "sqlglot", "pyspark")


def test_the_kernel_imports_nothing_heavy() -> None:
    code = (
        "import sys, rowlake.scan, rowlake.scan.aggregate; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
