"""Random histories: after each commit a table and its mirror hold the same rows."""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowlake import connect
from rowlake.model.mirror import MIRROR
from tests.mirrors import MAPPED, OTHER, V3, alter, check_equal

PROPERTIES = {"iceberg": V3, "delta": MAPPED}
STEPS = ("append", "delete", "delete", "upsert", "compact", "add", "rename", "drop", "behind")
HISTORIES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), min_size=3, max_size=6)


class History:
    """A table that is changed step by step; `count` names columns and rows that are new."""

    def __init__(self, lake, kind):
        self.lake, self.count = lake, 0
        self.mirrored = {MIRROR: OTHER[kind]}
        schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v0", pa.int64())])
        properties = {**PROPERTIES[kind], **self.mirrored}
        lake.create_table("ns.t", schema, partition_by="p", properties=properties, format=kind)
        self.append(0)

    @property
    def table(self):
        return self.lake.table("ns.t")

    @property
    def values(self):
        names = self.table.handle.view().schema.arrow.names
        return [one for one in names if one.startswith("v")]

    def some(self, ids):
        columns = {"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids]}
        return pa.table(columns | {one: pa.array(ids, pa.int64()) for one in self.values})

    def append(self, _):
        self.count += 10
        self.table.append(self.some(range(self.count, self.count + 10)))

    def delete(self, number):
        self.table.delete(f"id in ({number}, {number + 1}, {number + 12})")

    def upsert(self, number):
        self.table.upsert(self.some([number, number + 7]), keys=["id"])

    def compact(self, _):
        self.table.rewrite_data_files(options={"rewrite-all": "true"})

    def add(self, _):
        self.count += 1
        alter(self.table, ("add_column", f"v{self.count}", "long"))

    def rename(self, number):
        self.count += 1
        if self.values:
            alter(
                self.table,
                ("rename_column", self.values[number % len(self.values)], f"v{self.count}"),
            )

    def drop(self, number):
        if len(self.values) > 1:
            alter(self.table, ("delete_column", self.values[number % len(self.values)]))

    def behind(self, number):
        """Let the mirror fall behind by some commits, and catch up with the next one."""
        self.table.unset_properties([MIRROR])
        self.delete(number)
        self.append(number)
        self.rename(number)
        self.table.set_properties(self.mirrored)


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=HISTORIES)
def test_both_hold_the_same_rows_after_each_commit(kind, steps):
    with tempfile.TemporaryDirectory() as folder, connect(folder) as lake:
        lake.create_namespace("ns")
        history = History(lake, kind)
        check_equal(history.table)
        for step, number in steps:
            getattr(history, step)(number)
            check_equal(history.table)
