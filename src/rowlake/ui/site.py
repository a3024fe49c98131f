"""What pages are given: the lake as this server sees it, and what the browser asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.secrets import without_passwords
from rowlake.ui.diffs import Comparing
from rowlake.ui.looks import Looks
from rowlake.ui.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.lake import Lake
    from rowlake.ui.gate import Gate
    from rowlake.ui.looks import Look


@dataclass(frozen=True)
class Site:
    """One lake on one server."""

    lake: Lake
    gate: Gate
    looks: Looks
    operations: Operations
    comparing: Comparing
    allow_actions: bool = False
    flags: str = ""  # what commands need to find this lake

    def run(self, command: str) -> str:
        """Return a command with what it needs to find this lake."""
        return f"{command} {self.flags}".strip()

    @property
    def place(self) -> str:
        """Where the lake is, for the head of a page."""
        found = self.lake.catalog.properties.get("warehouse") or self.lake.catalog.name
        return without_passwords(str(found))


def site_of(lake: Lake, gate: Gate, *, allow_actions: bool = False, flags: str = "") -> Site:
    """Return the site of a lake."""
    looks = Looks(lake)
    operations = Operations(lake.engine, looks.plain)
    return Site(lake, gate, looks, operations, Comparing(lake.engine), allow_actions, flags)


@dataclass(frozen=True)
class Asked:
    """A request: its path and its parameters, of the address or of a form."""

    path: str
    given: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter."""
        return self.given.get(name, default)

    def number(self, name: str, default: int = 0, *, most: int = 1_000_000) -> int:
        """Return a parameter that counts something."""
        text = self.given.get(name, "")
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > most:
            raise InvalidStatementError(f"{name} takes a whole number, not {text[:40]!r}.")
        return int(text)

    def look(self, site: Site) -> Look:
        """Return the table that is asked for; raises TableNotFoundError."""
        name = self.text("name")
        if not name:
            raise InvalidStatementError("This address names no table.")
        return site.looks.look(name)
