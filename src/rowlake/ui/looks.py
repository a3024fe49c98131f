"""What is known of a lake's tables, kept as long as the tables do not change.

Comes in: a lake. Goes out: `Look`s: a table's metadata, survey and health. A look is made once per
version of a table; the newest version is asked for on every page. Only metadata is read. Surveys of
large tables are large, so that few are kept; of the others the one line that the lake page shows.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from rowlake.errors import RowlakeError, TableNotFoundError
from rowlake.maintain.autopilot.health import health_of
from rowlake.maintain.autopilot.health_metadata import check_orphans
from rowlake.maintain.autopilot.survey import survey
from rowlake.model.provenance import provenance_of
from rowlake.secrets import without_secrets

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.maintain.autopilot.optimize import OptimizeReport
    from rowlake.maintain.autopilot.survey import Survey
    from rowlake.model.handle import TableHandle
    from rowlake.model.health import Health
    from rowlake.model.provenance import Provenance
    from rowlake.table import Table

Kept = TypeVar("Kept")

SURVEYS_KEPT = 8
LINES_KEPT = 5_000


@dataclass(frozen=True)
class Look:
    """A table at one version."""

    table: Table
    handle: TableHandle

    @property
    def name(self) -> str:
        """The name, with its namespace."""
        return self.handle.name

    @cached_property
    def survey(self) -> Survey:
        """Numbers per file."""
        return survey(self.handle)

    @cached_property
    def health(self) -> Health:
        """What the checks say."""
        return health_of(self.survey, check_orphans(self.survey))

    @cached_property
    def made(self) -> dict[int, Provenance]:
        """What made each snapshot."""
        return provenance_of(self.handle.snapshots)

    @cached_property
    def advice(self) -> OptimizeReport:
        """What `optimize` would do."""
        return self.table.optimize(dry_run=True)

    @property
    def rows(self) -> int:
        """How many rows a reader sees; with equality deletes or shared ones, about."""
        seen = self.survey
        deleted = round(float(seen.deletes.deleted.sum()))
        return max(int(seen.rows.sum()) - deleted, 0)

    @property
    def rows_are_exact(self) -> bool:
        """False where only delete files themselves know how many rows they delete."""
        return not bool(self.survey.deletes.equalities.any())


@dataclass(frozen=True)
class Line:
    """A table on the lake page; `trouble` says why the rest is missing."""

    name: str
    format: str = ""
    verdict: str = ""
    shown: tuple[str, ...] = ()
    rows: int = 0
    rows_are_exact: bool = True
    files: int = 0
    size_in_bytes: int = 0
    delete_files: int = 0
    changed_ms: int = 0
    trouble: str = ""


@dataclass
class Looks:
    """The tables of a lake as this server has seen them; safe to use from several threads."""

    lake: Lake
    _tables: OrderedDict[str, Table] = field(default_factory=OrderedDict)
    _looks: OrderedDict[str, Look] = field(default_factory=OrderedDict)
    _lines: OrderedDict[str, tuple[str | None, Line]] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _surveying: threading.RLock = field(default_factory=threading.RLock)

    def names(self) -> list[str]:
        """Return the names of all tables."""
        return self.lake.tables()

    def look(self, name: str) -> Look:
        """Return a table as it is now."""
        table, handle = self._newest(name)
        with self._guard:
            found = self._looks.get(name)
            if found is None or (found.handle.uuid, found.handle.version) != (
                handle.uuid,
                handle.version,
            ):
                found = Look(table, handle)
            _keep(self._looks, name, found, SURVEYS_KEPT)
        return found

    def _newest(self, name: str) -> tuple[Table, TableHandle]:
        with self._guard:
            table = self._tables.get(name)
        if table is not None:
            try:
                return table, table.handle
            except TableNotFoundError:  # dropped, or recreated elsewhere
                with self._guard:
                    self._tables.pop(name, None)
        table = self.lake.table(name)
        with self._guard:
            _keep(self._tables, name, table, LINES_KEPT)
        return table, table.handle

    def known_line(self, name: str) -> Line | None:
        """Return the line of a table that has been looked at in its newest version."""
        try:
            _, handle = self._newest(name)
        except RowlakeError as error:
            return Line(name, trouble=self.plain(error))
        with self._guard:
            version, line = self._lines.get(name, (None, None))
        return line if line is not None and version == f"{handle.uuid} {handle.version}" else None

    def line(self, name: str) -> Line:
        """Return the line of a table; a table that cannot be read has one too."""
        known = self.known_line(name)
        if known is not None:
            return known
        try:
            with self._surveying:  # one at a time: they take all there is of a core
                look = self.look(name)
                line = _line(look)
        except RowlakeError as error:
            return Line(name, trouble=self.plain(error))
        with self._guard:
            stamp = f"{look.handle.uuid} {look.handle.version}"
            _keep(self._lines, name, (stamp, line), LINES_KEPT)
        return line

    def lines(self, names: list[str], seconds: float) -> list[Line | None]:
        """Return lines in the order of names; None for those that time did not suffice for."""
        until = time.monotonic() + seconds
        found: list[Line | None] = []
        for name in names:
            known = self.known_line(name) if time.monotonic() < until else None
            if known is None and time.monotonic() < until:
                known = self.line(name)
            found.append(known)
        return found

    def plain(self, error: BaseException) -> str:
        """Return an error's text without secrets of the catalog."""
        return without_secrets(str(error), self.lake.catalog.properties)


def _line(look: Look) -> Line:
    health = look.health
    poor = [each for each in health.findings if each.verdict is health.verdict]
    return Line(
        name=look.name,
        format=f"{look.table.format} v{look.handle.format_version}",
        verdict=health.verdict.value,
        shown=tuple(each.name for each in poor) if health.verdict.weight else (),
        rows=look.rows,
        rows_are_exact=look.rows_are_exact,
        files=health.data_files,
        size_in_bytes=health.size_in_bytes,
        delete_files=health.delete_files,
        changed_ms=look.handle.last_updated_ms,
    )


def _keep(kept: OrderedDict[str, Kept], name: str, value: Kept, most: int) -> None:
    kept[name] = value
    kept.move_to_end(name)
    while len(kept) > most:
        kept.popitem(last=False)
