"""Plots and the HTML report of a run, next to its results file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bench import html
from bench.environments import run_script

if TYPE_CHECKING:
    from rich.console import Console

SCRIPT = Path(__file__).resolve().parent / "children" / "draw_plots.py"
REPORT = "report.html"
PLOTS = "plots"


def publish(results: Path, cache: Path, console: Console) -> Path:
    """Draw the plots and write the report; without plots if matplotlib cannot be installed."""
    folder = results.parent / PLOTS
    # Plots of an earlier run would pass for this one's.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        captions = run_script("plots", cache, SCRIPT, str(results), str(folder))
    except (RuntimeError, OSError) as error:
        console.print(f"[yellow]no plots:[/] {error}", highlight=False)
        captions = {}
    target = results.parent / REPORT
    html.write_report(results, folder, captions, target)
    return target
