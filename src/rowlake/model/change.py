"""A change to a table: actions on files, and the requirements under which they may land.

Operations build a `Change` once, after their files are written; committing it may take several
tries, each of which applies the same actions to the newest head after checking the requirements
against the snapshots that landed in between.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rowlake.model.files import WRITTEN_FILES
from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rowlake.model.app_batch import AppBatch
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView


class Operation(str, enum.Enum):
    """The spec's snapshot operations."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class Isolation(str, enum.Enum):
    """How much of what landed while it ran an operation may ignore."""

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"


def no_files() -> pa.Table:
    """Return an empty set of written files."""
    return WRITTEN_FILES.empty_table()


class RowCheck(Protocol):
    """The rows that an operation would have changed or matched, had they been there."""

    def are_in(self, view: TableView, files: pa.Table) -> bool:
        """Return whether data files of the view hold such a row; True where it is not known."""


@dataclass(frozen=True)
class Requirements:
    """What must still hold at the head for a change to land (paper §3.1.4, §3.2.8).

    Nothing is checked against snapshots up to `starting_snapshot_id` (None: from the first).

    - `no_new_data`: no data file added since that may hold a row of `conflict_detection_filter`,
      and that, where there is a `row_check`, does hold one;
    - `no_new_deletes`: no delete file added since, and no data file removed, that may touch a row
      of the filter (serializable overwrites and deletes by filter);
    - `no_new_deletes_for`: no delete added since that applies to these data files; of those that
      the change itself deletes rows of (position deletes, vectors), none of the same rows: deletes
      of other rows are merged when it lands;
    - `files_exist`: these data files are still in the table;
    - `no_rows_lost_from`: no row of these data files was deleted since (a compaction may move
      them): rows that matched and kept a source row from being inserted;
    - `no_data_older_than`: no data file added since has a data sequence number below this one (a
      compaction keeps old ones): equality deletes that the change removes would apply to it.
    """

    starting_snapshot_id: int | None = None
    conflict_detection_filter: Predicate | None = None
    no_new_data: bool = False
    no_new_deletes: bool = False
    no_new_deletes_for: frozenset[str] = frozenset()
    files_exist: frozenset[str] = frozenset()
    no_rows_lost_from: frozenset[str] = frozenset()
    no_data_older_than: int | None = None
    row_check: RowCheck | None = None


@dataclass(frozen=True)
class MovedMark:
    """How far an identity column has come by a change; it was at `before` when that was planned."""

    column: str
    before: int | None
    after: int


@dataclass(frozen=True)
class Change:
    """Actions + requirements.

    - `added_data`, `added_deletes`: tables of `WRITTEN_FILES`. `data_sequence_number` is what
      rewritten data keeps instead of taking the new snapshot's (compaction);
      `delete_sequence_numbers` are what rewritten delete files keep, by location.
    - `removed_data`: locations; `removed_deletes`: keys of delete files (`DeleteFile.key`).
    - `remove_where`: remove every data file all of whose rows match; a file of which only some
      rows may match makes the change fail, since that needs a rewrite.
    - `replaced_partitions`: remove every data file of these (spec id, encoded partition) keys
      (dynamic overwrite).
    - `app_batch`: the batch of a stream that the change is, marked in the same commit.
    - `table_properties`: properties of the table that are set in the same commit.
    - `images`: files of the rows that the change changes (`Content.IMAGES`), for tables that keep
      them.
    - `moved_marks`: identity columns that the rows added have new values of. The change must not
      land where another writer has used values since it was planned.
    - `verb`: the operation by the name that users know, for the table's history.
    """

    operation: Operation
    added_data: pa.Table = field(default_factory=no_files)
    added_deletes: pa.Table = field(default_factory=no_files)
    removed_data: frozenset[str] = frozenset()
    removed_deletes: frozenset[tuple[str, int | None]] = frozenset()
    remove_where: Predicate | None = None
    replaced_partitions: frozenset[tuple[int, tuple[bytes | None, ...]]] = frozenset()
    data_sequence_number: int | None = None
    delete_sequence_numbers: Mapping[str, int] = field(default_factory=dict)
    requirements: Requirements = field(default_factory=Requirements)
    branch: str = "main"
    stage_only: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    app_batch: AppBatch | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    images: pa.Table = field(default_factory=no_files)
    moved_marks: tuple[MovedMark, ...] = ()
    verb: str = ""

    __repr__ = redacted_repr
