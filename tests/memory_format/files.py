"""A change applied to the files of a head, and the listing of what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.files import MANIFESTS, Status, files_schema
from rowlake.model.format import FileAction
from rowlake.model.transform import partition_type
from rowlake.model.values import decode_partitions
from tests.memory_format.state import SnapshotFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from rowlake.model.change import Change
    from tests.memory_format.state import Files, MemoryTable

    Mark = Callable[[dict[str, Any]], bool]
    Kept = int | Mapping[str, int] | None

_KEY_COLUMNS = ("location", "content_offset", "referenced_data_file", "data_sequence_number")


@dataclass(frozen=True)
class Applied:
    """What a change makes of a head; `missing` are files that it removes and that are not there."""

    files: SnapshotFiles
    missing: tuple[str, ...]
    next_row_id: int


def apply(table: MemoryTable, change: Change, snapshot_id: int, sequence_number: int) -> Applied:
    """Return the files of a new snapshot on top of the change's branch."""
    head = table.head_files(change.branch)
    new = _New(table, snapshot_id, sequence_number)
    added_data = new.entries(change.added_data, change.data_sequence_number)
    added_deletes = new.entries(change.added_deletes, change.delete_sequence_numbers)
    data, removed_data = _split(head.data, lambda row: row["location"] in change.removed_data)
    mark = _goes(change, _oldest(data, change.data_sequence_number))
    deletes, removed_deletes = _split(head.deletes, mark)
    next_row_id = table.next_row_id
    if table.can.row_ids:
        added_data, next_row_id = _with_row_ids(added_data, next_row_id)
        data, next_row_id = _with_row_ids(data, next_row_id)
    actions = {
        FileAction.ADDED_DATA: added_data,
        FileAction.REMOVED_DATA: new.removed(removed_data),
        FileAction.ADDED_DELETES: added_deletes,
        FileAction.REMOVED_DELETES: new.removed(removed_deletes),
    }
    files = SnapshotFiles(_joined(added_data, data), _joined(added_deletes, deletes), actions)
    gone = locations(removed_data) | locations(removed_deletes)
    wanted = {*change.removed_data, *(location for location, _ in change.removed_deletes)}
    return Applied(files, tuple(sorted(wanted - gone)), next_row_id)


def each_once(entries: pa.Table) -> pa.Table:
    """Return the first entry of each file; vectors share one, so their offset counts too."""
    keys = entries.select(["location", "content_offset"]).to_pylist()
    first = {tuple(key.values()): row for row, key in reversed(list(enumerate(keys)))}
    return entries.take(pa.array(sorted(first.values()), pa.int64()))


def locations(files: Files) -> set[str]:
    return {location for table in files.values() for location in table["location"].to_pylist()}


@dataclass(frozen=True)
class _New:
    """What the files of a new snapshot have in common."""

    table: MemoryTable
    snapshot_id: int
    sequence_number: int

    def entries(self, written: pa.Table, kept: Kept) -> dict[int, pa.Table]:
        """Return written files by spec, as entries; `kept` are older data sequence numbers."""
        return {
            spec_id: self._of_spec(
                written.filter(pc.equal(written["spec_id"], spec_id)), spec_id, kept
            )
            for spec_id in pc.unique(written["spec_id"]).to_pylist()
        }

    def _of_spec(self, written: pa.Table, spec_id: int, kept: Kept) -> pa.Table:
        table, count = self.table, written.num_rows
        to = partition_type(table.specs[spec_id], table.schema, table.schemas.values())
        of_file = kept.get if isinstance(kept, Mapping) else lambda _: kept
        numbers = [of_file(place) for place in written["location"].to_pylist()]
        columns = {name: written[name] for name in written.column_names}
        columns["partition"] = decode_partitions(written["partition"].combine_chunks(), to)
        columns["status"] = pa.array([int(Status.ADDED)] * count, pa.int8())
        columns["snapshot_id"] = pa.array([self.snapshot_id] * count, pa.int64())
        columns["data_sequence_number"] = pa.array(
            [self.sequence_number if number is None else number for number in numbers], pa.int64()
        )
        columns["file_sequence_number"] = pa.array([self.sequence_number] * count, pa.int64())
        layout = files_schema(to)
        return pa.table([columns[name] for name in layout.names], schema=layout)

    def removed(self, files: Files) -> dict[int, pa.Table]:
        """Return files as entries that this snapshot removed."""
        found = {}
        for spec_id, table in files.items():
            status = pa.array([int(Status.DELETED)] * table.num_rows, pa.int8())
            by = pa.array([self.snapshot_id] * table.num_rows, pa.int64())
            found[spec_id] = _with(_with(table, "status", status), "snapshot_id", by)
        return found


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(name), values)


def _split(files: Files, goes: Mark) -> tuple[dict[int, pa.Table], dict[int, pa.Table]]:
    """Return the files that stay and those that go, by spec; specs without any are left out."""
    kept: dict[int, pa.Table] = {}
    gone: dict[int, pa.Table] = {}
    for spec_id, table in files.items():
        mask = pa.array([goes(row) for row in table.select(_KEY_COLUMNS).to_pylist()], pa.bool_())
        for found, chosen in ((kept, pc.invert(mask)), (gone, mask)):
            some = table.filter(chosen)
            if some.num_rows:
                found[spec_id] = some
    return kept, gone


def _goes(change: Change, oldest: int) -> Mark:
    """Return which delete files go: those named, and those that can apply to nothing any more."""
    if not change.removed_data and not change.removed_deletes:
        return lambda _: False

    def goes(row: dict[str, Any]) -> bool:
        return (
            (row["location"], row["content_offset"]) in change.removed_deletes
            or row["referenced_data_file"] in change.removed_data
            or row["data_sequence_number"] < oldest
        )

    return goes


def _oldest(data: Files, kept: int | None) -> int:
    """Return the lowest data sequence number of files that were there before."""
    numbers = [
        number for one in data.values() for number in one["data_sequence_number"].to_pylist()
    ]
    return min([*numbers, *([] if kept is None else [kept])], default=0)


def _with_row_ids(files: Files, next_row_id: int) -> tuple[dict[int, pa.Table], int]:
    """Give data files without row ids the next ones."""
    found = {}
    for spec_id, table in files.items():
        unset = pc.is_null(table["first_row_id"]).to_numpy()
        taken = np.where(unset, table["record_count"].to_numpy(), 0)
        starts = pa.array(next_row_id + np.cumsum(taken) - taken, pa.int64())
        assigned = pc.if_else(pa.array(unset), starts, table["first_row_id"])
        found[spec_id] = _with(table, "first_row_id", assigned)
        next_row_id += int(taken.sum())
    return found, next_row_id


def _joined(new: Files, old: Files) -> dict[int, pa.Table]:
    return {
        spec_id: pa.concat_tables([each[spec_id] for each in (new, old) if spec_id in each])
        for spec_id in sorted({*new, *old})
    }


@dataclass(frozen=True)
class MemoryListing:
    """All live files of a snapshot: the one unit, of which nothing is pruned."""

    files: SnapshotFiles | None

    @property
    def units_considered(self) -> int:
        return 0 if self.files is None else 1

    @property
    def units_pruned(self) -> int:
        return 0

    @property
    def units(self) -> pa.Table:
        return MANIFESTS.empty_table()

    @property
    def files_considered(self) -> int:
        return sum(table.num_rows for table in self.data().values())

    @property
    def data_spec_ids(self) -> set[int]:
        return set(self.data())

    def data(self, columns: Iterable[str] | None = None) -> dict[int, pa.Table]:
        return _selected(self.files.data if self.files else {}, columns)

    def deletes(
        self, columns: Iterable[str] | None = None, *, added_by: Collection[int] | None = None
    ) -> dict[int, pa.Table]:
        found = dict(self.files.deletes if self.files else {})
        if added_by is not None:
            wanted = pa.array(sorted(added_by), pa.int64())
            found = {
                spec_id: table.filter(pc.is_in(table["snapshot_id"], wanted))
                for spec_id, table in found.items()
            }
        return _selected(found, columns)


def _selected(files: Files, columns: Iterable[str] | None) -> dict[int, pa.Table]:
    if columns is None:
        return dict(files)
    # No other columns: whoever looks at one must have asked for it.
    wanted = set(columns)
    return {
        spec_id: table.select([name for name in table.column_names if name in wanted])
        for spec_id, table in files.items()
    }
