"""Checksum files (`N.crc`): a version in numbers (PROTOCOL.md, "Version Checksum File").

Comes in: a state, and the checksum of the version before. Goes out: a file that readers compare a
log with, and that gives them protocol and metadata without reading it. Numbers are counted from the
commit alone where the version before has them, so that the cost is that of the commit.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.add_actions import VECTORS_FEATURE
from rowlake.delta.checkpoint_writer import live_domains, live_transactions
from rowlake.delta.commit_file import TOKEN, json_text
from rowlake.delta.log_files import LOG_FOLDER
from rowlake.delta.metadata import metadata_action
from rowlake.delta.protocol import protocol_action
from rowlake.errors import StorageError
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.delta.commits import Commit
    from rowlake.delta.state import LogState

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
# The bins of Delta on Spark, each by its first size.
SIZE_BINS = [
    *[0, *(8 * KB << power for power in range(9)), 4 * MB],
    *range(8 * MB, 40 * MB, 4 * MB),
    *range(40 * MB, 120 * MB, 8 * MB),
    *range(120 * MB, 144 * MB, 4 * MB),
    *range(144 * MB, 576 * MB, 16 * MB),
    *range(576 * MB, 1408 * MB, 64 * MB),
    *range(1408 * MB, 2048 * MB, 128 * MB),
    *range(2048 * MB, 4096 * MB, 256 * MB),
    *(4 * GB << power for power in range(7)),
]
# Deleted rows of a file: none, up to 9, 99, …, 2 147 483 646, more.
ROW_BINS = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1]
# Commits of these add files that were not there: others may state those that were once more.
ADDING = frozenset(
    {
        "WRITE",
        "DELETE",
        "UPDATE",
        "MERGE",
        "OPTIMIZE",
        "STREAMING UPDATE",
        "CREATE TABLE",
        "CREATE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
    }
)


def write_checksum(state: LogState, now_ms: int) -> bool:
    """Write the checksum of a version; False where it has one already.

    Where a checkpoint stands for the commit, its writer knows what the commit says of itself.
    """
    if not state.segment.commits or state.segment.commits[-1].is_compacted:
        return False
    content = json_text(checksum(state, now_ms)) + "\n"
    return state.storage.create(_location(state, state.version), content.encode())


def _location(state: LogState, version: int) -> str:
    return join(state.table, LOG_FOLDER, f"{version:020d}.crc")


def checksum(state: LogState, now_ms: int) -> dict[str, Any]:
    """Return the content of the checksum file of a version."""
    info = state.actions.commit_info or {}
    facts = _facts(state)
    found = {
        TOKEN: info.get(TOKEN),
        "tableSizeBytes": facts.get("tableSizeBytes"),
        "numFiles": facts.get("numFiles"),
        "numDeletedRecordsOpt": facts.get("numDeletedRecordsOpt"),
        "numDeletionVectorsOpt": facts.get("numDeletionVectorsOpt"),
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": info.get("inCommitTimestamp"),
        "setTransactions": [_without_nulls(one) for one in live_transactions(state, now_ms)],
        "domainMetadata": live_domains(state),
        "metadata": metadata_action(state.metadata),
        "protocol": protocol_action(state.protocol),
        "fileSizeHistogram": facts.get("fileSizeHistogram"),
        "deletedRecordCountsHistogramOpt": facts.get("deletedRecordCountsHistogramOpt"),
    }
    return _without_nulls(found)


def _without_nulls(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in found.items() if one is not None}


def _facts(state: LogState) -> dict[str, Any]:
    """Return the numbers of a version: from those of the version before where that is enough."""
    has_vectors = VECTORS_FEATURE in state.protocol.reader_features
    if "files" not in state.__dict__ and state.commits and _can_follow(state.commits[-1]):
        before = _previous(state)
        if before is not None:
            return _followed(before, state.commits[-1].files, has_vectors=has_vectors)
    return counted(state.files, has_vectors=has_vectors)


def _can_follow(commit: Commit) -> bool:
    """Return whether a commit's files say by how much it changes the numbers."""
    files = commit.files
    operation = (commit.other.commit_info or {}).get("operation")
    adds = pc.any(files["is_add"], min_count=0).as_py()
    return not files["size"].null_count and (not adds or operation in ADDING)


def _previous(state: LogState) -> dict[str, Any] | None:
    """Return the checksum of the version before, None where it is missing or damaged."""
    try:
        found = json.loads(state.storage.read(_location(state, state.version - 1)))
    except (StorageError, ValueError, RecursionError):
        return None
    needed = ("numFiles", "tableSizeBytes")
    if not isinstance(found, dict) or not all(isinstance(found.get(one), int) for one in needed):
        return None
    return found


def counted(files: pa.Table, *, has_vectors: bool) -> dict[str, Any]:
    """Return the numbers of some live files."""
    sizes = np.asarray(pc.fill_null(files["size"], 0))
    found: dict[str, Any] = {
        "tableSizeBytes": int(sizes.sum()),
        "numFiles": len(sizes),
        "fileSizeHistogram": {
            "sortedBinBoundaries": SIZE_BINS,
            "fileCounts": _binned(sizes, SIZE_BINS, np.ones_like(sizes)),
            "totalBytes": _binned(sizes, SIZE_BINS, sizes),
        },
    }
    if has_vectors:
        deleted = np.asarray(pc.fill_null(files["vector_cardinality"], 0))
        found["numDeletedRecordsOpt"] = int(deleted.sum())
        found["numDeletionVectorsOpt"] = files.num_rows - files["storage_type"].null_count
        counts = _binned(deleted, ROW_BINS, np.ones_like(deleted))
        found["deletedRecordCountsHistogramOpt"] = {"deletedRecordCounts": counts}
    return found


def _binned(
    values: np.ndarray[Any, Any], bins: Sequence[int], weights: np.ndarray[Any, Any]
) -> list[int]:
    found = np.zeros(len(bins), np.int64)
    np.add.at(found, np.searchsorted(np.array(bins), values, side="right") - 1, weights)
    return [int(one) for one in found]


def _followed(before: Mapping[str, Any], files: pa.Table, *, has_vectors: bool) -> dict[str, Any]:
    """Return the numbers after a commit; those that the version before lacks stay unknown."""
    is_add = files["is_add"]
    added = counted(files.filter(is_add), has_vectors=has_vectors)
    removed = counted(files.filter(pc.invert(is_add)), has_vectors=has_vectors)
    return {
        name: _moved(before.get(name), added[name], removed[name])
        for name in added
        if before.get(name) is not None
    }


def _moved(before: Any, added: Any, removed: Any) -> Any:
    """Return a number, or all of a histogram, after the change; None where bins differ."""
    if isinstance(added, int):
        return before + added - removed
    found = {}
    for name, some in added.items():
        old = before.get(name)
        if name == "sortedBinBoundaries":
            if old != some:
                return None
            found[name] = some
        elif not isinstance(old, list) or len(old) != len(some):
            return None
        else:
            found[name] = [a + b - c for a, b, c in zip(old, some, removed[name], strict=True)]
    return found
