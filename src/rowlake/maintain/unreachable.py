"""Which files nothing reaches any more once snapshots are gone.

Comes in: a table before and after. Goes out: a table of `REACHABLE` with the files that snapshots
reached which are gone, and no snapshot reaches that is left. Only manifests of the gone snapshots
alone are read for candidates, and those of the rest only where there are some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.maintain.reachable import (
    REACHABLE,
    Kind,
    files_in,
    manifests_of,
    of_kind,
    parts_of_files,
    places,
    statistics_of,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rowlake.catalog.handle import TableHandle
    from rowlake.engine.spark import Engine


def files_left_behind(
    before: TableHandle, after: TableHandle, engine: Engine | None = None
) -> pa.Table:
    """Return the files that only snapshots reached which `after` has no more.

    Data files come first and manifest lists last: what is cut short leaves files that the rest
    could still be found by.
    """
    left = {one.snapshot_id for one in after.metadata.snapshots}
    gone = [one for one in before.metadata.snapshots if one.snapshot_id not in left]
    gone_ids = {one.snapshot_id for one in gone}
    statistics = without(statistics_of(before), statistics_of(after))
    if not gone:
        return statistics
    theirs, ours = manifests_of(before, gone_ids), manifests_of(after)
    alone = theirs.filter(pc.invert(_are_in(theirs["location"], ours["location"])))
    files = _not_in(files_in(before, alone, engine), parts_of_files(after, ours, engine))
    lists = without(
        of_kind([one.manifest_list for one in gone if one.manifest_list], Kind.MANIFEST_LIST),
        of_kind([one.manifest_list for one in after.metadata.snapshots], Kind.MANIFEST_LIST),
    )
    return pa.concat_tables([files, of_kind(alone["location"], Kind.MANIFEST), lists, statistics])


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


def except_locations(files: pa.Table, locations: Collection[str]) -> pa.Table:
    """Return the files that are not at one of these locations, spelled as they are."""
    if not locations:
        return files
    known = pa.array(list(locations), pa.large_string())
    return files.filter(pc.invert(pc.is_in(files["location"], value_set=known)))
