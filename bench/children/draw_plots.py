"""Draws the plots of a results file; runs in an environment with matplotlib alone.

Arguments: results file, folder. Each plot becomes an SVG and a PNG; what was not measured is not
drawn. Answer, on the last line: the names of the plots with their captions.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Ours in blues, Iceberg in reds, Delta in greens, Python libraries and limits in greys and gold.
STYLES: dict[str, tuple[str, str, str]] = {
    "rowlake": ("#0b5fa5", "o", "-"),
    "rowlake-lazy": ("#0b5fa5", "o", "-"),
    "rowlake-eager": ("#4ba3e3", "s", "-"),
    "rowlake-auto": ("#08306b", "D", "-"),
    "rowlake-v2": ("#7b6fd0", "v", "-"),
    "rowlake-equality": ("#19b5c9", "P", "-"),
    "iceberg-java": ("#c0392b", "o", "--"),
    "iceberg-v3": ("#c0392b", "o", "--"),
    "iceberg-mor-v2": ("#e67e22", "v", "--"),
    "iceberg-cow": ("#f1948a", "s", "--"),
    "delta-dv": ("#1e8449", "o", ":"),
    "delta": ("#7dcea0", "s", ":"),
    "delta-rs": ("#b7950b", "X", ":"),
    "pyiceberg": ("#7f8c8d", "^", "-."),
    "pyiceberg-upsert": ("#7f8c8d", "^", "-."),
    "pyarrow-rewrite": ("#333333", "_", "-."),
}
DEFAULT_STYLE = ("#555555", "x", "-")
CASES_OF_ROUNDS = (
    "case1",
    "case2",
    "case2_plain",
    "case2_unpartitioned",
    "case3",
    "case4",
    "delete_one",
)
WRITE_STEPS = ("merge", "delete")
COLUMNS = 2


def style(system: str) -> dict[str, Any]:
    colour, marker, line = STYLES.get(system, DEFAULT_STYLE)
    return {"color": colour, "marker": marker, "linestyle": line, "markersize": 5, "linewidth": 1.6}


def seconds(value: float, _: Any = None) -> str:
    return f"{value * 1000:g} ms" if value < 1 else f"{value:g} s"


def big(value: float, _: Any = None) -> str:
    for unit, size in (("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g}"


def found(results: dict[str, Any], case: str, steps: tuple[str, ...]) -> dict[str, list[float]]:
    """Return the wall seconds of every system's rounds for the first of these steps it has."""
    lines: dict[str, list[float]] = {}
    for one in results["cases"]:
        if one["case"] == case:
            for measured in one["measurements"]:
                if measured["step"] in steps and measured["samples"]:
                    walls = [sample["wall_s"] for sample in measured["samples"]]
                    lines.setdefault(measured["system"], walls)
    return lines


def titles(results: dict[str, Any]) -> dict[str, str]:
    return {one["case"]: one["title"] for one in results["cases"]}


def ordered(systems: Any) -> list[str]:
    known = list(STYLES)
    return sorted(systems, key=lambda name: known.index(name) if name in known else len(known))


def wrapped(text: str, width: int = 64) -> str:
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def per_round(results: dict[str, Any], steps: tuple[str, ...], heading: str) -> Any:
    """Draw one panel per case, wall time over the rounds, and one legend for all."""
    panels = {case: found(results, case, steps) for case in CASES_OF_ROUNDS}
    panels = {case: lines for case, lines in panels.items() if lines}
    if not panels:
        return None
    rows = -(-len(panels) // COLUMNS)
    figure, grid = plt.subplots(
        rows, COLUMNS, figsize=(11, 3.3 * rows + 1.2), squeeze=False, layout="constrained"
    )
    axes = list(grid.flat)
    for axis, (case, lines) in zip(axes, panels.items(), strict=False):
        for system in ordered(lines):
            walls = lines[system]
            axis.plot(range(1, len(walls) + 1), walls, label=system, **style(system))
        axis.set_title(wrapped(titles(results)[case]), fontsize=9.5)
        finish_axis(axis, "round", "wall time")
        rounds = max(len(walls) for walls in lines.values())
        axis.set_xlim(0.7, rounds + 0.3)
        axis.set_xticks(range(1, rounds + 1))
    for axis in axes[len(panels) :]:
        axis.axis("off")
    figure.suptitle(heading, fontsize=13)
    one_legend(figure, axes)
    return figure


def finish_axis(axis: Any, across: str, up: str) -> None:
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(seconds))
    axis.yaxis.set_minor_formatter(NullFormatter())
    low, high = axis.get_ylim()
    if high / low < 4:
        axis.set_ylim(low / 1.5, high * 1.5)
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    axis.grid(visible=True, which="major", alpha=0.35)
    axis.grid(visible=True, which="minor", alpha=0.12)


def one_legend(figure: Any, axes: list[Any]) -> None:
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = ordered(handles)
    figure.legend(
        [handles[name] for name in names],
        names,
        loc="outside lower center",
        ncols=min(6, len(names)),
        frameon=False,
        fontsize=9,
    )


def shares(results: dict[str, Any]) -> Any:
    """Draw the cost of a MERGE against the share of rows that it changes."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for one in results["cases"]:
        if one["case"] != "share":
            continue
        for measured in one["measurements"]:
            verb, _, share = measured["step"].partition(" ")
            if verb == "merge" and measured["samples"]:
                at = float(share.rstrip("%"))
                points = lines.setdefault(measured["system"], [])
                points.append((at, measured["median"]["wall_s"]))
    if not lines:
        return None
    figure, axis = plt.subplots(figsize=(8.5, 5.4), layout="constrained")
    for system in ordered(lines):
        across, up = zip(*sorted(lines[system]), strict=True)
        axis.plot(across, up, label=system, **style(system))
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    finish_axis(axis, "share of the rows that the MERGE changes", "wall time of the MERGE")
    mark_crossing(axis, lines)
    axis.set_title("Cost of a MERGE against the share of rows changed", fontsize=12)
    one_legend(figure, [axis])
    return figure


def mark_crossing(axis: Any, lines: dict[str, list[tuple[float, float]]]) -> None:
    """Mark the crossing by a line, and say it above all that is drawn."""
    share = crossover(lines.get("rowlake-lazy", []), lines.get("rowlake-eager", []))
    if share is None:
        return
    low, high = axis.get_ylim()
    axis.set_ylim(low, high * 1.7)
    first, last = axis.get_xlim()
    beside = -8 if share > math.sqrt(first * last) else 8
    axis.axvline(share, color="#888888", linewidth=1, linestyle=(0, (4, 3)))
    axis.annotate(
        f"rowlake: eager is cheaper\nthan lazy from {share:.2g} % on",
        (share, 1),
        xycoords=axis.get_xaxis_transform(),
        xytext=(beside, -8),
        textcoords="offset points",
        ha="right" if beside < 0 else "left",
        va="top",
        fontsize=9,
    )


def crossover(lazy: list[tuple[float, float]], eager: list[tuple[float, float]]) -> float | None:
    """Return the share where the lazy line first rises above the eager one.

    Between measured points the lines are straight on logarithmic axes, as they are drawn.
    """
    eager_at = dict(eager)
    points = [(at, math.log(wall / eager_at[at])) for at, wall in sorted(lazy) if at in eager_at]
    for (a, before), (b, after) in itertools.pairwise(points):
        if before < 0 <= after:
            return float(a * (b / a) ** (-before / (after - before)))
    return None


def planning(results: dict[str, Any]) -> Any:
    """Draw planning time against the number of files."""
    sizes = {"planning_10k": 10_000, "planning_200k": 200_000, "planning_1m": 1_000_000}
    lines: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for one in results["cases"]:
        for measured in one["measurements"] if one["case"] in sizes else ():
            if measured["samples"] and measured["step"] in ("cold", "warm"):
                key = (measured["system"], measured["step"])
                point = (sizes[one["case"]], measured["median"]["wall_s"])
                lines.setdefault(key, []).append(point)
    lines = {
        key: points for key, points in lines.items() if key[1] == "cold" or key[0] == "rowlake"
    }
    if not lines:
        return None
    figure, axis = plt.subplots(figsize=(8.5, 5.2), layout="constrained")
    for (system, step), points in lines.items():
        across, up = zip(*sorted(points), strict=True)
        looks = {**style(system), **({"alpha": 0.45} if step == "warm" else {})}
        label = f"{system}, again (cached)" if step == "warm" else system
        axis.plot(across, up, label=label, **looks)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(big))
    axis.xaxis.set_minor_formatter(NullFormatter())
    finish_axis(axis, "data files in the table", "wall time of planning a full scan")
    axis.set_title("Planning time against the number of files", fontsize=12)
    one_legend(figure, [axis])
    return figure


PLOTS = {
    "write_per_round": (
        "Write time per round",
        lambda results: per_round(results, WRITE_STEPS, "Write time per round"),
    ),
    "read_per_round": (
        "Read time after each round",
        lambda results: per_round(results, ("read",), "Read time after each round"),
    ),
    "cost_by_share": ("Cost against the share of rows changed", shares),
    "planning": ("Planning against files", planning),
}


def main(source: str, folder: str) -> None:
    results = json.loads(Path(source).read_text())
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    made = {}
    mpl.rcParams["svg.hashsalt"] = "bench"
    for name, (caption, draw) in PLOTS.items():
        figure = draw(results)
        if figure is None:
            continue
        figure.savefig(target / f"{name}.svg", metadata={"Date": None})
        figure.savefig(target / f"{name}.png", dpi=130)
        plt.close(figure)
        made[name] = caption
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
