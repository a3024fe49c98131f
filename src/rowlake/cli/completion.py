"""Completion for the shell: tables, their columns, SQL words and the shell's own commands.

Names of tables are looked up once and again after statements that change them; columns are read
from metadata when a statement names their table. Nothing here starts Spark, and no failure of a
catalog reaches the prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rowlake.errors import RowlakeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowlake.lake import Lake

_TEXT = """
ADD ALTER AND AS ASC BETWEEN BRANCH BY CALL CASE CAST COLUMN COUNT CREATE DELETE DESC
DESCRIBE DISTINCT DROP ELSE END EXISTS EXPLAIN FALSE FROM GROUP HAVING HISTORY IF IN
INSERT INTO IS JOIN LEFT LIKE LIMIT MATCHED MERGE NAMESPACE NAMESPACES NOT NULL ON
OPTIMIZE OR ORDER OVERWRITE PARTITION PARTITIONED REPLACE SELECT SET SHOW SOURCE TABLE
TABLES TAG TBLPROPERTIES THEN TIMESTAMP TRUE TRUNCATE UNION UPDATE USING VACUUM VALUES
VERSION WHEN WHERE WITH ZORDER
"""
WORDS = tuple(_TEXT.split())
_NAME = re.compile(r"[\w.]+")


class Completer:
    """Completes what stands before the cursor; `candidates` is free of readline."""

    def __init__(self, lake: Lake, commands: Iterable[str]) -> None:
        self._lake, self._commands = lake, tuple(commands)
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}
        self._found: list[str] = []

    def forget(self) -> None:
        """Look tables and columns up again when they are asked for next."""
        self._tables, self._columns = None, {}

    def candidates(self, start: str, line: str) -> list[str]:
        """Return what a word can become, in a line (or the statement so far)."""
        if line.lstrip().startswith("\\") and " " not in line.strip():
            return [command for command in self._commands if command.startswith(line.strip())]
        named = [name for name in self._known() if name in set(_NAME.findall(line))]
        columns = [column for name in named for column in self._columns_of(name)]
        lower = start.lower()
        found = [one for one in [*columns, *self._known()] if one.lower().startswith(lower)]
        words = [word for word in WORDS if start and word.lower().startswith(lower)]
        cased = [word.lower() for word in words] if start.islower() else words
        return list(dict.fromkeys([*found, *cased]))

    def __call__(self, start: str, state: int) -> str | None:
        """Return the candidate of a number, as readline asks for them one by one."""
        if state == 0:
            import readline

            self._found = self.candidates(start, readline.get_line_buffer())
        return self._found[state] if state < len(self._found) else None

    def _known(self) -> list[str]:
        if self._tables is None:
            try:
                self._tables = list(self._lake.tables())
            except RowlakeError:
                self._tables = []
        return self._tables

    def _columns_of(self, table: str) -> list[str]:
        if table not in self._columns:
            try:
                self._columns[table] = [one.name for one in self._lake.table(table).schema.fields]
            except RowlakeError:
                self._columns[table] = []
        return self._columns[table]
