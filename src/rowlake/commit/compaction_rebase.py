"""A compaction brought onto a newer head: what others did to its sources is done to its outputs.

Comes in: a `replace` change, which sources each of its tasks made into which outputs, and a head at
which others may have changed rows of the sources. Goes out: the change for that head.

- rows of a source that delete files added since delete: deleted in the output that holds them;
- a source that another commit removed (a rewrite, a delete of the whole file): all of its rows are
  deleted, and it is not removed again; where no source of a task is left its outputs are given up;
- an equality delete added since: applies to the outputs by itself, since they keep the sequence
  number that the compaction started from, where they are in the partition that it is about;
- a task whose outputs are in another order than its sources (sorted, or split by another spec)
  cannot tell by counts where a row went: `locate` looks for it, by row ids, or, where it cannot,
  the task is given up where rows of its sources changed. So is it where the table cannot hold
  deletes of some rows of a file.

What is given up is left as it was in the table, for the next compaction; the files of it are the
caller's to remove. A writer never fails because of a compaction that lands here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.applicable_deletes import Place, deletes_for, live_deletes
from rowlake.commit.history import files_landed
from rowlake.commit.rebase import Rebased
from rowlake.commit.validate import REMOVES_DATA, Breach
from rowlake.model.distinct import distinct
from rowlake.model.format import FileAction
from rowlake.scan.deletes import positions_in
from rowlake.write.position_deletes import DeletedPositions, PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from rowlake.commit.applicable_deletes import Applying
    from rowlake.model.change import Change
    from rowlake.model.format import LandedCommit
    from rowlake.model.handle import TableHandle
    from rowlake.model.rewrite import Output, RewrittenPart
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

    Positions = NDArray[np.int64]
    Locate = Callable[[RewrittenPart, Mapping[str, Positions | None]], dict[str, Positions] | None]


@dataclass(frozen=True)
class _Found:
    """What others did to the sources up to a head: removed them, or deleted rows of them.

    `by_value` are sources that equality deletes may reach; nobody knows which rows these are.
    """

    head: int | None = None
    gone: frozenset[str] = frozenset()
    rows: Mapping[str, Positions] = field(default_factory=dict)
    by_value: frozenset[str] = frozenset()

    @property
    def is_nothing(self) -> bool:
        """True where the sources are as they were."""
        return not (self.gone or self.rows or self.by_value)

    def with_more(self, more: _Found) -> _Found:
        """Return what there is to tell after some more snapshots."""
        rows = dict(self.rows)
        for location, positions in more.rows.items():
            rows[location] = distinct(rows[location], positions) if location in rows else positions
        return _Found(more.head, self.gone | more.gone, rows, self.by_value | more.by_value)


@dataclass
class Carry:
    """One compaction; `delete_folder` is where delete files are written.

    `locate` finds rows of sources in the outputs of a part that are in another order, as
    `RewrittenPart.placed` does of others; it gives None where it cannot tell. What was found at one
    head is kept for the next: who loses to many small commits must not be later with each.
    """

    change: Change
    parts: tuple[RewrittenPart, ...]
    storage: Storage
    delete_folder: str
    locate: Locate | None = None
    _found: _Found = field(default_factory=_Found, init=False)
    _rebased: Rebased | None = field(default=None, init=False)

    @property
    def mergeable(self) -> frozenset[str]:
        """The change deletes no rows of files that are there already."""
        return frozenset()

    def onto(self, handle: TableHandle) -> Rebased | Breach:
        """Return the change for the head of its branch; writes delete files where rows changed."""
        start = self.change.requirements.starting_snapshot_id
        since = handle.format.commits_since(handle, self.change.branch, start)
        if since is None:
            return Breach(f"snapshot {start}, which it read, is no longer in the branch's history")
        seen = [commit.snapshot.snapshot_id for commit in since]
        if self._found.head in seen:
            since = since[seen.index(self._found.head) + 1 :]
        else:
            self._found, self._rebased = _Found(), None
        view = handle.view(ref=self.change.branch)
        more = self._done_by(view, since) if since else _Found(self._found.head)
        self._found = self._found.with_more(more)
        if self._found.is_nothing:
            return Rebased(self.change)
        if self._rebased is None or not more.is_nothing:
            carried = self._carried(view)
            if isinstance(carried, Breach):
                return carried
            self._rebased = carried
        return self._rebased

    def _done_by(self, view: TableView, since: list[LandedCommit]) -> _Found:
        """Return what these snapshots did to the sources."""
        rows, by_value = dict[str, "Positions"](), set[str]()
        for location, deletes in self._theirs(view, since).items():
            by_position = [one.delete for one in deletes if not one.is_equality]
            positions = positions_in(by_position, location, self.storage)
            if len(positions):
                rows[location] = positions
            if len(by_position) < len(deletes):
                by_value.add(location)
        gone = self._removed(since)
        return _Found(since[-1].snapshot.snapshot_id, gone, rows, frozenset(by_value))

    def _removed(self, since: list[LandedCommit]) -> frozenset[str]:
        """Return the sources that are no longer in the table."""
        sources = pa.array(sorted(self.change.removed_data), pa.string())
        gone: set[str] = set()
        for landed in files_landed(since, FileAction.REMOVED_DATA, REMOVES_DATA):
            found = landed.entries["location"]
            gone |= set(found.filter(pc.is_in(found, sources)).to_pylist())
        return frozenset(gone)

    def _theirs(self, view: TableView, since: list[LandedCommit]) -> dict[str, list[Applying]]:
        """Return the delete files that others have added for the sources."""
        places = {
            source.location: Place(source.spec_id, source.partition)
            for part in self.parts
            for source in part.sources
        }
        ids = frozenset(commit.snapshot.snapshot_id for commit in since)
        entries = live_deletes(since[-1].snapshot, view, self.storage, added_by=ids)
        return deletes_for(places, entries, view.specs)

    def _carried(self, view: TableView) -> Rebased | Breach:
        gone = self._found.gone
        kept, empty, deleted = [], set[str](), []
        for part in self.parts:
            if all(source.location in gone for source in part.sources):
                continue
            placed = self._placed(part)
            if placed is None:
                continue
            without_rows, of_some_rows = _split(part, placed)
            if of_some_rows and not view.can.row_level_deletes:
                continue
            kept.append(part)
            empty |= without_rows
            deleted += of_some_rows
        if not kept:
            return Breach("others have changed rows of all data files that it rewrote")
        writer = PositionDeleteWriter(
            self.delete_folder,
            view.can.deletion_vectors,
            "file",
            self.storage,
            vectors=view.layout.vectors,
        )
        written = writer.write(deleted)
        change = replace(
            self.change,
            added_data=self._added(kept, empty),
            removed_data=frozenset(s.location for part in kept for s in part.sources) - gone,
            added_deletes=written,
        )
        return Rebased(change, tuple(dict.fromkeys(written["location"].to_pylist())))

    def _placed(self, part: RewrittenPart) -> dict[str, Positions] | None:
        """Return the rows of outputs that others deleted; None where that is not known."""
        found, rows = self._found, dict[str, "Positions | None"]()
        for source in part.sources:
            if source.location in found.gone:
                rows[source.location] = None
            elif source.location in found.by_value and not self._still_reached(part):
                return None
            elif source.location in found.rows:
                rows[source.location] = found.rows[source.location]
        if not rows or part.keeps_order:
            return part.placed(rows)
        return None if self.locate is None else self.locate(part, rows)

    def _still_reached(self, part: RewrittenPart) -> bool:
        """Return whether new equality deletes reach the outputs as they reach the sources."""
        if self.change.data_sequence_number is None:
            return False
        places = {(source.spec_id, source.partition) for source in part.sources}
        return {(output.spec_id, output.partition) for output in part.outputs} <= places

    def _added(self, kept: list[RewrittenPart], empty: set[str]) -> pa.Table:
        wanted = [o.location for part in kept for o in part.outputs if o.location not in empty]
        if len(wanted) == self.change.added_data.num_rows:
            return self.change.added_data  # and its manifests stay what they are
        locations = self.change.added_data["location"]
        return self.change.added_data.filter(pc.is_in(locations, pa.array(wanted, pa.string())))


def _split(
    part: RewrittenPart, placed: Mapping[str, Positions]
) -> tuple[set[str], list[DeletedPositions]]:
    """Return the outputs of which no row is left, and what is deleted of the others."""
    empty, deleted = set[str](), []
    for output in part.outputs:
        positions = placed.get(output.location)
        if positions is None:
            continue
        if len(positions) == output.record_count:
            empty.add(output.location)
        else:
            deleted.append(_deleted_positions(output, positions))
    return empty, deleted


def _deleted_positions(output: Output, positions: Positions) -> DeletedPositions:
    return DeletedPositions(output.location, output.spec_id, output.partition, positions)
