"""Write docs/spec-map.md: each rule of the specification with the tests that check it.

Reads the `@pytest.mark.spec("Section: rule")` markers of all tests without importing them. `make
docs` writes the page; a unit test checks that it is up to date. A marker must name a section of
`SECTIONS`, so a misspelt one cannot open a section of its own.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "spec-map.md"
# In the order of the Iceberg table specification; the Puffin specification comes last.
SECTIONS = (
    "Default Values",
    "Schema Evolution",
    "Column Projection",
    "Row Lineage",
    "Partition Transforms",
    "Truncate Transform Details",
    "Manifests",
    "Sequence Number Inheritance",
    "First Row ID Inheritance",
    "Snapshot Row IDs",
    "Manifest Lists",
    "First Row ID Assignment",
    "Scan Planning",
    "Partition Statistics File",
    "Deletion Vectors",
    "Position Delete Files",
    "Equality Delete Files",
    "Appendix B",
    "Appendix D",
    "Puffin",
)
HEADER = """\
# Spec map

The rules of the [Iceberg table specification](https://iceberg.apache.org/spec/) and the
[Puffin specification](https://iceberg.apache.org/puffin-spec/) that tests check by name, in the
order of the specifications. Generated from the `spec` markers of the tests by `make docs`; do not
edit.
"""


@dataclass(frozen=True, order=True)
class Check:
    """A test that checks a rule; `path` is relative to the project, with forward slashes."""

    path: str
    test: str


Rules = dict[str, dict[str, list[Check]]]
"""Checks by section and rule."""


def checks_in(source: str, path: str) -> Iterator[tuple[str, str, Check]]:
    """Yield section, rule and test of each marker in a test module; raises `ValueError`."""
    for node in ast.walk(ast.parse(source)):
        for marker in getattr(node, "decorator_list", ()):
            if isinstance(marker, ast.Call) and ast.unparse(marker.func) == "pytest.mark.spec":
                section, rule = _parts_of(ast.literal_eval(marker.args[0]), path)
                yield section, rule, Check(path, node.name)


def _parts_of(marker: str, path: str) -> tuple[str, str]:
    section, separator, rule = marker.partition(": ")
    if not separator:
        raise ValueError(f'{path}: spec marker "{marker}" is not of the form "Section: rule"')
    if section not in SECTIONS:
        raise ValueError(f'{path}: spec marker "{marker}" names a section missing from SECTIONS')
    return section, rule


def rules_of(tests: Path) -> Rules:
    """Return all checks below a folder of tests."""
    found: Rules = defaultdict(lambda: defaultdict(list))
    for file in tests.rglob("test_*.py"):
        path = file.relative_to(tests.parent).as_posix()
        for section, rule, check in checks_in(file.read_text("utf-8"), path):
            found[section][rule].append(check)
    return found


def page_of(rules: Rules) -> str:
    """Return the page as Markdown: sections in the order of `SECTIONS`, rules and tests sorted."""
    parts = [HEADER]
    for section in SECTIONS:
        if section in rules:
            parts.append(f"\n## {section}\n\n| rule | tests |\n|---|---|\n")
            parts += [
                f"| {rule} | {_links(checks)} |\n"
                for rule, checks in sorted(rules[section].items())
            ]
    return "".join(parts)


def _links(checks: Iterable[Check]) -> str:
    return "<br>".join(f"[`{check.test}`](../{check.path})" for check in sorted(checks))


def main() -> None:
    try:
        page = page_of(rules_of(ROOT / "tests"))
    except ValueError as error:
        sys.exit(str(error))
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
