"""Ids for the rows of files that have none: of a table that begins to track rows, or of a clone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.actions import with_columns
from rowlake.delta.add_actions import same_actions
from rowlake.delta.row_tracking import high_water_mark, mark_action
from rowlake.delta.touched_files import TouchedFiles

if TYPE_CHECKING:
    from rowlake.delta.handle import DeltaHandle


def numbered(files: pa.Table, counts: pa.Array, first: int, version: int) -> pa.Table:
    """Return files whose rows have consecutive ids from the first on, as of one version."""
    ends = np.cumsum(np.asarray(counts), dtype=np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends])[: files.num_rows]
    versions = np.full(files.num_rows, version, np.int64)
    return with_columns(
        files, {"base_row_id": pa.array(starts + first), "commit_version": pa.array(versions)}
    )


def backfill_actions(handle: DeltaHandle) -> list[dict[str, Any]]:
    """Return the adds that give ids to the rows of live files without them, and the mark.

    The files are added as they are, in the same commit that turns row tracking on: either all
    rows have ids afterwards, or nothing has changed.
    """
    state = handle.state
    lacking = state.files.filter(pc.is_null(state.files["base_row_id"]))
    if not lacking.num_rows:
        return []
    places = lacking["location"].to_pylist()
    touched = TouchedFiles(state, handle.columns_of(state), places)
    counts = touched.record_counts(touched.files)
    first = high_water_mark(state.actions.domains) + 1
    version = handle.snapshot_version + 1
    files = numbered(touched.with_stats(touched.files), counts, first, version)
    last = first + (pc.sum(counts).as_py() or 0) - 1
    return [mark_action(last), *same_actions(files, handle.folder, data_change=False)]
