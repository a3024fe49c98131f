"""Snapshot summaries: the counters that Iceberg writes, computed on columns.

Comes in: tables of added and removed files (`rowlake.model.files`) and the parent's summary.
Goes out: the `summary` map of the new snapshot, with the names of Iceberg's SnapshotSummary.
Totals are only carried on where the parent has them: a missing total stays missing, since a
guess would be wrong for good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.model.files import Content

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def counters(files: pa.Table, *, added: bool) -> dict[str, int]:
    """Return the counters for a set of data and delete files that are added or removed."""
    prefix = "added" if added else "removed"
    data = _of(files, Content.DATA)
    positions = _of(files, Content.POSITION_DELETES)
    equality = _of(files, Content.EQUALITY_DELETES)
    is_vector = pc.equal(positions["file_format"], "PUFFIN")
    vectors = int(pc.sum(is_vector.cast(pa.int64())).as_py() or 0)
    return {
        "added-data-files" if added else "deleted-data-files": data.num_rows,
        f"{prefix}-delete-files": positions.num_rows + equality.num_rows,
        f"{prefix}-dvs": vectors,
        f"{prefix}-position-delete-files": positions.num_rows - vectors,
        f"{prefix}-equality-delete-files": equality.num_rows,
        "added-records" if added else "deleted-records": _total(data, "record_count"),
        f"{prefix}-position-deletes": _total(positions, "record_count"),
        f"{prefix}-equality-deletes": _total(equality, "record_count"),
        f"{prefix}-files-size": _total(data, "file_size_in_bytes")
        + _delete_bytes(positions)
        + _total(equality, "file_size_in_bytes"),
    }


def _of(files: pa.Table, content: Content) -> pa.Table:
    return files.filter(pc.equal(files["content"], int(content)))


def _total(files: pa.Table, column: str) -> int:
    return int(pc.sum(files[column]).as_py() or 0)


def _delete_bytes(positions: pa.Table) -> int:
    # Vectors share Puffin files: each counts with its own blob, not with the whole file.
    sizes = pc.coalesce(positions["content_size_in_bytes"], positions["file_size_in_bytes"])
    return int(pc.sum(sizes).as_py() or 0)


def summary_of(
    added: pa.Table,
    removed: pa.Table,
    *,
    parent: Mapping[str, str] | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return the summary of a snapshot that adds and removes these files.

    Both tables need the columns content, file_format, spec_id, partition_key, record_count,
    file_size_in_bytes and content_size_in_bytes; `partition_key` is any text that tells
    partitions apart. `parent` is None for a first snapshot.
    """
    counted = counters(added, added=True) | counters(removed, added=False)
    summary = {name: str(value) for name, value in counted.items() if value}
    summary["changed-partition-count"] = str(_changed_partitions(added, removed))
    return summary | _totals(counted, parent) | dict(extra)


def _changed_partitions(added: pa.Table, removed: pa.Table) -> int:
    keys = pa.concat_tables(
        [files.select(["spec_id", "partition_key"]) for files in (added, removed)]
    )
    return int(
        keys.group_by(["spec_id", "partition_key"], use_threads=False).aggregate([]).num_rows
    )


def _totals(counted: Mapping[str, int], parent: Mapping[str, str] | None) -> dict[str, str]:
    totals = {}
    for total, (plus, minus) in _TOTALS.items():
        before: Any = 0 if parent is None else parent.get(total)
        if before is not None:
            totals[total] = str(int(before) + counted[plus] - counted[minus])
    return totals
