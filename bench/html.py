"""The report of a run as one HTML file: targets, plots, figures, configurations.

Comes in: a results file and the folder with its plots. Goes out: a page that needs nothing but
itself; plots stand in it as SVG.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, Any

from bench.markdown import run_line
from bench.report import quantity, ratio_range, seconds, size, spread_text, without

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2530; margin: 2rem auto; max-width: 74rem;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.4rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #dde3ea; text-align: left; }
th { background: #f2f5f8; } td.n, th.n { text-align: right; white-space: nowrap; }
tr.ours td { background: #eef6fd; } .met { color: #17803d; font-weight: 600; }
.not-met { color: #b42318; font-weight: 600; } .not-measured { color: #8a6d00; }
.facts { color: #5b6775; font-size: .8rem; } .note { color: #5b6775; }
.wrong { color: #b42318; font-weight: 600; } svg { max-width: 100%; height: auto; }
figure { margin: 1rem 0 2rem; } dt { font-weight: 600; } dd { margin: 0 0 .6rem 1.2rem; }
@media (max-width: 700px) { table { display: block; overflow-x: auto; } }
"""


def write_report(results: Path, plots: Path, captions: dict[str, str], target: Path) -> None:
    """Write the page of a results file."""
    target.write_text(page(json.loads(results.read_text()), plots, captions))


def page(results: dict[str, Any], plots: Path, captions: dict[str, str]) -> str:
    parts = [
        "<h1>rowlake and its peers</h1>",
        f"<p>{escape(run_line(results['run']))}</p>",
        "<p>Systems are interleaved, on the same data, in the same run. Figures are medians over "
        "the rounds; CPU is that of the whole process tree.</p>",
        "<h2>Targets</h2>",
        targets_table(results["targets"]),
        *(["<h2>Plots</h2>"] if captions else []),
        *(figure(plots / f"{name}.svg", caption) for name, caption in captions.items()),
        "<h2>Cases</h2>",
        *(case_section(case) for case in results["cases"]),
        "<h2>Configurations</h2>",
        configurations(results["configurations"]),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>rowlake and its peers</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def targets_table(targets: Iterable[dict[str, Any]]) -> str:
    rows = "".join(target_row(target) for target in targets)
    heads = (
        "<th>target</th><th class=n>ours</th><th class=n>compared with</th><th class=n>ratio</th>"
    )
    return f"<table><tr>{heads}<th>outcome</th></tr>{rows}</table>"


def target_row(target: dict[str, Any]) -> str:
    metric, outcome = target["metric"], target["outcome"]
    ours = "" if target["ours"] is None else quantity(metric, target["ours"])
    beside = ""
    if target["theirs"] is not None:
        beside = f"{target['peer']}: {quantity(metric, target['theirs'])}"
        beside += without(target.get("missing", ()))
    ratio = ratio_range(target["ratio"], target.get("low"), target.get("high"))
    numbers = "".join(f"<td class=n>{escape(text)}</td>" for text in (ours, beside, ratio))
    kind = outcome.replace(" ", "-")
    text = escape(target["target"]["text"])
    return f"<tr><td>{text}</td>{numbers}<td class={kind}>{outcome}</td></tr>"


def figure(path: Path, caption: str) -> str:
    """Return a plot inline; ids are made the plot's own, since all share one page."""
    svg = path.read_text()
    svg = svg[svg.index("<svg") :]
    prefix = f"{path.stem}-"
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    return f'<figure role="img" aria-label="{escape(caption)}">{svg}</figure>'


def case_section(case: dict[str, Any]) -> str:
    measured = [found for found in case["measurements"] if found["samples"]]
    steps = list(dict.fromkeys(found["step"] for found in measured))
    ours = case.get("ours", "rowlake")
    body = "".join(
        step_rows(step, [found for found in measured if found["step"] == step], ours)
        for step in steps
    )
    heads = (
        "<th>step</th><th>system</th><th>ran in</th><th class=n>wall</th><th class=n>samples</th>"
        "<th class=n>CPU</th>"
        f"<th class=n>× {escape(ours)}</th><th class=n>peak memory</th><th>facts</th>"
    )
    notes = "".join(f"<p class={kind}>{escape(text)}</p>" for kind, text in remarks(case))
    title = f"{case['title']} ({case['case']}, {case.get('master', '')})"
    table = f"<table><tr>{heads}</tr>{body}</table>" if body else ""
    return f"<h3>{escape(title)}</h3>{table}{notes}"


def step_rows(step: str, measured: list[dict[str, Any]], ours: str) -> str:
    base = [found["median"]["wall_s"] for found in measured if found["system"] == ours]
    return "".join(step_row(step, found, base[0] if base else None) for found in measured)


def step_row(step: str, found: dict[str, Any], base: float | None) -> str:
    median = found["median"]
    facts = {name: median[name] for name in found["samples"][0]["facts"] if median.get(name)}
    ratio = f"{median['wall_s'] / base:.2f}" if base else ""
    peak = size(median["peak_bytes"]) if median.get("peak_bytes") else ""
    spread = spread_text(*found["spread"]["wall_s"], len(found["samples"]))
    cells = [seconds(median["wall_s"]), spread, seconds(median["cpu_s"]), ratio, peak]
    numbers = "".join(f"<td class=n>{text}</td>" for text in cells)
    told = ", ".join(f"{name} {quantity(name, value)}" for name, value in facts.items())
    kind = " class=ours" if found["system"].startswith("rowlake") else ""
    told_names = (step, found["system"], found["place"])
    names = "".join(f"<td>{escape(text)}</td>" for text in told_names)
    return f"<tr{kind}>{names}{numbers}<td class=facts>{escape(told)}</td></tr>"


def remarks(case: dict[str, Any]) -> list[tuple[str, str]]:
    """Return notes on a case: agreement, failures."""
    found: list[tuple[str, str]] = []
    wrong = [truth for truth in case["truths"] if not truth["equal"]]
    if wrong:
        found.append(("wrong", "The systems did not agree on the rows."))
    elif case["truths"]:
        systems = {name for truth in case["truths"] for name in truth["digests"]}
        told = f"Row counts and checksums of {len(systems)} systems agreed in every check"
        found.append(("note", f"{told} ({len(case['truths'])})."))
    found += [
        ("wrong", f"{one['system'] or 'The case'} failed: {one['message']}")
        for one in case["failures"]
    ]
    found += [("note", f"{one['system']}: {one['message']}") for one in case.get("notes", [])]
    return found


def configurations(found: dict[str, dict[str, str]]) -> str:
    parts = []
    for system, settings in found.items():
        told = "<br>".join(f"{escape(key)}: {escape(value)}" for key, value in settings.items())
        parts.append(f"<dt>{escape(system)}</dt><dd>{told}</dd>")
    return f"<dl>{''.join(parts)}</dl>"
