"""The tables of cases: each layout is written once, and every case gets copies by metadata.

A copy shares the files of its layout, of which nothing is ever removed, and goes its own way from
there: rowlake's by registration in the catalog, Java's as a folder of its Hadoop catalog.
"""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark_session import QUICK, having
from tests.sql.case_files import load_layouts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake import Lake
    from tests.sql.case_files import Case


@dataclass(frozen=True)
class Mode:
    """How changes are materialised: a format version and table properties."""

    name: str
    version: int
    mode: str | None = None
    granularity: str | None = None

    @property
    def properties(self) -> dict[str, str]:
        verbs = ("delete", "update", "merge")
        given = {f"write.{verb}.mode": self.mode for verb in verbs if self.mode}
        if self.granularity:
            given["write.delete.granularity"] = self.granularity
        return {"format-version": str(self.version), **given}

    def __str__(self) -> str:
        return self.name


_SNAPSHOT = re.compile(r"<snapshot (\d+)>")
COPY_ON_WRITE = Mode("copy_on_write", 2, "copy-on-write")
FILE_DELETES = Mode("file_deletes", 2, "merge-on-read", "file")
PARTITION_DELETES = Mode("partition_deletes", 2, "merge-on-read", "partition")
VECTORS = Mode("vectors", 3, "merge-on-read")
AUTO = Mode("auto", 3)
MODES = (COPY_ON_WRITE, FILE_DELETES, PARTITION_DELETES, VECTORS, AUTO)
JAVA_MODES = (COPY_ON_WRITE, FILE_DELETES, VECTORS)


def modes_of(case: Case, modes: tuple[Mode, ...], first: int, count: int = 1) -> list[Mode]:
    """Return the modes that a case runs in: its own, or so many from a number on."""
    if case.mode is not None:
        return [one for one in MODES if one.name == case.mode]
    return [modes[(first + step) % len(modes)] for step in range(count)]


@dataclass
class Stage:
    """A lake with the layouts that cases asked for so far."""

    lake: Lake
    made: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, tuple[str, ...]] = field(default_factory=load_layouts)
    shown: dict[str, str] = field(default_factory=dict)

    def copy(self, case: Case, mode: Mode) -> str:
        """Register the tables of a case; return their namespace."""
        space = mode.name
        self.lake.create_namespace(space, if_not_exists=True)
        for table in self.lake.tables(space):
            self.lake.drop_table(table)
        for name, layout in case.tables.items():
            self.lake.register_table((space, name), self.metadata(layout, mode))
        return space

    def copy_for_java(self, case: Case, mode: Mode, warehouse: Path, space: str) -> None:
        """Make the tables of a case known to Java's Hadoop catalog on a folder."""
        for name, layout in case.tables.items():
            folder = warehouse / space / name / "metadata"
            folder.mkdir(parents=True)
            shutil.copy(self.metadata(layout, mode), folder / "v1.metadata.json")
            (folder / "version-hint.text").write_text("1")

    def metadata(self, layout: str, mode: Mode) -> str:
        """Return the metadata file of a layout in a mode, which is made at the first need."""
        known = f"{layout} {mode.name}"
        if known not in self.made:
            name = ("layouts", f"{layout}_{mode.name}")
            table = self.lake.register_table(name, self._written(layout))
            wanted = dict(mode.properties)
            if table.format_version >= int(wanted["format-version"]):
                del wanted["format-version"]
            if wanted:
                table.set_properties(wanted)
            self.made[known] = str(table.handle.metadata_location)
        return self.made[known]

    def _written(self, layout: str) -> str:
        if layout not in self.made:
            self.lake.create_namespace("layouts", if_not_exists=True)
            for statement in self.layouts[layout]:
                self.lake.sql(re.sub(r"\bdb\.t\b", f"layouts.{layout}", statement))
            written = self.lake.table(("layouts", layout))
            self.made[layout] = str(written.handle.metadata_location)
        return self.made[layout]

    def statements(self, case: Case, space: str) -> list[str]:
        """Return the statements of a case for a namespace, with the ids of its snapshots."""
        return [
            _SNAPSHOT.sub(lambda found: self._snapshot(case, int(found[1])), placed(one, space))
            for one in case.statements
        ]

    def _snapshot(self, case: Case, number: int) -> str:
        metadata = json.loads(Path(self._written(case.tables["t"])).read_text())
        return str(metadata["snapshots"][number - 1]["snapshot-id"])

    @contextmanager
    def surroundings(self, case: Case) -> Iterator[None]:
        """Have the views of a case in the session, and its settings for the block."""
        spark = self.lake.spark
        for name, query in case.views.items():
            if self.shown.get(name) != query:
                text = f"SELECT * FROM {query}" if query.startswith("VALUES") else query
                spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {text}")
                self.shown[name] = query
        with having(spark, {**QUICK, **case.settings}):
            try:
                yield
            finally:
                self._leave_namespace(case)

    def _leave_namespace(self, case: Case) -> None:
        if any(one.startswith("USE ") for one in case.statements):
            self.lake.sql("USE default")


def placed(text: str, space: str) -> str:
    """Return a statement with the namespace `db` being another."""
    return re.sub(r"\bdb(?=\.|$)", space, text)


def named_alike(lines: list[str] | None, space: str, catalog: Any) -> list[str] | None:
    """Return the lines of a result with the names that do not depend on where it ran."""
    if lines is None:
        return None
    names = {space: "db", str(catalog): "lake"}
    return [" | ".join(names.get(part, part) for part in line.split(" | ")) for line in lines]
