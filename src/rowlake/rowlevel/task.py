"""What a task that changes rows is told: files, source rows, clauses, how to write.

Source rows are staged (`rowlake.rowlevel.staged`) with every value that a clause assigns, so that a
task evaluates nothing but matches: which source row belongs to which target row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.model.files import WRITTEN_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.merge import Action, When
    from rowlake.model.predicate import Predicate
    from rowlake.model.task import FileTask, ScanContext
    from rowlake.rowlevel.column_comparison import Comparison
    from rowlake.rowlevel.staged import Piece
    from rowlake.rowlevel.strategy import Mode
    from rowlake.write.context import WriteContext
    from rowlake.write.position_deletes import Partition

_DELETE_KEY = pa.struct([("location", pa.string()), ("content_offset", pa.int64())])
# Rows of five kinds: of a target file that changes (`source`), of one with rows that keep source
# rows from being inserted (`kept`), of a part of the source (`part`), of a written file (`file`),
# and of the task itself (`bytes_read` of data and delete files).
OUTCOMES = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("way", pa.string()),
        pa.field("updated", pa.int64()),
        pa.field("deleted", pa.int64()),
        pa.field("copied", pa.int64()),
        pa.field("live", pa.int64()),
        pa.field("unchanged", pa.int64()),
        pa.field("kept", pa.string()),
        pa.field("replaced_deletes", pa.list_(_DELETE_KEY)),
        pa.field("part", pa.int32()),
        pa.field("matched", pa.binary()),
        pa.field("inserted", pa.int64()),
        pa.field("bytes_read", pa.int64()),
        pa.field("file", pa.struct(list(WRITTEN_FILES))),
    ]
)


@dataclass(frozen=True)
class TaskClause:
    """What is done with some rows.

    - `flag`: a staged boolean column; the clause is for source rows where it is TRUE;
    - `predicate`: bound; the clause is for target rows for which it is TRUE;
    - `values`: column of the target -> staged column, or an array of the one value that all rows
      get. An UPDATE leaves the other columns as they are;
    - `comparisons`: the clause is for matches for which all of them are TRUE.
    """

    when: When
    action: Action
    flag: str | None = None
    predicate: Predicate | None = None
    values: Mapping[str, str | pa.Array] = field(default_factory=dict)
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Matching:
    """How target rows find their source rows.

    - by `keys`: pairs of (column of the target, staged column), `null_safe` or not;
    - by `location` and `position`: staged columns that name the target row itself;
    - by neither: every target row has the one source row there is, or needs none.
    `eligible` is a staged boolean column: source rows where it is not TRUE match nothing.
    """

    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    location: str | None = None
    position: str | None = None
    eligible: str | None = None


@dataclass(frozen=True)
class ChangeTask:
    """Some data files to change.

    - `partitions`, `parts`: of each file its encoded partition, and the parts of the source that
      may match its rows;
    - `owned`: parts whose rows no other task matches: what is left of them is inserted here;
    - `matched`: bitmaps of the rows of owned parts that other tasks matched before;
    - `checks_cardinality`: two source rows for one target row are an error;
    - `skips_unchanged`: an UPDATE that changes no value is none;
    - `rejects_matches`: a match is an error;
    - `images`: how the images of changed rows are written, where they are.
    """

    context: ScanContext
    write: WriteContext
    clauses: tuple[TaskClause, ...]
    matching: Matching
    mode: Mode
    delete_folder: str
    as_vectors: bool
    granularity: str
    files: tuple[FileTask, ...] = ()
    partitions: tuple[Partition, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()
    staged_schema: pa.Schema | None = None
    pieces: tuple[Piece, ...] = ()
    owned: frozenset[int] = frozenset()
    matched: Mapping[int, bytes] = field(default_factory=dict)
    checks_cardinality: bool = False
    skips_unchanged: bool = False
    rejects_matches: bool = False
    images: WriteContext | None = None

    def of(self, when: When) -> list[tuple[int, TaskClause]]:
        """Return the clauses for some rows with their numbers."""
        return [(n, clause) for n, clause in enumerate(self.clauses) if clause.when is when]
