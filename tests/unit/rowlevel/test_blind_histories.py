"""Random histories of blind and looking changes on one table, against a plain list of rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowlake.rowlevel.equality_writes import blind_upsert
from rowlake.verbs.write import WriteOptions
from tests.any_format import changing
from tests.lakes import make_lake, rows_of

SCHEMA = pa.schema(
    [
        pa.field("a", pa.int64()),
        pa.field("b", pa.string()),
        pa.field("n", pa.int32()),
    ]
)
A, B = st.integers(0, 6), st.sampled_from(["x", "y", "é"])
KEYS = st.sampled_from([("a",), ("b",), ("a", "b")])
ROW = st.tuples(A, B, st.integers(0, 99))
WITH_NULLS = st.tuples(st.one_of(st.none(), A), st.one_of(st.none(), B), st.integers(0, 99))
SPECS = [[("a", "bucket[2]")], [("b", "identity")], [("a", "identity"), ("b", "truncate[1]")], []]

STEP = st.one_of(
    st.tuples(st.just("append"), st.lists(WITH_NULLS, min_size=1, max_size=6)),
    st.tuples(st.just("upsert"), KEYS, st.lists(ROW, min_size=1, max_size=6)),
    st.tuples(st.just("blind"), st.one_of(st.none(), A), st.one_of(st.none(), B), st.booleans()),
    st.tuples(st.just("delete"), A, st.sampled_from(["auto", "copy-on-write", "merge-on-read"])),
    st.tuples(st.just("spec"), st.sampled_from(SPECS)),
)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(map(list, zip(*rows, strict=True))) if rows else [[], [], []]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


class History:
    """The table, and what should be in it."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.rows: list[tuple[Any, ...]] = []

    def append(self, rows: list[tuple[Any, ...]]) -> None:
        self.table.append(table_of(rows))
        self.rows += rows

    def upsert(self, keys: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        places = [SCHEMA.get_field_index(key) for key in keys]
        unique = {tuple(row[place] for place in places): row for row in rows}
        source, options = table_of(list(unique.values())), WriteOptions()
        blind_upsert(self.table.handle, self.table._engine, source, keys, options)
        kept = [row for row in self.rows if tuple(row[place] for place in places) not in unique]
        self.rows = kept + list(unique.values())

    def blind(self, a: int | None, b: str | None, both: bool) -> None:
        tests = [
            f"{name} IS NULL" if value is None else f"{name} = {literal(value)}"
            for name, value in (("a", a), ("b", b))
        ]
        self.table.delete((" AND " if both else " OR ").join(tests), deletes="equality")
        join = all if both else any
        self.rows = [row for row in self.rows if not join((row[0] == a, row[1] == b))]

    def delete(self, a: int, mode: str) -> None:
        found = self.table.delete(f"a >= {a} AND n > 20", mode=mode)
        gone = [row for row in self.rows if row[0] is not None and row[0] >= a and row[2] > 20]
        assert found.rows_deleted == len(gone)
        self.rows = [row for row in self.rows if row not in gone]

    def spec(self, fields: list[tuple[str, str]]) -> None:
        with changing(self.table, "spec") as update:
            for found in self.table.handle.view().spec.fields:
                update.remove_field(found.name)
        with changing(self.table, "spec") as update:
            for column, transform in fields:
                update.add_field(column, transform, f"{column}_{transform.partition('[')[0]}")


@given(st.sampled_from(["2", "3"]), st.lists(STEP, min_size=2, max_size=8))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_histories_end_with_the_right_rows(tmp_path_factory, table_format, version, steps):
    with make_lake(tmp_path_factory.mktemp("lake")) as lake:
        lake.create_namespace("db")
        made = lake.create_table("db.t", SCHEMA, properties={"format-version": version})
        history = History(made)
        for name, *arguments in steps:
            getattr(history, name)(*arguments)
            assert rows_of(made.arrow()) == sorted(history.rows, key=repr), (name, arguments)
