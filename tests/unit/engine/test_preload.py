from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from rowlake.engine.preload import use_installed_pyspark

PACKAGE = Path(pyspark.__file__).parent
ARCHIVE = str(PACKAGE / "python" / "lib" / "pyspark.zip")


def test_the_archive_inside_the_installed_pyspark_is_not_needed():
    path = [ARCHIVE, "/other/py4j-src.zip", str(PACKAGE.parent)]
    use_installed_pyspark(path)
    assert path == ["/other/py4j-src.zip", str(PACKAGE.parent)]


@pytest.mark.parametrize(
    "path",
    [
        [ARCHIVE],
        ["/opt/spark/python/lib/pyspark.zip", str(PACKAGE.parent)],
        ["pyspark.zip", str(PACKAGE.parent)],
        [str(PACKAGE.parent), ""],
    ],
    ids=["not installed", "of another Spark", "relative", "none"],
)
def test_any_other_archive_is_used(path):
    before = list(path)
    use_installed_pyspark(path)
    assert path == before


def test_workers_are_forked_with_the_modules_of_tasks():
    code = (
        "import sys, threading; from rowlake.engine.preload import preload; preload()\n"
        "wanted = {'pandas', 'pyarrow.parquet', 'rowlake.engine.worker'}\n"
        "print(wanted <= set(sys.modules), 'pyspark' in sys.modules, threading.active_count())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False", "1"]
