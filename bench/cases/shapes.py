"""Tables of difficult shapes: skew, many columns, long keys, many small files, one huge file.

rowlake and Iceberg v3 get the same MERGE of about 1 % of the rows, then a count with a sum; the
counters say how many tasks did it and what they read. Iceberg Java checks the rows of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bench import tables
from bench.case import Case, Contestant, Step, entrants
from bench.editors.summary import iceberg_facts
from bench.peers.base import TableRef, row_sums
from bench.session import CATALOG

if TYPE_CHECKING:
    from bench.lab import Lab

SYSTEMS = ("rowlake-lazy", "iceberg-v3")
LAZY = {
    "format-version": "3",
    **{f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")},
}
SHARE = 100
COLUMNS = 200
PAYLOAD = "CAST(id % 1000 AS INT) AS a, CAST(id AS DOUBLE) AS b, uuid() AS c"


@dataclass(frozen=True)
class Shape:
    """A table of `rows` made of `columns` over `range`, its keys, and what a MERGE sets.

    `files` is how many data files it has at the least; `spoiled`: one row in fifty of it is deleted
    before, in every file.
    """

    name: str
    title: str
    columns: str
    keys: tuple[str, ...]
    rows: int
    sets: tuple[str, ...] = ("a",)
    partition_by: str = ""
    files: int = 16
    spoiled: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    only_full: bool = False

    def sized(self, lab: Lab) -> int:
        """Return its rows; --rows bounds them."""
        return self.rows if lab.options.rows is None else min(self.rows, lab.options.rows)


SHAPES = (
    Shape(
        "skew",
        "MERGE where one of 16 partitions holds half of the rows",
        f"id AS k, CAST(IF(id % 2 = 0, 0, id % 16) AS INT) AS p, {PAYLOAD}",
        ("p", "k"),
        4_000_000,
        partition_by="p",
    ),
    Shape(
        "wide",
        f"MERGE of 3 of {COLUMNS} columns",
        "id AS k, "
        + ", ".join(f"CAST(id * {n + 7} % 100003 AS INT) AS a{n}" for n in range(COLUMNS - 1)),
        ("k",),
        400_000,
        sets=("a1", "a70", "a190"),
    ),
    Shape(
        "string_keys",
        "MERGE by a text of 40 characters",
        f"sha1(CAST(id AS STRING)) AS k, {PAYLOAD}",
        ("k",),
        2_000_000,
    ),
    Shape(
        "composite_keys",
        "MERGE by four columns: text, date, int, bigint",
        "concat('region-', id % 40) AS k1, date_add(DATE '2020-01-01', CAST(id % 900 AS INT)) AS "
        f"k2, CAST(id % 7 AS INT) AS k3, id AS k4, {PAYLOAD}",
        ("k1", "k2", "k3", "k4"),
        2_000_000,
        only_full=True,
    ),
    Shape(
        "small_files",
        "MERGE into 10 000 small files that all have deletes",
        f"id AS k, {PAYLOAD}",
        ("k",),
        1_000_000,
        files=10_000,
        spoiled=True,
        only_full=True,
    ),
    Shape(
        "huge_file",
        "MERGE into one file of 2 GB",
        f"id AS k, {PAYLOAD}, uuid() AS d",
        ("k",),
        20_000_000,
        files=1,
        properties={"write.target-file-size-bytes": str(16 * 1024**3)},
        only_full=True,
    ),
)


def contestants(shape: Shape, lab: Lab) -> list[Contestant]:
    """Return both systems; every round starts from a fresh copy."""
    rows = shape.sized(lab)
    start = tables.shared(lab, f"{shape.name}_{rows}", partial(_build, lab, shape, rows))
    source = tables.shared(
        lab, f"{shape.name}_{rows}_changes", partial(_build_source, lab, shape, start)
    )
    return entrants(lab.wanted(*SYSTEMS), partial(_contestant, lab, shape, start, source))


def _contestant(lab: Lab, shape: Shape, start: TableRef, source: TableRef, name: str) -> Contestant:
    held: list[TableRef] = []

    def drop() -> None:
        while held:
            lab.peer("iceberg-java").drop(held.pop())

    def prepare(_: int) -> None:
        drop()
        held.append(tables.copy_of(lab, start, f"{shape.name}_{name[:4]}", LAZY))

    def run(text: str) -> Any:
        named = {"target": held[0].name, "source": source.name}
        if name.startswith("rowlake"):
            return lab.peer("rowlake").java_lake.sql(text.format(**named)).collect()
        named = {key: f"{CATALOG}.{value}" for key, value in named.items()}
        return lab.spark.sql(text.format(**named)).collect()

    def truth(answer: Any) -> Any:
        frame = lab.peer("iceberg-java").fresh_frame(held[0])
        return [tuple(row) for row in answer], row_sums(frame, frame.columns)

    column = shape.sets[0]
    steps = (
        Step("merge", partial(run, merge_text(shape)), facts=lambda: iceberg_facts(held[0])),
        Step("read", partial(run, f"SELECT count(*), sum({column}) FROM {{target}}"), truth),
    )
    return Contestant(name, steps, prepare, close=drop)


def merge_text(shape: Shape) -> str:
    """Return the MERGE of a shape, into `{target}` from `{source}`."""
    on = " AND ".join(f"t.{key} = s.{key}" for key in shape.keys)
    sets = ", ".join(f"{name} = s.{name}" for name in shape.sets)
    return (
        f"MERGE INTO {{target}} t USING {{source}} s ON {on} "
        f"WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT *"
    )


def _build(lab: Lab, shape: Shape, rows: int, table: TableRef) -> None:
    files = min(shape.files, max(1, rows // 100))
    frame = lab.spark.range(0, rows, 1, files).selectExpr(*shape_columns(shape))
    writer = frame.writeTo(f"{CATALOG}.{table.name}").using("iceberg")
    for key, value in {**LAZY, **shape.properties, "write.distribution-mode": "none"}.items():
        writer = writer.tableProperty(key, value)
    if shape.partition_by:
        from pyspark.sql import functions as sf

        frame = frame.repartition(shape.partition_by)
        writer = frame.writeTo(f"{CATALOG}.{table.name}").using("iceberg")
        writer = writer.tableProperty("format-version", "3")
        writer = writer.partitionedBy(sf.col(shape.partition_by))
    writer.create()
    if shape.spoiled:
        lab.peer("iceberg-java").delete(table, f"{shape.keys[0]} % 50 = 7")


def shape_columns(shape: Shape) -> list[str]:
    """Return the expressions of a shape; commas inside brackets separate none."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(shape.columns):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append(shape.columns[start:at].strip())
            start = at + 1
    return [*found, shape.columns[start:].strip()]


def _build_source(lab: Lab, shape: Shape, start: TableRef, table: TableRef) -> None:
    """Take one row in a hundred, by its keys, with other values in the columns that are set."""
    frame = lab.peer("iceberg-java").frame(start)
    keys = ", ".join(shape.keys)
    values = [
        f"CAST({name} + 1 AS INT) AS {name}" if name in shape.sets else name
        for name in frame.columns
    ]
    some = frame.where(f"pmod(xxhash64({keys}), {SHARE}) = 0").selectExpr(*values)
    some.coalesce(2).writeTo(f"{CATALOG}.{table.name}").using("iceberg").create()


CASES = [
    Case(
        shape.name,
        shape.title,
        partial(contestants, shape),
        ours="rowlake-lazy",
        only_full=shape.only_full,
    )
    for shape in SHAPES
]
