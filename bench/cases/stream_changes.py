"""What changed in one commit: `changes()` beside Iceberg's `create_changelog_view`.

Both read the same copy-on-write table, in which one MERGE updated 1 % of the rows everywhere and
added a few, and pair updates by key. All columns of every change are produced and thrown away. On
merge-on-read tables, which Iceberg's procedure refuses, rowlake's time is compared with its own:
with ten times the changed rows, and with the same rows changed in a table of ten times the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Contestant, Step, entrants
from bench.changes import KEYS, MICRO_BATCH, Workload, source_rows
from bench.editors.base import Base, base
from bench.peers.base import Layout
from bench.session import CATALOG
from bench.staging import Source, stage
from bench.tables import shared

if TYPE_CHECKING:
    from bench.editors.base import Editor
    from bench.lab import Lab
    from bench.peers.base import TableRef

WORDS = {
    "INSERT": "insert",
    "DELETE": "delete",
    "UPDATE_BEFORE": "update_preimage",
    "UPDATE_AFTER": "update_postimage",
}
TIMES = 10
ROUNDS = 5


@dataclass(frozen=True)
class Commit:
    """One commit of a table: the snapshot before it, and its own."""

    table: TableRef
    before: int
    after: int


# ---------------------------------------------------------------------- copy-on-write


def beside_view(lab: Lab) -> list[Contestant]:
    """Both systems on the table that rowlake's copy-on-write MERGE has changed."""
    rows = lab.options.total_rows
    editor: Editor = lab.editor("rowlake-eager")
    editor.fresh(base(lab, rows, aligned=True))
    commit = _merged(editor, stage(lab, rows, MICRO_BATCH, 0, aligned=True))

    def make(name: str) -> Contestant:
        read = _ours if name == "rowlake" else _view
        step = Step("changes", partial(read, lab, commit), partial(_counted, lab, commit, name))
        return Contestant(name, (step,), close=editor.drop if name == "rowlake" else None)

    return entrants(lab.wanted("rowlake", "iceberg-java"), make)


def _merged(editor: Editor, source: Source) -> Commit:
    table = editor.lake.table(editor.table.name)  # type: ignore[attr-defined]
    before = table.snapshots()[-1].snapshot_id
    editor.merge(source)
    after = editor.lake.table(editor.table.name).snapshots()[-1].snapshot_id  # type: ignore[attr-defined]
    return Commit(editor.table, before, after)  # type: ignore[attr-defined]


def _frame(lab: Lab, commit: Commit) -> Any:
    table = lab.peer("rowlake").lake_of(commit.table).table(commit.table.name)
    return table.changes(start=commit.before, end=commit.after, keys=list(KEYS))


def _ours(lab: Lab, commit: Commit) -> None:
    _consume(_frame(lab, commit))


def _view_of(lab: Lab, commit: Commit) -> Any:
    keys = ", ".join(f"'{key}'" for key in KEYS)
    spans = f"'start-snapshot-id', '{commit.before}', 'end-snapshot-id', '{commit.after}'"
    lab.spark.sql(
        f"CALL {CATALOG}.system.create_changelog_view(table => '{commit.table.name}', "
        f"options => map({spans}), identifier_columns => array({keys}), "
        "changelog_view => 'bench_changes')"
    )
    return lab.spark.table("bench_changes")


def _view(lab: Lab, commit: Commit) -> None:
    _consume(_view_of(lab, commit))


def _consume(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _counted(lab: Lab, commit: Commit, name: str, _: object) -> list[tuple[str, int]]:
    """Return how many changes of each kind a system tells."""
    if name == "rowlake":
        counts = _frame(lab, commit).groupBy("_change_type").count().collect()
        return sorted((kind, count) for kind, count in counts)
    counts = _view_of(lab, commit).groupBy("_change_type").count().collect()
    return sorted((WORDS[kind], count) for kind, count in counts)


# ---------------------------------------------------------------------- merge-on-read


def by_size(lab: Lab) -> list[Contestant]:
    """rowlake alone: more changed rows, and a larger table."""
    rows, buckets = lab.options.total_rows, lab.options.buckets
    wide = _Spread(lab, rows // TIMES, buckets, Workload("changes_wide", 0.1))
    large = _Spread(lab, rows, buckets * TIMES, Workload("changes_large", 0.1, buckets=1 / TIMES))
    few = _Spread(lab, rows, buckets, Workload("changes_few", 0.01))
    many = _Spread(lab, rows, buckets, Workload("changes_many", 0.1))
    named = {
        "1 % of the rows": few,
        "10 % of the rows": many,
        "small table": wide,
        "10× larger table": large,
    }

    def make(_: str) -> Contestant:
        editor: Editor = lab.editor("rowlake-lazy")
        steps = tuple(
            Step(name, partial(_ours, lab, spread.commit(editor)), facts=spread.facts)
            for name, spread in named.items()
        )
        return Contestant("rowlake", steps)

    return entrants(lab.wanted("rowlake"), make)


class _Spread:
    """A table with its own number of buckets, and a commit that changes rows of some of them."""

    def __init__(self, lab: Lab, rows: int, buckets: int, workload: Workload) -> None:
        self.lab, self.rows, self.buckets, self.workload = lab, rows, buckets, workload
        self.changed = 0

    def commit(self, editor: Editor) -> Commit:
        editor.table = None  # type: ignore[attr-defined] # the tables of all steps stay
        editor.fresh(Base(self.rows, self.buckets, self._table(), aligned=False))
        folder = self.lab.scratch / self.workload.name
        folder.mkdir()
        made = source_rows(self.lab.data(self.rows), self.rows, self.buckets, self.workload, 0)
        self.changed = made.num_rows
        import pyarrow.parquet as pq

        pq.write_table(made, folder / "part.parquet", store_decimal_as_integer=True)
        return _merged(editor, Source(made.num_rows, folder, folder))

    def facts(self) -> dict[str, float]:
        return {"rows_changed": float(self.changed), "table_rows": float(self.rows)}

    def _table(self) -> TableRef:
        def build(table: TableRef) -> None:
            java = self.lab.peer("iceberg-java")
            layout = Layout(self.buckets)
            java.create(table, layout)
            self.lab.spark.sql(
                f"ALTER TABLE {java.sql_name(table)} WRITE DISTRIBUTED BY PARTITION "
                "LOCALLY ORDERED BY ss_ticket_number"
            )
            java.append(table, self.lab.source(self.rows), layout)

        return shared(self.lab, f"clean_{self.rows}_{self.buckets}", build)


CASES = [
    Case(
        "changes",
        "Changes of one copy-on-write commit: 1 % of the rows everywhere, 640 inserts",
        beside_view,
        rounds=ROUNDS,
    ),
    Case(
        "changes_sizes",
        "Changes of one merge-on-read commit: ten times the rows, ten times the table",
        by_size,
        rounds=ROUNDS,
    ),
]
