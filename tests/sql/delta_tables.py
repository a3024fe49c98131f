"""The tables of cases as Delta tables: each layout is written once, and every case gets copies."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from tests.sql.case_files import load_layouts

if TYPE_CHECKING:
    from pathlib import Path

    from rowlake import Lake
    from tests.sql.case_files import Case

SPACE, LAYOUTS = "on_delta", "delta_layouts"
DEFAULTS = "delta.feature.allowColumnDefaults"  # which Iceberg has from format version 3 on
VECTORS, MAPPING = "delta.enableDeletionVectors", "delta.columnMapping.mode"
# How a change of few rows is made; column mapping is an axis of its own, and shares the modes.
MODES = {
    "rewritten": {VECTORS: "false"},
    "vectors": {VECTORS: "true", MAPPING: "name"},
}
# Names that files cannot have need column mapping.
MAPPED_LAYOUTS = ("odd_names",)


@dataclass
class DeltaStage:
    """A lake with the layouts that cases asked for so far, as Delta tables."""

    lake: Lake
    folder: Path
    made: dict[str, str] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def copy(self, case: Case, mode: str) -> str:
        """Give the tables of a case their names; return the namespace."""
        self.lake.create_namespace(SPACE, if_not_exists=True)
        for table in self.lake.tables(SPACE):
            self.lake.drop_table(table)
        for name, layout in case.tables.items():
            place = self.folder / str(next(self.numbers))
            shutil.copytree(self._written(layout, mode), place)
            self.lake.register_table((SPACE, name), str(place))
        return SPACE

    def _written(self, layout: str, mode: str) -> str:
        name = f"{layout}_{mode}"
        if name not in self.made:
            self.lake.create_namespace(LAYOUTS, if_not_exists=True)
            for statement in load_layouts()[layout]:
                text = re.sub(r"\bdb\.t\b", f"{LAYOUTS}.{name}", statement)
                mapping = {MAPPING: "name"} if layout in MAPPED_LAYOUTS else {}
                self.lake.sql(using_delta(text, {**MODES[mode], **mapping}))
            self.made[name] = self.lake.table((LAYOUTS, name)).location
        return self.made[name]


def using_delta(statement: str, properties: dict[str, str]) -> str:
    """Return a CREATE TABLE with Delta as its format; other statements stay as they are."""
    if not statement.startswith("CREATE TABLE"):
        return statement
    depth, start = 0, statement.index("(")
    for place in range(start, len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[place], 0)
        if depth == 0:
            columns, rest = statement[: place + 1], statement[place + 1 :]
            break
    rest = rest.replace("'format-version' = '3'", f"'{DEFAULTS}' = 'supported'")
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    if "TBLPROPERTIES (" in rest:
        more = rest.replace("TBLPROPERTIES (", f"TBLPROPERTIES ({listed}, ")
        return f"{columns} USING delta{more}"
    return f"{columns} USING delta{rest} TBLPROPERTIES ({listed})"
