"""The pages in docs/ name modules that exist, and the architecture page names every room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rowlake
from rowlake.write.property_rules import known_properties

PACKAGE = Path(rowlake.__file__).parent
DOCS = PACKAGE.parent.parent / "docs"
ROOMS = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
ROOMS -= {"__init__", "__pycache__", "py"}
# Table properties that read like a module of the room `write`.
PROPERTIES = ("write.data.", "write.delete.", "write.merge.", "write.metadata.", "write.update.")
KNOWN_PROPERTIES = {name for name, _ in known_properties()}
DOTTED = re.compile(r"`([a-z_]+(?:\.[a-z_]+)+)`")


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, or a function or class at the end of one."""
    *parents, last = name.split(".")
    folder = PACKAGE.joinpath(*parents)
    if (folder / last).is_dir() or (folder / f"{last}.py").exists():
        return True
    module = folder.with_suffix(".py")
    return module.exists() and bool(
        re.search(rf"^\s*(?:async def|def|class) {last}\b", module.read_text("utf-8"), re.M)
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("commit.loop", True),
        ("maintain.cleanup", True),
        ("connection.connect", True),
        ("commit.nothing", False),
        ("lake.nothing", False),
    ],
)
def test_names_are_looked_up_in_the_package(name: str, expected: bool) -> None:
    assert exists(name) is expected


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_modules_that_a_page_names_exist(page: Path) -> None:
    named = set(DOTTED.findall(page.read_text("utf-8")))
    modules = {
        name
        for name in named - KNOWN_PROPERTIES
        if name.split(".")[0] in ROOMS and not name.startswith(PROPERTIES)
    }
    assert [name for name in sorted(modules) if not exists(name)] == []


def test_the_architecture_page_lists_every_room() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    table = text.partition("| room |")[2].partition("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", first(row))}
    assert sorted(ROOMS - listed) == []


def first(row: str) -> str:
    """Return the first cell of a row of a table."""
    return row.split("|")[1] if row.count("|") > 1 else ""


def test_the_architecture_page_is_one_page() -> None:
    assert len((DOCS / "architecture.md").read_text("utf-8").splitlines()) <= 120
