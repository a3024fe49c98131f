"""A MERGE walks the rooms that docs/architecture.md draws, and changes rooms as often."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowlake
from rowlake.catalog import backend, commit
from rowlake.engine.spark import Engine
from rowlake.rowlevel import planning
from tests.parts.table_loads import STATEMENTS, fill

if TYPE_CHECKING:
    from types import FrameType

    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
PACKAGE = str(Path(rowlake.__file__).parent) + "/"
MOST_CHANGES = 10
# It runs an operation that its caller hands in, so the walk goes on in the room it came from.
RERUN = "commit/rerun.py"


def drawn() -> list[str]:
    """Return the rooms that the page's arrows lead to."""
    text = PAGE.read_text("utf-8").partition("**MERGE**")[2].partition("\n\n**")[0]
    return re.findall(r"→\s+`(\w+)`", text)


def rooms_on_stack(frame: FrameType | None) -> list[str]:
    """Return the rooms on a call stack from the outside in; neighbours in one room count once."""
    found = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) and not name.endswith(RERUN):
            found.append(name.removeprefix(PACKAGE).partition("/")[0].removesuffix(".py"))
        frame = frame.f_back
    return [room for before, room in pairwise(["", *reversed(found)]) if room != before]


class Watch:
    """Notes which rooms lead to a call, whenever it is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.walks: list[list[str]] = []

    def on(self, owner: Any, name: str, room: str) -> None:
        real = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            walk = rooms_on_stack(sys._getframe(1))
            self.walks.append(walk if walk[-1] == room else [*walk, room])
            return real(*args, **kwargs)

        self._monkeypatch.setattr(owner, name, watched)


def test_a_merge_walks_the_rooms_of_the_architecture_page(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    with rowlake.connect(str(tmp_path), spark=spark) as lake:
        fill(lake)
        kind = type(backend.backend_of(lake.catalog))
        watch.on(kind, "load", "catalog")
        watch.on(planning, "plan_files", "plan")
        watch.on(Engine, "run", "engine")
        watch.on(commit, "commit_updates", "catalog")
        lake.sql(STATEMENTS["merge"][0])
    assert watch.walks[0] == ["lake", "sql", "query", "catalog"]  # the target
    others = list(dict.fromkeys(map(tuple, watch.walks[1:])))
    assert others == [
        ("lake", "sql", "dml", "query", "catalog"),  # the source
        ("lake", "sql", "dml", "rowlevel", "engine"),  # stages it, then changes rows
        ("lake", "sql", "dml", "rowlevel", "plan"),
        ("lake", "sql", "dml", "rowlevel", "commit", "iceberg", "catalog"),
    ]
    steps = dict.fromkeys(step for walk in others for step in pairwise(walk))
    assert sorted(into for _, into in steps) == sorted(drawn())
    assert len(steps) <= MOST_CHANGES
