"""Delta tables made by hand: any log that a test needs, also those that no writer would write."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
COLUMNS = (("id", "long"), ("name", "string"))


def features(*names: str) -> dict[str, Any]:
    """Return a protocol action that lists reader features."""
    listed = list(names)
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": listed,
            "writerFeatures": [*listed],
        }
    }


def column(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """Return a field of a schema."""
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def metadata(
    fields: Any = COLUMNS, partition_by: tuple[str, ...] = (), **configuration: str
) -> dict[str, Any]:
    """Return a metaData action; fields are pairs of name and type, or whole fields."""
    described = [one if isinstance(one, dict) else column(*one) for one in fields]
    return {
        "metaData": {
            "id": "0f1e2d3c-0000-4000-8000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": described}),
            "partitionColumns": list(partition_by),
            "configuration": {f"delta.{key}": value for key, value in configuration.items()},
            "createdTime": 1700000000000,
        }
    }


@dataclass
class HandMade:
    """A table in a folder; `commit` writes the next version, `add` a data file for it."""

    folder: Path
    version: int = -1
    adds: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.log.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        return f"delta.`{self.folder}`"

    @property
    def log(self) -> Path:
        return self.folder / "_delta_log"

    def create(self, *actions: dict[str, Any], modified_ms: int | None = None) -> HandMade:
        """Write version 0, with a protocol and a schema where none are given."""
        given = {next(iter(one)) for one in actions}
        first = [] if "protocol" in given else [PROTOCOL]
        first += [] if "metaData" in given else [metadata()]
        self.commit(*first, *actions, modified_ms=modified_ms)
        return self

    def add(self, path: str, rows: pa.Table, *, file: str | None = None, **more: Any) -> Any:
        """Write a data file and return its add action; `file` where its path is encoded."""
        target = self.folder / (file or path)
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, target)
        action = {
            "path": path,
            "partitionValues": {},
            "size": target.stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows}),
            **more,
        }
        self.adds[path] = action
        return {"add": action}

    def remove(self, path: str, **more: Any) -> dict[str, Any]:
        """Return a remove action."""
        found = {"path": path, "deletionTimestamp": 1, "dataChange": True}
        return {"remove": {**found, **more}}

    def commit(self, *actions: dict[str, Any], modified_ms: int | None = None) -> int:
        """Write the next commit."""
        self.version += 1
        self.write(f"{self.version:020d}.json", *actions)
        if modified_ms is not None:
            nanoseconds = modified_ms * 10**6
            os.utime(self.log / f"{self.version:020d}.json", ns=(nanoseconds, nanoseconds))
        return self.version

    def write(self, name: str, *actions: dict[str, Any]) -> Path:
        """Write a file of actions into the log."""
        path = self.log / name
        path.write_text("".join(json.dumps(one) + "\n" for one in actions))
        return path


def people(*ids: int) -> pa.Table:
    """Return rows of the columns that tables have by default."""
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{one}" for one in ids]})


def actions(table: tuple[str, str], version: int) -> dict[str, list[dict[str, Any]]]:
    """Return the actions of a version of a table (`("delta", folder)`) by kind."""
    location = Path(table[1]) / "_delta_log" / f"{version:020d}.json"
    found: dict[str, list[dict[str, Any]]] = {}
    for line in location.read_text().splitlines():
        ((kind, action),) = json.loads(line).items()
        found.setdefault(kind, []).append(action)
    return found
