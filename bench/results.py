"""The results of a run: one JSON file with all measurements.

Layout: `run` (when, options, machine, versions), `configurations` by system, `cases` (title,
measurements with all samples and medians, truths, failures), `targets` (outcome and ratio).
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil  # type: ignore[import-untyped]

from bench.session import LOCAL

if TYPE_CHECKING:
    from bench.options import Options
    from bench.rounds import Outcome
    from bench.targets import Verdict

FOLDER = Path(__file__).resolve().parent / "results"
PACKAGES = ("rowlake", "pyspark", "pyarrow", "pyiceberg", "datafusion", "numpy")


def machine() -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "load": os.getloadavg()[0],
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def outcome_json(
    outcome: Outcome, title: str, ours: str = "rowlake", *, master: str = LOCAL
) -> dict[str, Any]:
    return {
        "case": outcome.case,
        "title": title,
        "ours": ours,
        "master": master,
        "measurements": [found.as_json() for found in outcome.measurements],
        "truths": outcome.truths,
        "failures": outcome.failures,
        "notes": outcome.notes,
    }


def save(
    options: Options,
    cases: list[dict[str, Any]],
    verdicts: list[Verdict],
    configurations: dict[str, dict[str, str]],
    folder: Path | None = None,
) -> Path:
    """Write the results of a run and return the file."""
    now = datetime.now(timezone.utc)
    content = {
        "run": {
            "finished": now.isoformat(timespec="seconds"),
            "options": {
                **asdict(options),
                "read_rows": options.total_rows,
                "row_level_rows": options.row_level_rows,
                "write_rows": options.write_rows,
            },
            "machine": machine(),
            "versions": versions(),
        },
        "configurations": configurations,
        "cases": cases,
        "targets": [verdict.as_json() for verdict in verdicts],
    }
    folder = folder or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(content, indent=1))
    return path
