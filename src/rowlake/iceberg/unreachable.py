"""Which files nothing reaches any more once snapshots are gone.

Comes in: a table before and after. Goes out: `LeftBehind` with the files that snapshots reached
which are gone, and no snapshot reaches that is left. Only manifests of the gone snapshots
alone are read for candidates, and those of the rest only where there are some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.errors import CommitStateUnknownError, CorruptTableError, shown
from rowlake.iceberg.expire import refs_lost
from rowlake.iceberg.reachable import (
    files_in,
    first_of_each,
    manifests_of,
    metadata_files,
    parts_of_files,
    statistics_of,
)
from rowlake.model.reachable import (
    REACHABLE,
    Kind,
    LeftBehind,
    distinct,
    of_kind,
    places,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.model.format import TaskRunner


def files_left_behind(
    before: IcebergHandle, after: IcebergHandle, runner: TaskRunner | None = None
) -> LeftBehind:
    """Return the files that only snapshots reached which `after` has no more.

    Data files come first and manifest lists last: where deleting is cut short, what is left says
    what went. Damage in what is gone is passed over, damage in what stays raises
    CorruptTableError: nothing is sure to be unreachable then.
    """
    _check_refs(before, after)
    left = {one.snapshot_id for one in after.snapshots}
    gone = [one for one in before.snapshots if one.snapshot_id not in left]
    statistics = without(statistics_of(before), statistics_of(after))
    if not gone and not statistics.num_rows:
        return LeftBehind(statistics)
    ours = manifests_of(after)
    theirs, unread = _readable(
        [one.snapshot_id for one in gone], lambda some: manifests_of(before, some)
    )
    alone = first_of_each(theirs.filter(pc.invert(_are_in(theirs["location"], ours["location"]))))
    found, damaged = _readable(
        list(range(alone.num_rows)),
        lambda some: files_in(before, alone.take(pa.array(some, pa.int64())), runner),
    )
    files = _not_in(distinct(found), parts_of_files(after, ours, runner))
    manifests = of_kind(alone["location"], Kind.MANIFEST)
    lists = without(
        of_kind([one.manifest_list for one in gone], Kind.MANIFEST_LIST),
        of_kind([one.manifest_list for one in after.snapshots], Kind.MANIFEST_LIST),
    )
    parts = pa.concat_tables([files, manifests, lists, statistics])
    return LeftBehind(_unnamed(parts, after, ours), (*unread, *damaged))


def _check_refs(before: IcebergHandle, after: IcebergHandle) -> None:
    """Check that no branch or tag of others went with the snapshots: its files are needed."""
    lost = [] if after.version == before.version else refs_lost(before, after)
    if lost:
        cause = f"{shown(lost)} came to point to snapshots that expired, and was dropped with them"
        raise CommitStateUnknownError(before.name, None, cause)


def _unnamed(files: pa.Table, after: IcebergHandle, manifests: pa.Table) -> pa.Table:
    """Return the files that are not metadata in use: what is gone may name those as its own."""
    return without(without(files, metadata_files(after)), of_kind(manifests["location"], Kind.DATA))


def _readable(
    items: list[int], read: Callable[[list[int]], pa.Table]
) -> tuple[pa.Table, list[str]]:
    """Read items at once, or where one is damaged one by one; return also what was not read."""
    whole = _tried(read, items)
    if isinstance(whole, pa.Table):
        return whole, []
    tried = [read([]), *(_tried(read, [item]) for item in items)]
    return (
        pa.concat_tables([one for one in tried if isinstance(one, pa.Table)]),
        [one for one in tried if isinstance(one, str)],
    )


def _tried(read: Callable[[list[int]], pa.Table], items: list[int]) -> pa.Table | str:
    try:
        return read(items)
    except CorruptTableError as error:
        return error.location


def _are_in(locations: pa.ChunkedArray, others: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(places(locations), value_set=places(others))


def _not_in(files: pa.Table, parts: Iterable[pa.Table]) -> pa.Table:
    """Return the files that no part has; parts are read only while there is a file to look for."""
    if not files.num_rows:
        return files
    sought = places(files["location"])
    is_found = np.zeros(files.num_rows, np.bool_)
    for part in parts:
        is_found |= pc.is_in(sought, value_set=places(part["location"])).to_numpy()
        if is_found.all():
            return REACHABLE.empty_table()
    return files.filter(pa.array(~is_found))
