"""What a row-level operation would do, for people and for programs.

Counts of files and rows are exact at the snapshot named: rows were matched as the operation itself
matches them. Bytes are estimates, made of the sizes that the table's metadata has.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rowlake.model import markup
from rowlake.model.work import DRIVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REMOVE, REWRITE, KEEP = "remove", "rewrite", "keep"
VECTOR, POSITION_DELETES = "deletion vector", "position deletes"
STRATEGIES = (REMOVE, REWRITE, VECTOR, POSITION_DELETES, KEEP)
BY_METADATA, AT_RUN_TIME = "by metadata", "at run time"

_SHOWN_FILES = 5
_DONE = {
    REMOVE: "removed",
    REWRITE: "rewritten",
    VECTOR: "marked by a deletion vector",
    POSITION_DELETES: "marked by position deletes",
    KEEP: "kept",
}


@dataclass(frozen=True)
class PlannedFile:
    """One data file that is not pruned: what is done with it, and why.

    `strategy` is `remove`, `rewrite`, `deletion vector`, `position deletes`, or `keep` (it is read,
    and no row of it changes). `rows` are its live ones.
    """

    location: str
    rows: int
    strategy: str
    reason: str
    rows_updated: int = 0
    rows_deleted: int = 0
    bytes_to_read: int = 0
    bytes_to_write: int = 0


@dataclass(frozen=True)
class Pruned:
    """Data files that are not opened: `when` is `by metadata` or `at run time`."""

    files: int
    when: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What an operation would do at a snapshot; nothing was written.

    - `join`: how target rows find source rows: `aligned` (the source is split by the table's
      partitions), `broadcast` (all of it goes to every task), `by position` (Spark finds the rows),
      or `none` (a predicate says which);
    - `key_index`: how the table's key index was used, or why not; empty without one;
    - `files`: the data files that are not pruned; `files_matched` are those that change;
    - `ran_on`, `spark_jobs`, `spark_tasks`: where the rows were matched (`driver`, `spark`, `driver
      and spark`), which is where the operation runs too, and `ran_on_reason` why.
    """

    operation: str
    table: str
    snapshot_id: int | None
    mode: str
    isolation: str
    join: str = "none"
    predicate: str = "true"
    key_index: str = ""
    source_rows: int | None = None
    files_considered: int = 0
    pruned: tuple[Pruned, ...] = ()
    files: tuple[PlannedFile, ...] = ()
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    rows_unchanged: int = 0
    bytes_to_read: int = 0
    bytes_to_write: int = 0
    ran_on: str = DRIVER
    ran_on_reason: str = "only metadata is read"
    spark_jobs: int = 0
    spark_tasks: int = 0

    @property
    def files_pruned_by_metadata(self) -> int:
        """How many data files cannot hold a row of the statement's own predicate."""
        return self._pruned(BY_METADATA)

    @property
    def files_pruned_at_run_time(self) -> int:
        """How many more cannot hold a match of the source's rows, or of the rows Spark found."""
        return self._pruned(AT_RUN_TIME)

    @property
    def files_matched(self) -> int:
        """How many data files change."""
        return sum(file.strategy != KEEP for file in self.files)

    def _pruned(self, when: str) -> int:
        return sum(each.files for each in self.pruned if each.when == when)

    def to_dict(self) -> dict[str, object]:
        """Return all fields by name, counts of files included, in plain values."""
        counted = {
            "files_pruned_by_metadata": self.files_pruned_by_metadata,
            "files_pruned_at_run_time": self.files_pruned_at_run_time,
            "files_matched": self.files_matched,
        }
        found = asdict(self)
        found["pruned"] = list(found["pruned"])
        found["files"] = list(found["files"])
        return {**found, **counted}

    def __str__(self) -> str:
        return "\n".join(_drawn(self._tree()))

    def _repr_html_(self) -> str:
        return markup.block(markup.tree(str(self)))

    # --- the tree: (text, branches below it)

    def _tree(self) -> _Node:
        head = f"{self.operation.upper()} on {self.table}"
        at = "an empty table" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        return _Node(
            f"{head} (at {at}, {self.mode}, {self.isolation})",
            (
                self._matching(),
                *([_Node(f"key index: {self.key_index}")] if self.key_index else ()),
                self._files(),
                *self._strategies(),
                self._rows(),
                self._place(),
                self._bytes(),
            ),
        )

    def _matching(self) -> _Node:
        source = "" if self.source_rows is None else f", {_count(self.source_rows, 'source row')}"
        texts = {
            "none": "all rows" if self.predicate == "true" else f"rows of {self.predicate}",
            "aligned": f"join by key, aligned with the table's partitions{source}",
            "broadcast": f"join by key, all of the source for every task{source}",
            "by position": f"by position, Spark finds the rows{source}",
        }
        return _Node(texts[self.join])

    def _files(self) -> _Node:
        pruned = (
            _Node(f"{each.files:,} pruned {each.when}: {each.reason}") for each in self.pruned
        )
        opened = f"{len(self.files):,} left, {self.files_matched:,} of them with rows that change"
        return _Node(f"{_count(self.files_considered, 'data file')}", (*pruned, _Node(opened)))

    def _strategies(self) -> Iterable[_Node]:
        groups: dict[str, list[PlannedFile]] = defaultdict(list)
        for file in self.files:
            groups[file.strategy].append(file)
        for strategy in STRATEGIES:
            if strategy in groups:
                yield _strategy(strategy, groups[strategy])

    def _rows(self) -> _Node:
        counts = {
            "updated": self.rows_updated,
            "deleted": self.rows_deleted,
            "inserted": self.rows_inserted,
            "copied": self.rows_copied,
            "unchanged": self.rows_unchanged,
        }
        said = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        return _Node(f"rows: {said or 'none changes'}")

    def _bytes(self) -> _Node:
        return _Node(
            f"about {size_text(self.bytes_to_read)} to read, "
            f"{size_text(self.bytes_to_write)} to write"
        )

    def _place(self) -> _Node:
        counts = f"{_count(self.spark_tasks, 'task')} in {_count(self.spark_jobs, 'job')}, "
        return _Node(
            f"runs on {self.ran_on}: {counts if self.spark_jobs else ''}{self.ran_on_reason}"
        )


@dataclass(frozen=True)
class _Node:
    text: str
    below: Sequence[_Node] = ()


def _strategy(strategy: str, files: list[PlannedFile]) -> _Node:
    head = f"{_count(len(files), 'file')} {_DONE[strategy]}"
    shown = [_Node(f"{_short(file.location)}: {file.reason}") for file in files[:_SHOWN_FILES]]
    rest = len(files) - _SHOWN_FILES
    if strategy == KEEP:
        return _Node(f"{head}: {files[0].reason}")
    return _Node(head, (*shown, *([_Node(f"and {rest:,} more")] if rest > 0 else ())))


def _drawn(node: _Node) -> Iterable[str]:
    yield node.text
    for number, child in enumerate(node.below, start=1):
        is_last = number == len(node.below)
        first, *others = _drawn(child)
        yield f"{'└─' if is_last else '├─'} {first}"
        yield from (f"{'  ' if is_last else '│ '} {line}" for line in others)


def _short(location: str) -> str:
    """Return a location without the prefix that a table's files share, as far as it is known."""
    _, data, rest = location.rpartition("/data/")
    return rest if data else location.rpartition("/")[2]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size_text(size_in_bytes: int) -> str:
    """Return a size as people read it: `934 B`, `1.2 kB`, `34.0 MB`."""
    size = float(size_in_bytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:,.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
