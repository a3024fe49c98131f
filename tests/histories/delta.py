"""A random history of a Delta table: its log, its vectors, and two writers at once.

What Iceberg tables have and Delta's lack (branches, other partition specs, equality deletes) is
left out; overwrites, column mapping and writers that meet are in.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.vectors import vector_columns
from rowlake.errors import CardinalityError, CommitConflictError
from rowlake.model.key_index import index_location
from tests.any_format import changing
from tests.histories.draws import KINDS, MODES, draw_operation
from tests.histories.history import History
from tests.histories.operations import Options, Overwrite, expected
from tests.histories.upkeep import COMPACTION, draw_upkeep, meanwhile
from tests.histories.values import as_tuples, draw_condition, draw_row, read_tuples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from rowlake.delta.handle import DeltaHandle
    from tests.histories.operations import Expected, Operation
    from tests.histories.values import Column, Row

VECTORS, MAPPING = "delta.enableDeletionVectors", "delta.columnMapping.mode"
LAYOUTS: tuple[list[str], ...] = ([], [], [], ["id"], ["note"], ["d"], ["id", "note"], ["qty"])
PROPERTIES = {
    VECTORS: ("true", "true", "false"),
    "delta.checkpointInterval": ("1", "2", "3", "10"),
    "delta.dataSkippingNumIndexedCols": ("0", "2", "32"),
    "write.delete.mode": ("copy-on-write", "merge-on-read", "auto"),
    "write.update.mode": ("copy-on-write", "merge-on-read", "auto"),
    "write.merge.mode": ("copy-on-write", "merge-on-read", "auto"),
}
_NUMBERS = count()


class DeltaHistory(History):
    """A Delta table in a folder of its own below `folder`, and the rows that it should have."""

    kinds = (*(kind for kind in KINDS if not kind.startswith("blind")), "overwrite")
    changes = ("add", "drop", "rename", "property", "property", "mapping", "reopen")

    def __init__(self, lake: Any, random: Random, run: Any, *, folder: str) -> None:
        self._lake, self._folder = lake, folder
        super().__init__(lake, random, run, blind=False)

    def _created(self, lake: Any, random: Random, formats: Sequence[str]) -> Any:
        properties = {
            VECTORS: random.choice(("true", "true", "false")),
            MAPPING: random.choice(("none", "none", "name", "id")),
            "delta.checkpointInterval": random.choice(("1", "2", "3", "10")),
            "delta.checkpointPolicy": random.choice(("classic", "classic", "v2")),
            "delta.checkpoint.writeStatsAsStruct": random.choice(("true", "false")),
            "delta.enableInCommitTimestamps": random.choice(("true", "false", "false")),
            "delta.dataSkippingNumIndexedCols": random.choice(("0", "2", "32", "32")),
            "write.parquet.row-group-size-bytes": random.choice(("1", *["134217728"] * 3)),
            "write.parquet.page-row-limit": random.choice(("1", "20000")),
        }
        layout = random.choice(LAYOUTS)
        self.log.append(f"create {layout} {properties}")
        self._layout = [column for column in self.columns if column.name in layout]
        schema = pa.schema([(column.name, column.arrow) for column in self.columns])
        self._name = ("delta", f"{self._folder}/history{next(_NUMBERS)}")
        return lake.create_table(
            self._name, schema, partition_by=layout, properties=properties, format="delta"
        )

    def _watched(self) -> DeltaFiles:
        return DeltaFiles(self.table)

    # ------------------------------------------------------------------ steps

    def _operate(self, random: Random, on: str | None = None) -> None:
        """Run one operation, or two at once where no other writer is at work already."""
        if on is None and random.random() < 0.25:
            self._race(random)
        else:
            super()._operate(random, on)

    def _drawn(self, random: Random, kind: str, options: Options) -> Operation:
        if kind != "overwrite":
            found: Operation = draw_operation(random, kind, self.columns, options)
            return found
        partitions = [c for c in self.columns if c.key in {each.key for each in self._layout}]
        way = random.choice(("all", "where", "dynamic")) if partitions else "all"
        least = 1 if way == "dynamic" else 0
        rows = [draw_row(random, self.columns) for _ in range(random.randint(least, 5))]
        if way == "dynamic":
            return Overwrite(rows, self.columns, options, by=tuple(partitions))
        where = draw_condition(random, partitions, depth=1) if way == "where" else None
        return Overwrite(rows, self.columns, options, where)

    def _race(self, random: Random) -> None:
        """Have another writer land before an operation commits: as if one came after the other."""
        overtaken, other = (
            self._drawn(random, random.choice(self.kinds), self._options(random, "main"))
            for _ in range(2)
        )
        self._note(f"{overtaken}, beside: {other}")
        self.operations += 2
        before, landed = self.rows["main"], list[bool]()
        self._files.others_write = True
        with meanwhile(lambda: landed.append(self._lands(other))):
            lands = self._lands(overtaken, may_conflict=True)
        self._files.others_write = False
        done = [one for one, is_done in ((other, any(landed)), (overtaken, lands)) if is_done]
        orders = [self._after(before, order) for order in (done, done[::-1])]
        orders = [rows for rows in orders if rows]
        got = read_tuples(self.table.arrow())
        fitting = [rows for (rows,) in orders if as_tuples(rows, self.columns) == got]
        wanted = "\nor\n  ".join(str(as_tuples(rows, self.columns)) for (rows,) in orders)
        assert fitting, f"two writers left\n  {got}\nnot\n  {wanted}"
        self.rows["main"] = fitting[0]
        self._seen(fitting[0])

    def _after(self, rows: list[Row], operations: Sequence[Operation]) -> list[list[Row]]:
        """Return the one list of rows after some operations; none where one must be refused."""
        for operation in operations:
            found = self._expected(operation, rows).rows
            if found is None:
                return []
            rows = found
        return [rows]

    def _expected(self, operation: Operation, rows: list[Row]) -> Expected:
        """Empty text in a partition column is null (protocol, "Partition Value Serialization")."""
        found = expected(operation, rows)
        keys = [column.key for column in self._layout]
        if found.rows is None:
            return found
        blank = [{key: None for key in keys if row.get(key) == ""} for row in found.rows]
        stored = [row | gone for row, gone in zip(found.rows, blank, strict=True)]
        return replace(found, rows=stored)

    def _lands(self, operation: Operation, *, may_conflict: bool = False) -> bool:
        """Run an operation; return whether it was neither refused nor overtaken."""
        try:
            self._run(self.table, operation)
        except CardinalityError as error:
            self._note(f"refused: {error}")
            return False
        except CommitConflictError as error:
            assert may_conflict, f"a conflict with nobody: {error}"
            self._note(f"conflict: {error}")
            return False
        return True

    def _seen(self, rows: list[Row]) -> None:
        head = self._head("main")
        assert head is not None
        self._at[head] = rows
        self._checked["main"] = self.table.handle.version
        self._files.check(head)

    def _upkeep(self, random: Random) -> None:
        words, work = draw_upkeep(random, self.columns, "main", COMPACTION)
        other = (lambda: self._operate(random, "main")) if random.random() < 0.5 else None
        self._note(f"{words}{', beside:' if other else ''}")
        self._files.others_write = True
        with meanwhile(other):
            work(self.table)
        self._files.others_write = False
        self._check_rows("main")
        self._seen(self.rows["main"])

    def _options(self, random: Random, branch: str) -> Options:
        if self.table.handle.can.row_level_deletes:
            return super()._options(random, branch)
        return Options(branch, random.choice([m for m in MODES if m != "merge-on-read"]))

    # ------------------------------------------------------------------ changes of the table

    @property
    def _is_mapped(self) -> bool:
        return self.table.properties.get(MAPPING, "none") != "none"

    def _new_schema(self) -> Any:
        return changing(self.table, "schema")

    def _field_names(self) -> list[str]:
        return []

    def _free_name(self, random: Random) -> str | None:
        name = super()._free_name(random)
        return name if name is None or self._is_mapped or name.isidentifier() else None

    def _droppable(self) -> list[Column]:
        used = {column.key for column in self._layout}
        return [one for one in self.columns if one.key not in used] if self._is_mapped else []

    def _rename(self, random: Random) -> None:
        if self._is_mapped:
            super()._rename(random)

    def _property(self, random: Random) -> None:
        name = random.choice(sorted(PROPERTIES))
        value = random.choice(PROPERTIES[name])
        self._note(f"set {name} to {value}")
        self.table.set_properties({name: value})

    def _mapping(self, random: Random) -> None:
        if not self._is_mapped:
            self._note("map columns by name")
            self.table.set_properties({MAPPING: "name"})

    def _reopen(self, random: Random) -> None:
        self._note("open the table again")
        self.table = self._lake.table(self._name)
        self._files.table = self.table
        self._check_rows("main")


class DeltaFiles:
    """The files of a table: those of its newest version, and all that its log has ever named."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.others_write = False
        self._named: set[str] = set()
        self._next = 0

    def check(self, version: int) -> None:
        """Check one version, that versions have no holes, and that no file lies around."""
        handle: DeltaHandle = self.table.handle
        for one in range(self._next, version + 1):
            self._name(handle.commit_at(one).files)
        self._next = version + 1
        live = handle.state_at(version).files
        places = live["location"].to_pylist()
        assert len(set(places)) == len(places), f"a file is added twice: {sorted(places)}"
        log = sorted(Path(_path(handle.folder), "_delta_log").glob("*.json"))
        numbers = [int(each.stem) for each in log if each.stem.isdigit()]
        assert numbers == list(range(len(numbers))), f"versions have holes: {numbers}"
        self.check_strays()

    def check_listing(self, version: int) -> None:
        """Check that the metadata table `files` has the files of a version."""
        listed = self.table.inspect("files", snapshot_id=version)["file_path"].to_pylist()
        live = self.table.handle.state_at(version).files["location"].to_pylist()
        assert set(live) <= set(listed), f"{listed} are listed, not {live}"

    def check_strays(self) -> None:
        """Check that the log names every file of the folder."""
        if self.others_write:  # their files are named when they commit
            return
        held = {
            str(Path(place, file))
            for place, _, files in os.walk(_path(self.table.location))
            for file in files
            if "_delta_log" not in place
        }
        strays = held - self._named - set(map(index_location, self._named))
        assert not strays, f"files that no version names: {sorted(strays)}"

    def _name(self, files: pa.Table) -> None:
        self._named |= set(map(_path, files["location"].to_pylist()))
        marked = files.filter(pc.is_valid(files["storage_type"]))
        if marked.num_rows:
            vectors = vector_columns(marked, self.table.location)["location"]
            self._named |= set(map(_path, vectors.to_pylist()))


def _path(location: str) -> str:
    return location.removeprefix("file://")
