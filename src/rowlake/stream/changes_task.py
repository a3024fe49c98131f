"""What tasks of a change feed are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowlake.model.task import FileTask, ScanContext


@dataclass(frozen=True)
class CommitMark:
    """The commit that changes are of; ordinals count the commits that change rows, from 0."""

    ordinal: int
    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True)
class MarkedFile:
    """A data file that stays, with the deletes that applied before a commit and apply after it."""

    before: FileTask
    after: FileTask


@dataclass(frozen=True)
class ChangeGroup:
    """Files of one commit that are read together.

    - `removed` and `added` have the deletes that applied to them before and after the commit;
    - `cancels`: rows of both sides may be the same ones, carried over;
    - `has_row_ids`: each row of both sides has a row id;
    - `images`: files of changed rows, each with its `_change_type`.
    """

    commit: CommitMark
    removed: tuple[FileTask, ...] = ()
    added: tuple[FileTask, ...] = ()
    marked: tuple[MarkedFile, ...] = ()
    cancels: bool = False
    has_row_ids: bool = False
    images: tuple[FileTask, ...] = ()

    def files(self) -> Iterator[FileTask]:
        """Yield every file to open."""
        yield from (*self.removed, *self.added, *self.images)
        yield from (each.before for each in self.marked)

    @property
    def size_in_bytes(self) -> int:
        """How much there is to read at most."""
        return sum(min(each.length, each.file_size_in_bytes) for each in self.files())


@dataclass(frozen=True)
class ChangeContext:
    """What all tasks of one feed share.

    - `rows`: how rows that are surely changes are read: the columns that are needed of them;
    - `whole`: how rows are read that must be compared: all columns, first and in their order;
    - `row_ids`: the raw rows have `_row_id`, the last column of both;
    - `images`: how files of images are read: as `rows`, then `_change_type`.
    """

    rows: ScanContext
    whole: ScanContext
    row_ids: bool = False
    images: ScanContext | None = None

    @property
    def names(self) -> list[str]:
        """The columns of raw rows, without those that describe the change."""
        return list(self.rows.projection.arrow.names)


@dataclass(frozen=True)
class ChangeTask:
    """Some groups."""

    context: ChangeContext
    groups: tuple[ChangeGroup, ...] = field(default=())

    @property
    def files(self) -> tuple[FileTask, ...]:
        """Every file to open."""
        return tuple(each for group in self.groups for each in group.files())
