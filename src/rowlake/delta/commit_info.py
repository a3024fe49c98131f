"""`commitInfo`: who did what to a table, in the words and the order of Delta on Spark.

DESCRIBE HISTORY of every engine shows these fields. Metrics and parameters that are no text become
texts as Delta's own writers make them: numbers in decimals, lists and maps as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.delta.commit_file import TOKEN, json_text
from rowlake.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINE = f"rowlake/{__version__}"
SERIALIZABLE, WRITE_SERIALIZABLE = "Serializable", "WriteSerializable"
SNAPSHOT_ISOLATION = "SnapshotIsolation"
ROW_TRACKING_PRESERVED = "delta.rowTracking.preserved"


@dataclass(frozen=True)
class CommitInfo:
    """What a commit says of itself.

    `operation` is Delta's name: WRITE, DELETE, UPDATE, MERGE, OPTIMIZE, CREATE TABLE, … `token`
    becomes `txnId`, by which the commit is found again. `in_commit_timestamp` is set exactly where
    the table has in-commit timestamps.
    """

    operation: str
    token: str
    timestamp_ms: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)
    read_version: int | None = None
    isolation_level: str = SERIALIZABLE
    is_blind_append: bool = False
    in_commit_timestamp: int | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None

    def action(self) -> dict[str, Any]:
        """Return the action, its fields in Delta's order."""
        body = {
            "inCommitTimestamp": self.in_commit_timestamp,
            "timestamp": self.timestamp_ms,
            "operation": self.operation,
            "operationParameters": {k: parameter(one) for k, one in self.parameters.items()},
            "readVersion": self.read_version,
            "isolationLevel": self.isolation_level,
            "isBlindAppend": self.is_blind_append,
            "operationMetrics": {name: str(one) for name, one in self.metrics.items()},
            "userMetadata": self.user_metadata,
            "tags": dict(self.tags) if self.tags else None,
            "engineInfo": ENGINE,
            TOKEN: self.token,
        }
        return {"commitInfo": {name: one for name, one in body.items() if one is not None}}


def parameter(value: Any) -> str | bool | None:
    """Return the value of an operation parameter: texts and flags as they are, others as JSON."""
    return value if value is None or isinstance(value, (str, bool)) else json_text(value)


def next_timestamp(now_ms: int, previous_ms: int | None) -> int:
    """Return the in-commit timestamp after another: later than it, even where clocks went back."""
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)
