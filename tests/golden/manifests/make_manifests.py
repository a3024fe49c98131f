"""Makes the golden manifests anew with Iceberg's Java library.

Run it as `python -m tests.golden.manifests.make_manifests`.
Every table becomes a folder here: its manifests, manifest lists, newest metadata, and what Java's
own reader sees in them (`seen_by_java.jsonl`).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pyspark

from tests.parts.jars import SPARK_RUNTIME, fetch_jar

HERE = Path(__file__).parent


def run_java(*arguments: str) -> None:
    hadoop = Path(pyspark.__file__).parent / "jars"
    classpath = f"{fetch_jar(*SPARK_RUNTIME)}:{hadoop}/*"
    program = HERE / "MakeManifests.java"
    subprocess.run(["java", "-cp", classpath, str(program), *arguments], check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_java("golden", folder)
        for table in Path(folder).iterdir():
            target = HERE / table.name
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            newest = max(table.glob("metadata/v*.metadata.json"), key=_version)
            shutil.copy(newest, target / "metadata.json")
            shutil.copy(table / "seen_by_java.jsonl", target)
            for path in table.glob("metadata/*.avro"):
                shutil.copy(path, target)


def _version(path: Path) -> int:
    return int(path.name.split(".")[0][1:])


if __name__ == "__main__":
    main()
