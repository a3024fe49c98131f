"""Actions of a log: files as columns, everything else as small values.

`FILES` is the one layout of `add` and `remove` actions, wherever they were read: rows of a
checkpoint and of commits fit one table. `stats` has statistics as JSON text; where they are left in
a checkpoint until somebody asks, `source` and `row` say in which of its files and at which row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.delta.metadata import Metadata, metadata_of
from rowlake.delta.protocol import Protocol, protocol_of

if TYPE_CHECKING:
    from collections.abc import Mapping

# Partition values and tags.
PARTITION_VALUES = pa.map_(pa.string(), pa.string())

FILES = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("is_add", pa.bool_()),
        pa.field("partition_values", PARTITION_VALUES),
        pa.field("size", pa.int64()),
        pa.field("data_change", pa.bool_()),
        pa.field("stats", pa.string()),
        pa.field("storage_type", pa.string()),
        pa.field("vector_path", pa.string()),
        pa.field("vector_offset", pa.int64()),
        pa.field("vector_size", pa.int64()),
        pa.field("vector_cardinality", pa.int64()),
        pa.field("base_row_id", pa.int64()),
        pa.field("commit_version", pa.int64()),  # of row tracking, else of the commit file
        pa.field("path", pa.string()),  # as the log spells it, where it could be spelled otherwise
        pa.field("modification_time", pa.int64()),
        pa.field("deletion_time", pa.int64()),  # of removes
        pa.field("tags", PARTITION_VALUES),
        pa.field("clustering_provider", pa.string()),
        pa.field("source", pa.int32()),
        pa.field("row", pa.int64()),
    ]
)


def domain_action(domain: str, configuration: str) -> dict[str, Any]:
    """Return the action that sets a domain."""
    body = {"domain": domain, "configuration": configuration, "removed": False}
    return {"domainMetadata": body}


def with_columns(files: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return files with other values in some columns of `FILES`."""
    for name, column in columns.items():
        index = FILES.get_field_index(name)
        files = files.set_column(index, FILES.field(index), column)
    return files


@dataclass
class Actions:
    """What is left of a log after the last action of each kind won; None where there was none."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    removed_domains: set[str] = field(default_factory=set)
    commit_info: Mapping[str, Any] | None = None
    sidecars: list[Mapping[str, Any]] = field(default_factory=list)
    transaction_times: dict[str, int] = field(default_factory=dict)  # where they are stated
    change_files: list[Mapping[str, Any]] = field(default_factory=list)  # of one commit

    def add(self, kind: str, action: Mapping[str, Any], location: str) -> None:
        """Take an action that is not of a file; kinds that are not known are ignored."""
        if kind == "protocol":
            self.protocol = protocol_of(action, location)
        elif kind == "metaData":
            self.metadata = metadata_of(action, location)
        elif kind == "txn":
            self._add_transaction(action)
        elif kind == "domainMetadata":
            self._add_domain(action)
        elif kind == "commitInfo":
            self.commit_info = action
        elif kind == "sidecar":
            self.sidecars.append(action)
        elif kind == "cdc":
            self.change_files.append(action)

    def _add_transaction(self, action: Mapping[str, Any]) -> None:
        name = str(action["appId"])
        self.transactions[name] = int(action["version"])
        self.transaction_times.pop(name, None)
        if isinstance(action.get("lastUpdated"), int):
            self.transaction_times[name] = action["lastUpdated"]

    def _add_domain(self, action: Mapping[str, Any]) -> None:
        name = str(action["domain"])
        if action.get("removed"):
            self.domains.pop(name, None)
            self.removed_domains.add(name)
        else:
            self.domains[name] = str(action.get("configuration") or "")
            self.removed_domains.discard(name)

    def after(self, older: Actions) -> Actions:
        """Return these actions on top of older ones."""
        domains = {**older.domains, **self.domains}
        times = {
            name: at
            for name, at in older.transaction_times.items()
            if name not in self.transactions
        }
        return Actions(
            self.protocol or older.protocol,
            self.metadata or older.metadata,
            {**older.transactions, **self.transactions},
            {name: text for name, text in domains.items() if name not in self.removed_domains},
            set(),
            self.commit_info,
            older.sidecars,
            {**times, **self.transaction_times},
        )
