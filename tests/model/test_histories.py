"""Random histories of a table against plain Python: rows, schemas, specs, branches, time travel.

A table is a list of rows; a row maps column ids (the test's own) to values. After every step the
table, its branches and every older snapshot read as the list says.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyiceberg.types import DoubleType, LongType, StringType

from rowlake import connect

TYPES = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "string": (pa.string(), st.text(max_size=8)),
}
ADDED = {"long": LongType(), "double": DoubleType(), "string": StringType()}
PROMOTED = {"int": ("long", LongType()), "float": ("double", DoubleType())}
TRANSFORMS = {
    "int": ["identity", "bucket[4]", "truncate[10]"],
    "long": ["identity", "bucket[3]", "truncate[100]"],
    "string": ["identity", "bucket[2]", "truncate[2]"],
}
NAMES = ["id", "qty", "note", "a b", "x.y", "ä", "select", "Mixed"]

Row = dict[int, Any]


class Column:
    def __init__(self, key: int, name: str, kind: str) -> None:
        self.key, self.name, self.kind = key, name, kind


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="rowlake-history-"))
        self.lake = connect(warehouse=str(self.folder))
        self.lake.create_namespace("db")
        self.next_key = 0
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self.snapshots: dict[int, tuple[list[Column], list[Row]]] = {}
        self.branches: dict[str, list[Row]] = {}
        self.fields: list[str] = []
        self.spec_sources: list[tuple[int, str]] = []

    def teardown(self) -> None:
        self.lake.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # ------------------------------------------------------------- helpers

    def new_column(self, name: str, kind: str) -> Column:
        self.next_key += 1
        return Column(self.next_key, name, kind)

    def free_name(self, data: st.DataObject) -> str | None:
        used = {column.name.lower() for column in self.columns}
        # A column may not take the name of a partition field of another column.
        specs = self.table.handle.metadata.partition_specs
        used |= {field.name.lower() for spec in specs for field in spec.fields}
        free = [name for name in NAMES if name.lower() not in used]
        return data.draw(st.sampled_from(free)) if free else None

    def draw_rows(self, data: st.DataObject, most: int = 6) -> list[Row]:
        one = st.fixed_dictionaries(
            {column.key: st.none() | TYPES[column.kind][1] for column in self.columns}
        )
        return data.draw(st.lists(one, min_size=1, max_size=most))

    def as_arrow(self, rows: list[Row]) -> pa.Table:
        return pa.table(
            [pa.array([row[c.key] for row in rows], TYPES[c.kind][0]) for c in self.columns],
            names=[column.name for column in self.columns],
        )

    def committed(self) -> None:
        snapshot_id = self.table.handle.metadata.current_snapshot_id
        if snapshot_id is not None:
            kept = [Column(c.key, c.name, c.kind) for c in self.columns]
            self.snapshots[snapshot_id] = (kept, list(self.rows))

    def check(self, found: pa.Table, columns: list[Column], rows: list[Row]) -> None:
        assert found.column_names == [column.name for column in columns]
        got = sorted(map(repr, zip(*[c.to_pylist() for c in found.columns], strict=True)))
        want = sorted(repr(tuple(row.get(c.key) for c in columns)) for row in rows)
        assert got == want

    # ------------------------------------------------------------- rules

    @initialize(data=st.data(), version=st.sampled_from(["2", "3"]))
    def create(self, data: st.DataObject, version: str) -> None:
        self.columns = [self.new_column("id", "int"), self.new_column("note", "string")]
        kind = data.draw(st.sampled_from(["none", "id", "bucket(2, id)", "truncate(1, note)"]))
        schema = pa.schema([(c.name, TYPES[c.kind][0]) for c in self.columns])
        self.table = self.lake.create_table(
            "db.t",
            schema,
            partition_by=[] if kind == "none" else [kind],
            properties={"format-version": version, "commit.manifest.min-count-to-merge": "3"},
        )
        self.fields = [field.name for field in self.table.spec.fields]

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data)
        self.table.append(self.as_arrow(rows))
        self.rows = self.rows + rows
        self.committed()

    @rule(data=st.data())
    def overwrite_all(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data)
        self.table.overwrite(self.as_arrow(rows))
        self.rows = rows
        self.committed()

    @precondition(lambda self: self.rows)
    @rule()
    def truncate(self) -> None:
        self.table.truncate()
        self.rows = []
        self.committed()

    @rule(data=st.data(), kind=st.sampled_from(sorted(ADDED)))
    def add_column(self, data: st.DataObject, kind: str) -> None:
        name = self.free_name(data)
        if name is None or len(self.columns) > 5:
            return
        with self.table.evolve().update_schema() as update:
            update.add_column((name,), ADDED[kind])
        self.columns = [*self.columns, self.new_column(name, kind)]

    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        name = self.free_name(data)
        if name is None:
            return
        column = data.draw(st.sampled_from(self.columns))
        if "." in column.name:
            return
        with self.table.evolve().update_schema() as update:
            update.rename_column((column.name,), name)
        self.columns = [
            Column(c.key, name, c.kind) if c.key == column.key else c for c in self.columns
        ]

    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        partitioned = {
            field.source_id
            for spec in self.table.handle.metadata.partition_specs
            for field in spec.fields
        }
        schema = self.table.schema
        free = [
            c
            for c in self.columns
            if schema.find_field(c.name).field_id not in partitioned and "." not in c.name
        ]
        if len(self.columns) < 2 or not free:
            return
        column = data.draw(st.sampled_from(free))
        with self.table.evolve().update_schema() as update:
            update.delete_column((column.name,))
        self.columns = [c for c in self.columns if c.key != column.key]

    @rule(data=st.data())
    def promote_column(self, data: st.DataObject) -> None:
        free = [c for c in self.columns if c.kind in PROMOTED and "." not in c.name]
        if not free:
            return
        column = data.draw(st.sampled_from(free))
        kind, wider = PROMOTED[column.kind]
        with self.table.evolve().update_schema() as update:
            update.update_column((column.name,), wider)
        self.columns = [
            Column(c.key, c.name, kind) if c.key == column.key else c for c in self.columns
        ]

    @rule(data=st.data())
    def change_spec(self, data: st.DataObject) -> None:
        from pyiceberg.transforms import parse_transform

        current = [field.name for field in self.table.spec.fields]
        if current and data.draw(st.booleans()):
            with self.table.evolve().update_spec() as update:
                update.remove_field(data.draw(st.sampled_from(current)))
            return
        free = [c for c in self.columns if c.kind in TRANSFORMS and "." not in c.name]
        if not free:
            return
        column = data.draw(st.sampled_from(free))
        transform = data.draw(st.sampled_from(TRANSFORMS[column.kind]))
        source = self.table.schema.find_field(column.name).field_id
        if any(f.source_id == source for f in self.table.spec.fields):
            return
        number = len(self.table.handle.metadata.partition_specs)
        with self.table.evolve().update_spec() as update:
            update.add_field(column.name, parse_transform(transform), f"part_{number}")

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        ancestors = []
        current = self.table.handle.metadata.current_snapshot_id
        while current is not None:
            ancestors.append(current)
            current = self.table.handle.metadata.snapshot_by_id(current).parent_snapshot_id
        known = [found for found in ancestors if found in self.snapshots]
        chosen = data.draw(st.sampled_from(known))
        self.table.rollback_to(snapshot_id=chosen)
        self.rows = list(self.snapshots[chosen][1])

    @precondition(lambda self: self.snapshots and len(self.branches) < 2)
    @rule()
    def branch_off(self) -> None:
        name = f"b{len(self.branches)}"
        self.table.create_branch(name)
        self.branches[name] = list(self.rows)

    @precondition(lambda self: self.branches)
    @rule(data=st.data())
    def append_to_branch(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.branches)))
        rows = self.draw_rows(data)
        self.table.append(self.as_arrow(rows), branch=name)
        self.branches[name] = self.branches[name] + rows

    # ------------------------------------------------------------- what must hold

    @invariant()
    def table_reads_as_the_list(self) -> None:
        if self.columns:
            self.check(self.table.arrow(), self.columns, self.rows)

    @invariant()
    def branches_read_as_their_lists(self) -> None:
        for name, rows in self.branches.items():
            self.check(self.table.arrow(ref=name), self.columns, rows)

    @invariant()
    def the_oldest_snapshot_reads_as_it_was(self) -> None:
        for snapshot_id, (columns, rows) in list(self.snapshots.items())[:1]:
            self.check(self.table.arrow(snapshot_id=snapshot_id), columns, rows)


TestHistories = pytest.mark.timeout(900)(Histories.TestCase)
TestHistories.settings = settings(
    max_examples=int(os.environ.get("ROWLAKE_HISTORIES", "200")),
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
