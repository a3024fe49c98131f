"""Maintenance: compaction after micro-batches, expiry with orphan removal, Z-order.

rowlake and Iceberg Java are given the same CALL statements, Delta its OPTIMIZE. A table is made
ready before the clock starts: fresh, with two rounds of case 2 in it.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.case import Case, Contestant, Step, entrants
from bench.changes import MICRO_BATCH
from bench.editors.base import Base, base
from bench.peers.base import TableRef, row_sums
from bench.staging import Source, stage
from bench.tables import COPIES, shared

if TYPE_CHECKING:
    from bench.editors.base import Editor
    from bench.lab import Lab

ROUNDS_BEFORE = 2
LAZY = ("rowlake-lazy", "iceberg-v3", "delta-dv")
POSITIONS = ("rowlake-v2", "iceberg-mor-v2")
EAGER = ("rowlake-eager",)
CALLERS = ("rowlake", "iceberg-java")

EXPIRY_FILES = 100_000
EXPIRY_FILES_SMALL = 1_000
CONCURRENT_DELETES = 8
ORPHANS = 500
LONG_AGO_S = 10 * 86_400

ZORDER_FILES = 100
ZORDER_ROWS = 1_000_000
ZORDER_COLUMNS = ("a", "b", "c", "d")


def compaction(lab: Lab) -> list[Contestant]:
    """Fold the deletes of two rounds in, or only rewrite the position deletes."""
    rows = lab.options.row_level_rows
    start = base(lab, rows, aligned=True)
    sources = [stage(lab, rows, MICRO_BATCH, n, aligned=True) for n in range(ROUNDS_BEFORE)]

    def make(name: str) -> Contestant:
        editor: Editor = lab.editor(name)
        ready = partial(_make_ready, editor, start, sources)
        steps = _compaction_steps(name, editor, ready, partial(_eager_round, editor, sources))
        return Contestant(name, tuple(steps), close=editor.drop)

    return entrants(lab.wanted(*LAZY, *POSITIONS, *EAGER), make)


def _make_ready(editor: Editor, start: Base, sources: list[Source]) -> None:
    editor.fresh(start)
    for source in sources:
        editor.merge(source)


def _eager_round(editor: Editor, sources: list[Source]) -> None:
    editor.merge(sources[0])


def _compaction_steps(name: str, editor: Editor, ready: Any, eager_round: Any) -> list[Step]:
    if name in EAGER:
        return [Step("eager round", eager_round, lambda _: editor.truth(), before=ready)]
    kind = "minor" if name in POSITIONS else "major"
    work = editor.compact_deletes if kind == "minor" else editor.compact
    steps = [
        Step(kind, work, before=ready, facts=editor.facts),
        Step(f"read after {kind}", editor.read, lambda answer: (answer, editor.truth())),
    ]
    if hasattr(editor, "read_clean"):
        steps.append(Step("clean read", editor.read_clean))
    return steps


def expiry(lab: Lab) -> list[Contestant]:
    """Expire all snapshots but the last, which dropped half of the files; remove orphans."""
    files = EXPIRY_FILES if lab.options.rows is None else EXPIRY_FILES_SMALL

    def make(name: str) -> Contestant:
        table = TableRef(lab.java_warehouse, f"{COPIES}.expiry_{name.replace('-', '_')}")

        def prepare(_: int) -> None:
            _expiry_table(lab, table, files)

        step = Step(
            "expire and remove orphans",
            partial(_expire, lab, name, table),
            lambda _: sum(1 for path in table.data.rglob("*.parquet")),
        )
        return Contestant(name, (step,), prepare)

    return entrants(lab.wanted(*CALLERS), make)


def _expiry_table(lab: Lab, table: TableRef, files: int) -> None:
    """Make a table whose data files are there, though empty, and old; half are dropped."""
    java = lab.peer("iceberg-java")
    java.drop(table)
    lab.core.call("build", lab.java_warehouse.as_uri(), table.name, str(files))
    name = java.sql_name(table)
    paths = [row[0] for row in lab.spark.sql(f"SELECT file_path FROM {name}.files").collect()]
    orphans = [f"{table.data}/orphan-{number}.parquet" for number in range(ORPHANS)]
    then = time.time() - LONG_AGO_S
    for text in [*paths, *orphans]:
        path = Path(text.removeprefix("file:"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (then, then))
    middle = lab.spark.sql(f"SELECT avg(partition.ss_sold_date_sk) FROM {name}.files").collect()
    java.delete(table, f"ss_sold_date_sk < {int(middle[0][0])}")


def _expire(lab: Lab, system: str, table: TableRef) -> None:
    arguments = f"table => '{table.name}', older_than => TIMESTAMP '2100-01-01 00:00:00'"
    at_once = f"max_concurrent_deletes => {CONCURRENT_DELETES}"
    call(lab, system, f"expire_snapshots({arguments}, retain_last => 1, {at_once})")
    call(lab, system, f"remove_orphan_files(table => '{table.name}', {at_once})")


def call(lab: Lab, system: str, procedure: str) -> None:
    """CALL a procedure of Iceberg's names on a table of the shared warehouse."""
    if system == "rowlake":
        lab.peer("rowlake").java_lake.sql(f"CALL system.{procedure}").collect()
    else:
        lab.spark.sql(f"CALL ice.system.{procedure}").collect()


def zorder(lab: Lab) -> list[Contestant]:
    """Z-order four random columns into a hundred files; count what point filters skip."""
    rows = ZORDER_ROWS if lab.options.rows is None else min(ZORDER_ROWS, lab.options.rows)
    start = shared(lab, f"zorder_{rows}", lambda table: _zorder_table(lab, table, rows))

    def make(name: str) -> Contestant:
        table = TableRef(lab.java_warehouse, f"{COPIES}.zorder_{name.replace('-', '_')}")

        def prepare(_: int) -> None:
            lab.peer("iceberg-java").drop(table)
            names = f"{start.name} {table.name}"
            lab.core.call("copy", lab.java_warehouse.as_uri(), names, "format-version=2")

        step = Step(
            "zorder",
            partial(_zorder, lab, name, table, file_size(start)),
            lambda _: row_sums(lab.peer("iceberg-java").fresh_frame(table), ZORDER_COLUMNS),
            facts=partial(skipping, lab, table),
        )
        return Contestant(name, (step,), prepare, needs_warmup=False)

    return entrants(lab.wanted(*CALLERS), make)


def _zorder_table(lab: Lab, table: TableRef, rows: int) -> None:
    random = np.random.default_rng(ZORDER_ROWS)
    columns = {name: random.integers(0, 1 << 30, rows, dtype=np.int64) for name in ZORDER_COLUMNS}
    path = lab.scratch / "zorder.parquet"
    pq.write_table(pa.table(columns), path)
    frame = lab.spark.read.parquet(str(path))
    frame.writeTo(lab.peer("iceberg-java").sql_name(table)).using("iceberg").create()


def file_size(table: TableRef) -> int:
    """Return the size at which the table has the wanted number of files."""
    return sum(path.stat().st_size for path in table.data.rglob("*.parquet")) // ZORDER_FILES


def _zorder(lab: Lab, system: str, table: TableRef, size: int) -> None:
    sizes = {
        "rewrite-all": "true",
        "target-file-size-bytes": str(size),
        "max-file-size-bytes": str(2 * size),
        "min-file-size-bytes": str(size // 2),
    }
    options = ", ".join(f"'{key}', '{value}'" for key, value in sizes.items())
    order = f"zorder({', '.join(ZORDER_COLUMNS)})"
    arguments = f"table => '{table.name}', strategy => 'sort', sort_order => '{order}'"
    call(lab, system, f"rewrite_data_files({arguments}, options => map({options}))")


def skipping(lab: Lab, table: TableRef) -> dict[str, float]:
    """Return the share of files that a point filter on each column skips, by their footers."""
    name = lab.peer("iceberg-java").sql_name(table)
    lab.spark.sql(f"REFRESH TABLE {name}")
    paths = [row[0] for row in lab.spark.sql(f"SELECT file_path FROM {name}.files").collect()]
    bounds = np.array([_bounds(path.removeprefix("file:")) for path in paths])
    points = np.random.default_rng(1).integers(0, 1 << 30, 200)
    low, high = bounds[:, :, 0, None], bounds[:, :, 1, None]
    skipped = ((points < low) | (points > high)).mean(axis=(0, 2))
    return {
        "files": float(len(paths)),
        "skipped_share": float(skipped.mean()),
        "least_skipped_share": float(skipped.min()),
    }


def _bounds(path: str) -> list[tuple[int, int]]:
    footer = pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    found = []
    for column in range(len(ZORDER_COLUMNS)):
        statistics = [group.column(column).statistics for group in groups]
        found.append((min(s.min for s in statistics), max(s.max for s in statistics)))
    return found


CASES = [
    Case(
        "compaction",
        "Compaction after two rounds of case 2: of deletes (minor), of everything (major)",
        compaction,
        ours="rowlake-lazy",
        with_delta=True,
    ),
    Case("expiry", "Expiry and orphan removal", expiry),
    Case("zorder", "Z-order over 4 columns in 100 files", zorder, warmups=0),
]
