"""Programs that cases run in an interpreter of their own; kept light, since workers import it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 600


def run_child(program: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Run a program of this folder and return the JSON object on its last line."""
    done = subprocess.run(
        [sys.executable, "-m", f"bench.children.{program}", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
