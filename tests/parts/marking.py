"""Changes that mark rows, made by hand: what a writer has in its hands before it commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.data import Commit
from rowlake.model.change import Change, Operation, Requirements, no_files
from rowlake.plan.files import plan_files
from rowlake.scan.deletes import positions_in
from rowlake.storage.files import Storage
from rowlake.write.position_deletes import DeletedPositions, PositionDeleteWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.commit.data import Committed
    from rowlake.table import Table


@dataclass
class Writer:
    """One writer that read the table and has written its marks, and not committed yet."""

    handle: IcebergHandle
    change: Change
    storage: Storage

    def commit(self) -> Committed:
        """Commit from the table as it was read."""
        return Commit(self.change, self.storage).run(self.handle)


def files_of(table: Table, branch: str = "main") -> list[str]:
    """Return the data files of a table, sorted by their partition, then by location."""
    plan = plan_files(table.handle.view(ref=branch), None, Storage({}))
    rows = [row for files in plan.data.values() for row in files.to_pylist()]
    keyed = [(repr(row["partition"]), row["location"]) for row in rows]
    return [location for _, location in sorted(keyed)]


def marking(
    table: Table,
    rows: Mapping[str, Sequence[int]],
    *,
    added: pa.Table | None = None,
    granularity: str = "file",
    branch: str = "main",
    **needs: Any,
) -> Writer:
    """Mark rows of data files as deleted, and write the marks; `added` are new data files.

    Old deletes of the files are merged in and removed, as far as each is about one data file.
    """
    handle = table.handle
    view, storage = handle.view(ref=branch), Storage({})
    plan = plan_files(view, None, storage, whole_files=True)
    marks, removed = [], set()
    for spec_id, files in plan.data.items():
        for number, row in enumerate(files.to_pylist()):
            if row["location"] not in rows:
                continue
            old = plan.deletes.delete_files(plan.applied[spec_id].rows_of(number))
            before = positions_in(old, row["location"], storage)
            every = np.union1d(before, np.array(rows[row["location"]], np.int64))
            partition = _encoded(files, number)
            marks.append(DeletedPositions(row["location"], spec_id, partition, every))
            removed |= {one.key for one in old if one.referenced_data_file}
    writer = PositionDeleteWriter(
        f"{view.location}/data", view.can.deletion_vectors, granularity, storage
    )
    change = Change(
        operation=Operation.OVERWRITE if added is not None else Operation.DELETE,
        added_data=no_files() if added is None else added,
        added_deletes=writer.write(marks),
        removed_deletes=frozenset(removed),
        requirements=Requirements(
            starting_snapshot_id=view.snapshot_id,
            no_new_deletes_for=frozenset(rows),
            files_exist=frozenset(rows),
            **needs,
        ),
        branch=branch,
    )
    return Writer(handle, change, storage)


def _encoded(files: pa.Table, number: int) -> tuple[bytes | None, ...]:
    from rowlake.model.values import encode_partitions

    struct = files["partition"].combine_chunks()
    return tuple(encode_partitions(struct.slice(number, 1)).to_pylist()[0])


def live_deletes_of(table: Table) -> dict[str, list[int]]:
    """Return the record counts of live delete files by the data file that they name."""
    found = table.inspect("delete_files").to_pylist()
    by_file: dict[str, list[int]] = {}
    for row in found:
        by_file.setdefault(row["referenced_data_file"], []).append(row["record_count"])
    return by_file


def delete_entries(table: Table) -> list[tuple[int, int, int, int]]:
    """Return (status, data sequence number, file sequence number, rows) of delete entries."""
    found = table.inspect("entries")
    files = found["data_file"].combine_chunks()
    mask = pc.not_equal(pc.struct_field(files, "content"), 0)
    counts = pc.struct_field(files, "record_count").filter(mask)
    kept = found.filter(mask)
    columns = [kept["status"], kept["sequence_number"], kept["file_sequence_number"], counts]
    return sorted(zip(*[column.to_pylist() for column in columns], strict=True))
