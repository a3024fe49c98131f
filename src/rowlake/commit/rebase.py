"""Bring deletes onto a newer head: changes to other rows of a file both land.

Comes in: a `Change` whose position deletes or deletion vectors were made at its starting snapshot,
and a head at which others may have deleted rows of the same data files. Goes out: the change with
deletes that hold both sides' rows, or the `Breach` that forbids it. For each data file that has
deletes and that `Requirements.no_new_deletes_for` names:

- ours = the rows deleted now, without those deleted at the starting snapshot;
- theirs = the rows that delete files added since delete;
- a row in both: refused, whatever the operations are. An update would bring back a row that is
  gone, and a delete would count a row that another deleted, or miss what another made of it. Run
  again, the operation sees what is left;
- an equality delete added since that may apply: refused where it deletes a row that this change
  deletes (or where the data file is too large to look); else it applies beside ours;
- a `replace` deletes only rows that are deleted already, so it is never refused;
- else the union is written in place of our deletes and of theirs (a vector, or a position delete
  file of that data file alone: both go), so a data file never has two vectors. A delete file of
  theirs that is about several data files stays and applies beside ours.

Delete files that the change meant to replace, and that others have replaced already, are not
removed twice. The first delete files are left alone: whoever commits removes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.applicable_deletes import (
    Applying,
    Place,
    added_by,
    deletes_for,
    keys_among,
    live_deletes,
)
from rowlake.commit.deleted_by_value import DeletedByValue
from rowlake.commit.validate import Breach
from rowlake.model.change import Operation
from rowlake.model.distinct import distinct
from rowlake.model.files import Content
from rowlake.plan.delete_index import FACTS, delete_file
from rowlake.plan.files import DELETE_COLUMNS
from rowlake.scan.deletes import all_positions, positions_in
from rowlake.write.position_deletes import DeletedPositions, PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rowlake.model.change import Change
    from rowlake.model.files import DeleteFile
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage

    Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Rebased:
    """A change for one head; `written` are the delete files that were written for it."""

    change: Change
    written: tuple[str, ...] = ()


@dataclass(frozen=True)
class _OwnDelete:
    """What the change deletes of a data file: by which delete file, and whether that is its own."""

    place: Place
    delete: DeleteFile
    is_single: bool


@dataclass
class Rebase:
    """The deletes of one change; what was read for a head is kept for the next one."""

    change: Change
    storage: Storage
    _ours: dict[str, Positions] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing read."""
        self._by_value = DeletedByValue(self.storage)

    @property
    def mergeable(self) -> frozenset[str]:
        """The data files whose deletes can be merged with those of others."""
        return frozenset(self._own_deletes)

    @cached_property
    def _own_deletes(self) -> dict[str, _OwnDelete]:
        """The deletes by data file; a delete file about several data files has to be read."""
        wanted = self.change.requirements.no_new_deletes_for
        deletes = self.change.added_deletes
        by_position = deletes.filter(pc.equal(deletes["content"], int(Content.POSITION_DELETES)))
        if not wanted or not by_position.num_rows:
            return {}
        found: dict[str, _OwnDelete] = {}
        twice: set[str] = set()
        for row in by_position.select([*FACTS, "spec_id", "partition"]).to_pylist():
            delete = delete_file(row)
            place = Place(row["spec_id"], tuple(row["partition"]))
            named = delete.referenced_data_file
            paths = [named] if named else list(all_positions(delete, self.storage))
            # Two delete files about one data file are no operation's of ours: not merged.
            twice |= found.keys() & set(paths)
            found |= {path: _OwnDelete(place, delete, named is not None) for path in paths}
        return {path: own_delete for path, own_delete in found.items() if path in wanted - twice}

    def onto(self, handle: TableHandle) -> Rebased | Breach:
        """Return the change for the head of its branch; writes delete files where deletes merge."""
        since = self._since(handle)
        if not since or not self._own_deletes:
            return Rebased(self.change)
        view = handle.view(ref=self.change.branch)
        entries = self._entries_at(since[-1], view, since)
        theirs = self._theirs(entries, view, since)
        changes_rows = self.change.operation is not Operation.REPLACE
        breach = self._breach(handle, view, since, theirs) if theirs and changes_rows else None
        if breach:
            return breach
        removed = keys_among(entries, self.change.removed_deletes)
        return self._merged(view, theirs, frozenset(removed))

    def _since(self, handle: TableHandle) -> list[SnapshotInfo]:
        start = self.change.requirements.starting_snapshot_id
        since = handle.format.commits_since(handle, self.change.branch, start) or []
        return [commit.snapshot for commit in since]

    def _entries_at(
        self, snapshot: SnapshotInfo, view: TableView, since: list[SnapshotInfo]
    ) -> dict[int, pa.Table]:
        """Return the live delete files of a snapshot; only of new manifests where that will do."""
        # Whether an old delete file is still there is seen in the manifests that kept it.
        new = None if self.change.removed_deletes else _ids(since)
        return live_deletes(snapshot, view, self.storage, added_by=new)

    def _theirs(
        self, entries: Mapping[int, pa.Table], view: TableView, since: list[SnapshotInfo]
    ) -> dict[str, list[Applying]]:
        places = {path: own_delete.place for path, own_delete in self._own_deletes.items()}
        return deletes_for(places, added_by(entries, _ids(since)), view.specs)

    # ------------------------------------------------------------------ refusing

    def _breach(
        self,
        handle: TableHandle,
        view: TableView,
        since: list[SnapshotInfo],
        theirs: Mapping[str, list[Applying]],
    ) -> Breach | None:
        missing = sorted(set(theirs) - set(self._ours))
        if missing and not self._read_ours(handle, view, missing):
            start = self.change.requirements.starting_snapshot_id
            return Breach(f"snapshot {start}, which it read, has expired")
        if not self._clashes(theirs, view):
            return None
        return next(
            found
            for at, snapshot in enumerate(since, 1)
            if (found := self._clash_at(snapshot, view, since[:at]))
        )

    def _clashes(self, theirs: Mapping[str, list[Applying]], view: TableView) -> dict[str, int]:
        """Return the data files of which both sides change a row, with how many; -1: unknown."""
        counts = {path: self._clash(path, deletes, view) for path, deletes in theirs.items()}
        return {path: count for path, count in counts.items() if count}

    def _clash(self, path: str, deletes: list[Applying], view: TableView) -> int:
        ours = self._ours[path]
        by_position = [one for one in deletes if not one.is_equality]
        both = np.intersect1d(ours, self._rows(path, by_position))
        by_value = [one.delete for one in deletes if one.is_equality]
        if by_value and not len(both):
            found = self._by_value.among(ours, path, by_value, view)
            return -1 if found is None else len(found)
        return len(both)

    def _clash_at(
        self, snapshot: SnapshotInfo, view: TableView, since: list[SnapshotInfo]
    ) -> Breach | None:
        entries = self._entries_at(snapshot, view, since)
        clashes = self._clashes(self._theirs(entries, view, since), view)
        if not clashes:
            return None
        known = min(clashes.values()) >= 0
        what = f"changed {sum(clashes.values())} rows" if known else "deleted rows by their values"
        rest = "that it changes too" if known else "from data files that it changes rows of"
        cause = f"snapshot {snapshot.snapshot_id} ({snapshot.operation}) {what} {rest}"
        return Breach(cause, snapshot.snapshot_id, tuple(sorted(clashes)))

    def _read_ours(self, handle: TableHandle, view: TableView, paths: list[str]) -> bool:
        """Find the rows that this change adds to the deletes; False where history does not tell."""
        start = handle.snapshot(self.change.requirements.starting_snapshot_id)
        if start is None:
            return False
        entries = live_deletes(start, view, self.storage, columns=(*DELETE_COLUMNS, "snapshot_id"))
        places = {path: self._own_deletes[path].place for path in paths}
        before = deletes_for(places, entries, view.specs)
        for path in paths:
            deleted_now = positions_in([self._own_deletes[path].delete], path, self.storage)
            deleted = self._rows(path, before.get(path, []))
            self._ours[path] = np.setdiff1d(deleted_now, deleted, assume_unique=True)
        return True

    def _rows(self, path: str, deletes: list[Applying]) -> Positions:
        return positions_in([one.delete for one in deletes], path, self.storage)

    # ------------------------------------------------------------------ merging

    def _merged(
        self,
        view: TableView,
        theirs: Mapping[str, list[Applying]],
        removed: frozenset[tuple[str, int | None]],
    ) -> Rebased:
        replaced = {
            path: [one for one in deletes if one.is_single]
            for path, deletes in theirs.items()
            if self._own_deletes[path].is_single and any(one.is_single for one in deletes)
        }
        gone = {one.delete.key for deletes in replaced.values() for one in deletes}
        kept = self._kept_deletes(set(replaced))
        written = self._write(view, replaced)
        change = replace(self.change, removed_deletes=removed | gone)
        if replaced:
            change = replace(change, added_deletes=pa.concat_tables([kept, written]))
        return Rebased(change, tuple(dict.fromkeys(written["location"].to_pylist())))

    def _kept_deletes(self, replaced: set[str]) -> pa.Table:
        deletes = self.change.added_deletes
        gone = pa.array(sorted(replaced), pa.string())
        # Equality deletes of the change itself name no data file and stay.
        mask = pc.is_in(deletes["referenced_data_file"], gone)
        return deletes.filter(pc.invert(mask))

    def _write(self, view: TableView, replaced: Mapping[str, list[Applying]]) -> pa.Table:
        found = []
        for path, deletes in replaced.items():
            own_delete = self._own_deletes[path]
            own = positions_in([own_delete.delete], path, self.storage)
            every = distinct(own, self._rows(path, deletes))
            found.append(
                DeletedPositions(path, own_delete.place.spec_id, own_delete.place.partition, every)
            )
        folder = next(iter(self._own_deletes.values())).delete.location.rpartition("/")[0]
        writer = PositionDeleteWriter(
            folder,
            view.can.deletion_vectors,
            "file",
            self.storage,
            vectors=view.layout.vectors,
        )
        return writer.write(found)


def _ids(snapshots: list[SnapshotInfo]) -> frozenset[int]:
    return frozenset(snapshot.snapshot_id for snapshot in snapshots)
