"""docs/concurrency.md: what the recorded verdicts say, as tables below an explanation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.matrix.cells import CONFLICT, GAVE_UP, ISOLATIONS, LANDED, MODES, REPLANNED
from tests.matrix.statements import STATEMENTS
from tests.matrix.tables import DELTA, ICEBERG_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.matrix.cells import Cell

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concurrency.md"
TEXT = Path(__file__).with_name("concurrency_text.md")
SIGNS = {LANDED: "✓", REPLANNED: "↻", GAVE_UP: "–"}
REFUSED = "✗"
DELTA_TEXT = """## What lands beside what: Delta Lake tables

On Delta tables with deletion vectors and column mapping; `rewrite_data_files` is OPTIMIZE.
"""
SHORT_MODES = {"copy-on-write": "CoW", "merge-on-read": "MoR", "auto": "auto"}


def page_of(verdicts: Mapping[Cell, str]) -> str:
    """Return the page as Markdown."""
    iceberg = {cell: one for cell, one in verdicts.items() if cell.kind != DELTA}
    delta = {cell: one for cell, one in verdicts.items() if cell.kind == DELTA}
    parts = [TEXT.read_text("utf-8"), _overview(iceberg), DELTA_TEXT, _overview(delta)]
    parts.append(_reasons(verdicts))
    changing = [name for name, one in STATEMENTS.items() if "m" in one.axes]
    parts += [_details(name, iceberg, ICEBERG_KINDS) for name in changing]
    parts += [_details(name, delta, (DELTA,)) for name in changing]
    return "\n".join(parts)


def sign_of(verdict: str) -> str:
    """Return the sign of a verdict."""
    return SIGNS.get(verdict, REFUSED)


def _signs(verdicts: Iterable[str]) -> str:
    found = {sign_of(one) for one in verdicts}
    return " ".join(sign for sign in (*SIGNS.values(), REFUSED) if sign in found)


def _overview(verdicts: Mapping[Cell, str]) -> str:
    by_pair: dict[tuple[str, str], list[str]] = {}
    for cell, verdict in verdicts.items():
        by_pair.setdefault((cell.statement, cell.landing), []).append(verdict)
    statements = list(dict.fromkeys(statement for statement, _ in by_pair))
    lines = ["| landed meanwhile | " + " | ".join(statements) + " |"]
    lines.append("|---" * (len(statements) + 1) + "|")
    for landing in dict.fromkeys(landing for _, landing in by_pair):
        signs = [_signs(by_pair.get((name, landing), ())) for name in statements]
        lines.append(f"| {landing} | " + " | ".join(signs) + " |")
    return "\n".join(lines) + "\n"


def _reasons(verdicts: Mapping[Cell, str]) -> str:
    landings: dict[str, dict[str, None]] = {}
    names: dict[str, dict[str, None]] = {}
    for cell, verdict in verdicts.items():
        if sign_of(verdict) == REFUSED:
            cause = verdict.removeprefix(f"{CONFLICT}: ")
            landings.setdefault(cause, {})[cell.landing] = None
            names.setdefault(cause, {})[cell.statement] = None
    lines = ["## Why a statement was refused\n", "| why | landed meanwhile | statements |"]
    lines.append("|---|---|---|")
    lines += [
        f"| {cause} | {', '.join(landings[cause])} | {', '.join(names[cause])} |"
        for cause in landings
    ]
    return "\n".join(lines) + "\n"


def _details(statement: str, verdicts: Mapping[Cell, str], kinds: tuple[str, ...]) -> str:
    variants = [(k, m, i) for k in kinds for m in MODES for i in ISOLATIONS]
    found: dict[tuple[object, ...], list[str]] = {}
    for cell, verdict in verdicts.items():
        if cell.statement == statement:
            key = (cell.landing, cell.kind, cell.mode, cell.isolation)
            found.setdefault(key, []).append(verdict)
    heads = [f"{k} {SHORT_MODES[m]} {i}" for k, m, i in variants]
    what = (
        "mode and isolation on Delta" if kinds == (DELTA,) else "format version, mode and isolation"
    )
    lines = [f"## {statement} by {what}\n"]
    lines.append("| landed meanwhile | " + " | ".join(heads) + " |")
    lines.append("|---" * (len(heads) + 1) + "|")
    for landing in dict.fromkeys(key[0] for key in found):
        signs = [_signs(found.get((landing, *variant), ())) for variant in variants]
        lines.append(f"| {landing} | " + " | ".join(signs) + " |")
    return "\n".join(lines) + "\n"
