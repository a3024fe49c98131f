"""What made a snapshot: the statement, its condition, its counts of rows, and who ran it.

Comes in: snapshots with their summaries. Goes out: what `history` shows. Writers leave notes in the
summary (`noted`); of other engines' snapshots Iceberg's own counters tell as much as they can.
Counts that nobody knows are None, never a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.secrets import statement_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowlake.model.view import SnapshotInfo

STATEMENT = "rowlake.operation"
CONDITION = "rowlake.condition"
USER = "rowlake.user"
LONGEST_CONDITION = 500
_SQL_WORDS = frozenset(["append", "delete", "merge", "overwrite", "truncate", "update", "upsert"])
_ROWS = {name: f"rowlake.rows-{name}" for name in ("updated", "deleted", "inserted")}
# What Iceberg's Spark writes since Spark 4.1, by statement.
_SPARK_ROWS = {
    "MERGE": {name: f"spark.merge-into.num-target-rows-{name}" for name in _ROWS},
    "UPDATE": {"updated": "spark.update.num-updated-rows"},
    "DELETE": {"deleted": "spark.delete.num-deleted-rows"},
}
_SPARK_PREFIXES = {
    "spark.merge-into.": "MERGE",
    "spark.update.": "UPDATE",
    "spark.delete.": "DELETE",
}
_DELTA_ROWS = {
    "updated": ("numTargetRowsUpdated", "numUpdatedRows"),
    "deleted": ("numTargetRowsDeleted", "numDeletedRows"),
    "inserted": ("numTargetRowsInserted", "numOutputRows"),
}
# Texts in a condition; names of columns are in backticks and stay.
_TEXTS = re.compile(r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*\"""", re.DOTALL)
_USERS = (USER, "delta.user-name", "spark.app.user")


@dataclass(frozen=True)
class Provenance:
    """What made one snapshot; `total_rows` is how many rows a reader sees after it."""

    statement: str
    condition: str | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_inserted: int | None = None
    total_rows: int | None = None
    user: str | None = None


def noted(statement: str, condition: str | None = None) -> dict[str, str]:
    """Return what a snapshot's summary keeps of a statement.

    Every reader of the table's metadata sees the condition, and it outlives the rows: texts in it,
    which may be personal data that `erase` must not leave behind, are kept as `'…'`, secrets are
    hidden as in messages, and a long one is cut.
    """
    notes = {STATEMENT: statement.upper() if statement in _SQL_WORDS else statement}
    if condition:
        hidden = _TEXTS.sub("'…'", without_secrets(statement_without_secrets(condition)))
        text = " ".join(hidden.split())
        is_long = len(text) > LONGEST_CONDITION
        notes[CONDITION] = f"{text[: LONGEST_CONDITION - 1]}…" if is_long else text
    return notes


def provenance_of(snapshots: Iterable[SnapshotInfo]) -> dict[int, Provenance]:
    """Return what made each snapshot, by its id."""
    found: dict[int, Provenance] = {}
    for snapshot in sorted(snapshots, key=lambda one: (one.sequence_number, one.timestamp_ms)):
        parent = None if snapshot.parent_id is None else found.get(snapshot.parent_id)
        found[snapshot.snapshot_id] = _provenance(snapshot, parent)
    return found


def _provenance(snapshot: SnapshotInfo, parent: Provenance | None) -> Provenance:
    summary = snapshot.summary
    statement = _statement(snapshot)
    counts = _noted_counts(summary, statement) or _counters(snapshot)
    return Provenance(
        statement,
        summary.get(CONDITION),
        counts.get("updated"),
        counts.get("deleted"),
        counts.get("inserted"),
        _total_rows(snapshot, counts, parent),
        next((summary[key] for key in _USERS if key in summary), None),
    )


def _statement(snapshot: SnapshotInfo) -> str:
    summary = snapshot.summary
    known = summary.get(STATEMENT) or summary.get("delta.operation")
    if known:
        return known
    for prefix, statement in _SPARK_PREFIXES.items():
        if any(key.startswith(prefix) for key in summary):
            return statement
    return snapshot.operation


def _noted_counts(summary: Mapping[str, str], statement: str) -> dict[str, int | None]:
    """Return the counts that the writer left, of rows and not of files' records."""
    if any(key in summary for key in _ROWS.values()):
        return {name: _number(summary, key) or 0 for name, key in _ROWS.items()}
    spark = _SPARK_ROWS.get(statement, {})
    if any(key in summary for key in spark.values()):
        # Iceberg leaves out counts of zero.
        return {name: _number(summary, spark.get(name, "")) or 0 for name in _ROWS}
    delta = {
        name: next((n for key in keys if (n := _number(summary, f"delta.metrics.{key}"))), 0)
        for name, keys in _DELTA_ROWS.items()
    }
    is_delta = any(key.startswith("delta.metrics.") for key in summary)
    return dict(delta) if is_delta else {}


def _counters(snapshot: SnapshotInfo) -> dict[str, int | None]:
    """Return counts by Iceberg's counters; rows that were copied are deleted and inserted."""
    summary = snapshot.summary
    if snapshot.operation == "replace":
        return dict.fromkeys(_ROWS, 0)
    added, removed = _number(summary, "added-records"), _number(summary, "deleted-records")
    if _number(summary, "added-equality-deletes") or _number(summary, "removed-equality-deletes"):
        return {"inserted": added}
    hidden = _number(summary, "added-position-deletes") or 0
    were_hidden = _number(summary, "removed-position-deletes") or 0
    deleted = max((removed or 0) + hidden - were_hidden, 0)
    # What another writer's overwrite updated is among its deleted and inserted rows.
    is_known = snapshot.operation != "overwrite" or STATEMENT in summary
    return {"updated": 0 if is_known else None, "deleted": deleted, "inserted": added or 0}


def _total_rows(
    snapshot: SnapshotInfo, counts: Mapping[str, int | None], parent: Provenance | None
) -> int | None:
    """Return how many rows are left after a snapshot.

    Without delete files that is the records of the data files. With them the exact counts of the
    statement are added to the parent's rows: position deletes may outlive their data file, so that
    a difference of totals can be too low. Where the parent is not known the difference is all
    there is, and of equality deletes nothing can be said without reading the table.
    """
    summary = snapshot.summary
    records = _number(summary, "total-records")
    positions = _number(summary, "total-position-deletes")
    equality = _number(summary, "total-equality-deletes")
    if records is None or positions is None or equality is None:
        return None
    if not positions and not equality:
        return records
    before = None if parent is None else parent.total_rows
    inserted, deleted = counts.get("inserted"), counts.get("deleted")
    if before is not None and inserted is not None and deleted is not None:
        return before + inserted - deleted
    return None if equality else max(records - positions, 0)


def _number(summary: Mapping[str, str], key: str) -> int | None:
    text = str(summary.get(key, "")).strip()
    return int(text) if text.isascii() and text.isdigit() else None
