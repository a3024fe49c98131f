"""The figures of a run as Markdown, for docs/benchmarks.md.

Comes in: a results file. Goes out: the document with everything between the two marks made new;
what stands outside them is written by people and stays.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.report import quantity, ratio_range, seconds, size, spread_text, without

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
PLOTS = "benchmarks"
LIMITS = ("pyarrow", "pyarrow-rewrite", "pyarrow-upsert", "spark-parquet", "bare-mapInArrow")
BEGIN = "<!-- figures: begin -->"
END = "<!-- figures: end -->"


def write_document(results: Path, document: Path = DOCUMENT) -> None:
    """Write the figures of a results file into the document, and its plots next to it."""
    text = document.read_text()
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    plots = copy_plots(results.parent / "plots", document.parent / PLOTS)
    told = figures(json.loads(results.read_text()), plots)
    document.write_text(f"{head}{BEGIN}\n{told}\n{END}{tail}")


def copy_plots(source: Path, target: Path) -> dict[str, str]:
    """Copy the plots of the run; return their paths, as the document names them, by caption."""
    found = sorted(source.glob("*.svg"))
    if found:
        target.mkdir(parents=True, exist_ok=True)
    for path in found:
        shutil.copy(path, target / path.name)
    return {path.stem.replace("_", " "): f"{target.name}/{path.name}" for path in found}


def plots_section(plots: dict[str, str]) -> list[str]:
    return [f"![{caption}]({path})" for caption, path in plots.items()]


def losses_section(cases: list[dict[str, Any]], targets: Sequence[dict[str, Any]] = ()) -> str:
    """Return the targets not met or undecided, and where a peer took less than one of our variants.

    Of wall time and CPU time the worse counts. Bare loops are no peers.
    """
    lines = [
        f"- {target['outcome'].capitalize()} ({_told_ratio(target)}): {target['target']['text']}."
        for target in targets
        if target["outcome"] in ("not met", "undecided")
    ]
    for case in cases:
        steps = dict.fromkeys(found["step"] for found in case["measurements"])
        lines += [line for step in steps for line in _losses(case, step)]
    told = "\n".join(lines) if lines else "Nowhere in this run."
    return f"### Where we lose\n\n{told}"


def _losses(case: dict[str, Any], step: str) -> list[str]:
    measured = {
        found["system"]: found["median"]
        for found in case["measurements"]
        if found["step"] == step and found["samples"]
    }
    ours = {name: found for name, found in measured.items() if name.startswith("rowlake")}
    peers = {n: found for n, found in measured.items() if n not in ours and n not in LIMITS}
    if not peers:
        return []
    return [line for name, found in ours.items() if (line := _loss(case, step, name, found, peers))]


def _loss(
    case: dict[str, Any], step: str, name: str, mine: dict[str, float], peers: dict[str, Any]
) -> str:
    """Return by how much the best peer beats one of our variants, in the metric that is worse."""
    found = []
    for metric, label in (("wall_s", ""), ("cpu_s", " of CPU")):
        best = min(peers, key=lambda peer: peers[peer][metric])
        if peers[best][metric]:
            ratio = mine[metric] / peers[best][metric]
            told = f"{best} takes {seconds(peers[best][metric])}, {name} {seconds(mine[metric])}"
            found.append((ratio, f"{told}{label} ({ratio:.2f}×)"))
    worst = max(found, default=(0.0, ""))
    return f"- {case['title']}, {step}: {worst[1]}." if worst[0] > 1 else ""


def _told_ratio(target: dict[str, Any]) -> str:
    return ratio_range(target["ratio"], target.get("low"), target.get("high"))


def figures(results: dict[str, Any], plots: dict[str, str] | None = None) -> str:
    """Return all sections: the run, the targets, where we lose, plots, one table per case."""
    parts = [run_line(results["run"]), targets_section(results["targets"])]
    parts += [losses_section(results["cases"], results["targets"]), *plots_section(plots or {})]
    parts += [case_section(case) for case in results["cases"]]
    parts.append(configurations_section(results["configurations"]))
    return "\n\n".join(parts)


def run_line(run: dict[str, Any]) -> str:
    machine, options = run["machine"], run["options"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return (
        f"Run of {run['finished'][:10]}: {options['read_rows']:,} rows where tables are read or "
        "their rows changed, "
        f"{options['write_rows']:,} where they are written, {machine['cores']} cores, "
        f"{size(machine['memory_bytes'])} of memory, Python {machine['python']}; {versions}."
    )


def targets_section(targets: list[dict[str, Any]]) -> str:
    rows = [
        (
            target["target"]["text"],
            _value(target["metric"], target["ours"]),
            _beside(target),
            _told_ratio(target),
            target["outcome"],
        )
        for target in targets
    ]
    return "### Targets\n\n" + table(("target", "ours", "compared with", "ratio", "outcome"), rows)


def _beside(target: dict[str, Any]) -> str:
    if target["theirs"] is None:
        return ""
    told = f"{target['peer']}: {_value(target['metric'], target['theirs'])}"
    return told + without(target.get("missing", ()))


def _value(metric: str, value: float | None) -> str:
    return "" if value is None else quantity(metric, value)


def case_section(case: dict[str, Any]) -> str:
    measured = [found for found in case["measurements"] if found["samples"]]
    steps = list(dict.fromkeys(found["step"] for found in measured))
    measured.sort(key=lambda found: steps.index(found["step"]))
    rows = [
        (
            found["step"],
            found["system"],
            found["place"],
            seconds(found["median"]["wall_s"]),
            spread_text(*found["spread"]["wall_s"], len(found["samples"])),
            seconds(found["median"]["cpu_s"]),
            _facts(found),
        )
        for found in measured
    ]
    agreed = all(truth["equal"] for truth in case["truths"])
    notes = [] if agreed else ["**The systems did not agree on the rows.**"]
    notes += [f"{f['system'] or 'The case'} failed: {f['message']}" for f in case["failures"]]
    notes += [f"{n['system'] or 'The case'}: {n['message']}" for n in case.get("notes", [])]
    heading = f"### {case['title']} (`{case['case']}`, {case.get('master', '')})"
    heads = (
        "step",
        "system",
        "ran in",
        "wall, median",
        "samples: lowest – highest",
        "CPU",
        "facts",
    )
    body = table(heads, rows)
    return "\n\n".join([heading, body, *notes])


def _facts(found: dict[str, Any]) -> str:
    median, facts = found["median"], found["samples"][0]["facts"]
    names = [name for name in facts if median.get(name)]
    return ", ".join(f"{name} {quantity(name, median[name])}" for name in names)


def configurations_section(configurations: dict[str, dict[str, str]]) -> str:
    lines = [
        f"- **{system}**: " + "; ".join(f"{key}: {value}" for key, value in settings.items())
        for system, settings in configurations.items()
    ]
    return "### Configurations\n\n" + "\n".join(lines)


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
