"""Which rows a commit changed, by what the commit itself says (PROTOCOL.md, "Change Data Files").

Comes in: a commit, and the columns that its files are read in. Goes out: `RowChanges`. A file that
is removed with one vector and added with another stays: rows that only one of the two has are its
changes. Actions whose `dataChange` is false have none. A commit with change data files is read from
them alone. Nothing but the commit is read, except where removes leave out what is needed of a file:
then the version before has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.commits import change_files
from rowlake.delta.listing import SPEC_ID, FileRows
from rowlake.delta.live_files import with_stats
from rowlake.delta.state import file_keys
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.files import Status
from rowlake.model.format import RowChanges

if TYPE_CHECKING:
    from rowlake.delta.commits import Commit
    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.schema import TableColumns


def row_changes(handle: DeltaHandle, commit: Commit, columns: TableColumns) -> RowChanges:
    """Return the files whose rows a commit changed."""
    return _Changes(handle, commit, columns).found()


@dataclass(frozen=True)
class _Changes:
    handle: DeltaHandle
    commit: Commit
    columns: TableColumns

    def found(self) -> RowChanges:
        changing = self.commit.files.filter(self.commit.files["data_change"])
        added = changing.filter(changing["is_add"])
        removed = changing.filter(pc.invert(changing["is_add"]))
        before = _unlike(removed, added)
        after = _unlike(added, removed)
        goes, comes = _elsewhere(before, after), _elsewhere(after, before)
        return RowChanges(
            removed=self._data(self._described(goes, rewritten=comes.num_rows > 0), Status.DELETED),
            added=self._data(comes, Status.ADDED),
            kept=self._data(_at_places_of(after, before), Status.ADDED),
            deletes_before=_by_spec(self._rows(before, Status.DELETED).deletes()),
            deletes_after=_by_spec(self._rows(after, Status.ADDED).deletes()),
            images=self._images(),
        )

    def _images(self) -> dict[int, pa.Table]:
        if not self.commit.other.change_files:
            return {}
        location = self.handle.log.location(self.commit.version)
        return self._data(change_files(self.commit, self.handle.folder, location), Status.ADDED)

    def _data(self, files: pa.Table, status: Status) -> dict[int, pa.Table]:
        self._validate_partitions(files)
        return _by_spec(self._rows(files, status).data(None, tuple(self.columns.physical)))

    def _rows(self, files: pa.Table, status: Status) -> FileRows:
        """Return files of the commit's own version: vectors of it apply to all of them."""
        return FileRows(files, self.handle.state, self.columns, status, self.commit.version)

    def _described(self, removed: pa.Table, *, rewritten: bool) -> pa.Table:
        """Return removes with what their files' adds said, where they leave out what is needed.

        Bounds tell which files of a rewrite may share rows; without them all may.
        """
        lacks = [removed["size"].null_count, rewritten and removed["stats"].null_count]
        if self.columns.spec.fields:
            lacks.append((pc.equal(_counts(removed), 0)).true_count)
        version = self.commit.version - 1
        if not any(lacks) or version < self.handle.log.oldest:
            return removed
        state = self.handle.state_at(version)
        places = pc.index_in(file_keys(removed), value_set=file_keys(state.files))
        if places.null_count:
            return removed
        order = pa.array(np.unique(np.asarray(places.combine_chunks())))
        known = with_stats(state.files.take(order), state, self.handle.columns_of(state))
        index = known.schema.get_field_index("source")
        nowhere = pa.nulls(known.num_rows, pa.int32())
        return known.set_column(index, known.schema.field(index), nowhere)

    def _validate_partitions(self, files: pa.Table) -> None:
        """Refuse files of a time when the table had other partition columns.

        Their values are not in the files, so under other columns they could not be read.
        """
        names = [self.columns.physical[one.source_id][0] for one in self.columns.spec.fields]
        maps = files["partition_values"].combine_chunks()
        keys = pc.unique(maps.keys).to_pylist() if files.num_rows else names
        if set(keys) - set(names):
            raise UnsupportedFeatureError(
                f"Cannot read the changes of {self.handle.name}: version {self.commit.version} has "
                "other partition columns than the end of the feed. Read the versions before and "
                "after the change apart."
            )
        if pc.less(_counts(files), len(names)).true_count:
            raise InvalidStatementError(
                f"Cannot read the changes of {self.handle.name}: version {self.commit.version} "
                "does not name the partitions of its files, or is from before the table had its "
                f"partition columns. Start at version {self.commit.version} or later."
            )


def _counts(files: pa.Table) -> pa.Array:
    """Return how many partition values each file has."""
    maps = files["partition_values"].combine_chunks()
    return pa.array(np.diff(np.asarray(maps.offsets)), pa.int64())


def _unlike(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files that are not on the other side with the same vector."""
    return files.filter(pc.invert(pc.is_in(file_keys(files), value_set=file_keys(others))))


def _elsewhere(files: pa.Table, others: pa.Table) -> pa.Table:
    """Return the files whose location is not on the other side."""
    return files.filter(pc.invert(pc.is_in(files["location"], value_set=others["location"])))


def _at_places_of(files: pa.Table, others: pa.Table) -> pa.Table:
    return files.filter(pc.is_in(files["location"], value_set=others["location"]))


def _by_spec(files: pa.Table) -> dict[int, pa.Table]:
    return {SPEC_ID: files} if files.num_rows else {}
