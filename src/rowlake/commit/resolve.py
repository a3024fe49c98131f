"""A change by filter or by partition becomes a change of named files, for one head.

Comes in: a `Change` with `remove_where` or `replaced_partitions`. Goes out: the same with
`removed_data` filled from the files that the head has. Done again for each attempt, since a head
that moved may hold other files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import InvalidStatementError, shown
from rowlake.model.values import encode_partitions
from rowlake.plan.files import plan_files
from rowlake.prune.match import must_match

if TYPE_CHECKING:
    from rowlake.model.change import Change
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage


def resolved(handle: TableHandle, change: Change, storage: Storage) -> Change:
    """Return the change with the files that it removes at this head named."""
    if change.remove_where is None and not change.replaced_partitions:
        return change
    if change.branch not in handle.refs:
        return change
    view = handle.view(ref=change.branch)
    removed = set(change.removed_data)
    if change.remove_where is not None:
        removed |= _files_within(view, change.remove_where, storage)
    if change.replaced_partitions:
        removed |= _files_of_partitions(view, change.replaced_partitions, storage)
    return replace(change, removed_data=frozenset(removed))


def _files_within(view: TableView, where: Predicate, storage: Storage) -> set[str]:
    """Return the data files all of whose rows match; a file with some of them is an error."""
    found: set[str] = set()
    plan = plan_files(view, where, storage)
    for spec_id, entries in plan.data.items():
        inside = must_match(entries, plan.predicate, view.specs[spec_id], view.schema)
        partial = entries.filter(pc.invert(inside))["location"].to_pylist()
        if partial:
            raise InvalidStatementError(
                f"Cannot remove whole files of {view.name} by this filter: some rows of "
                f"{len(partial)} data files may not match it: {shown(partial)}. "
                "Filter by whole partitions, or delete the rows with DELETE."
            )
        found.update(entries["location"].to_pylist())
    return found


def _files_of_partitions(
    view: TableView,
    partitions: frozenset[tuple[int, tuple[bytes | None, ...]]],
    storage: Storage,
) -> set[str]:
    found: set[str] = set()
    for spec_id, entries in plan_files(view, None, storage).data.items():
        wanted = {key for spec, key in partitions if spec == spec_id}
        if not wanted:
            continue
        struct = entries["partition"]
        combined = struct.combine_chunks() if isinstance(struct, pa.ChunkedArray) else struct
        keys = encode_partitions(combined).to_pylist()
        locations = entries["location"].to_pylist()
        found.update(
            location for key, location in zip(keys, locations, strict=True) if tuple(key) in wanted
        )
    return found
