"""What a commit says of itself, in the same words for all systems."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.peers.base import TableRef

ICEBERG = {
    "added-data-files": "files_added",
    "deleted-data-files": "files_removed",
    "added-delete-files": "delete_files_added",
    "removed-delete-files": "delete_files_removed",
    "added-files-size": "added_bytes",
    "added-records": "rows_written",
}
DELTA = {
    "numTargetFilesAdded": "files_added",
    "numTargetFilesRemoved": "files_removed",
    "numTargetDeletionVectorsAdded": "delete_files_added",
    "numTargetDeletionVectorsRemoved": "delete_files_removed",
    "numTargetBytesAdded": "added_bytes",
    "numAddedFiles": "files_added",
    "numRemovedFiles": "files_removed",
    "numDeletionVectorsAdded": "delete_files_added",
    "numDeletionVectorsRemoved": "delete_files_removed",
    "numAddedBytes": "added_bytes",
}


def iceberg_facts(table: TableRef) -> dict[str, float]:
    """Return the counters of the newest snapshot of a table in a Hadoop-style catalog."""
    metadata = json.loads(Path(table.metadata_location).read_text())
    head = metadata["current-snapshot-id"]
    found = [one for one in metadata["snapshots"] if one["snapshot-id"] == head]
    summary = found[0]["summary"] if found else {}
    return {ours: float(summary.get(theirs, 0)) for theirs, ours in ICEBERG.items()}


def delta_facts(metrics: dict[str, str]) -> dict[str, float]:
    """Return the counters of a commit's operation metrics."""
    return {DELTA[name]: float(value) for name, value in metrics.items() if name in DELTA}
