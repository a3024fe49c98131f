"""Which share of a long list of cases a run takes: another one with every commit."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any


@cache
def turn() -> int:
    """Return a number that HEAD decides: the same for every run of one commit.

    `ROWLAKE_TURN` overrides it, to repeat a run of another commit. Outside of a repository it is 0.
    """
    given = os.environ.get("ROWLAKE_TURN")
    if given:
        return int(given)
    command = ["git", "rev-parse", "HEAD"]
    here = Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(done.stdout.strip()[:8], 16)


def in_turn(cases: list[Any], parts: int, variable: str) -> list[Any]:
    """Return every `parts`-th case, others with every commit; all where the variable says `all`."""
    if os.environ.get(variable) == "all":
        return cases
    first = turn() % parts
    return cases[first::parts]
